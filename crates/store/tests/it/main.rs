//! The store's behaviour, the same on SQLite and on PostgreSQL.

#![allow(
    clippy::unwrap_used,
    reason = "a test that panics has failed, which is what it is for"
)]

mod events;
mod feed;
mod files;
mod guard;
mod home;
mod liveness;
mod outbox;
mod pages;
mod place;
mod recovery;
mod references;
mod reopen;
mod room;
mod rows;
mod sample;
mod unreadable;

/// One test per database out of one body.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let place = crate::place::Place::sqlite();
                super::$name(&place).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(place) = crate::place::Place::postgres().await {
                    super::$name(&place).await;
                    place.remove().await;
                }
            }
        })*
    };
}
pub(crate) use on_both;
