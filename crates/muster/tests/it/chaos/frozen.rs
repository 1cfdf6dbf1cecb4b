//! The hub itself is frozen and wakes: alone on its database, and as one of two in its turn of writing.

use super::claims::{came_true, lasts};
use super::crew::Size;
use super::postgres::Server;
use super::processes::{Frozen, place};
use super::trial::Trial;
use crate::served::Served;
use std::time::{Duration, Instant};

/// Longer than callers wait.
const ASLEEP: Duration = Duration::from_secs(8);
/// The others go on while one is frozen, at the latest then.
const WITHOUT_IT: Duration = Duration::from_secs(15);
/// Writers take turns many times a second; one is caught before that.
const CAUGHT: Duration = Duration::from_secs(30);
/// While the other has the turn.
const WORDS: &[&str] = &["is held by another program", "does not answer in time"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_hub_that_was_frozen_goes_on_where_it_was() {
    let place = place();
    let served = Served::start(&place);
    let mut trial = Trial::begin(&[&served], Size::SOME).await;
    trial.looks_away();
    let trouble = trial.trouble("the hub is frozen", WORDS);
    let frozen = Frozen::one(served.pid());
    lasts(ASLEEP).await;
    drop(frozen);
    trial.watches(&served);
    trial.recovers(&served, &trouble).await;
    trial.ends(served, || Served::start(&place)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_hub_that_is_frozen_in_its_turn_holds_the_other_up_for_a_moment_and_undoes_nothing() {
    let server = Server::start().await;
    let (here, there) = (place(), place());
    let sleeper = Served::start_with(&here, &["--database", &server.url("sleeper")]);
    let other = Served::start_with(&there, &["--database", &server.url("other")]);
    let mut trial = Trial::begin(&[&other, &sleeper], Size::SOME).await;
    let trouble = trial.trouble("one hub is frozen in its turn of writing", WORDS);
    let frozen = in_its_turn(&server, &sleeper).await;
    trial.claims.tell("caught");
    let caught = Instant::now();
    let begun = trial.book().counts().0;
    let book = std::sync::Arc::clone(&trial.ground);
    let goes_on = async || book.book.counts().0 > begun + 5;
    trial
        .claims
        .soon(caught, WITHOUT_IT, "the other hub writes", goes_on)
        .await;
    drop(frozen);
    trial.recovers(&sleeper, &trouble).await;
    let now = Instant::now();
    trial.writes_work(&other, now).await;
    drop(other);
    trial
        .ends(sleeper, || {
            Served::start_with(&there, &["--database", &server.url("again")])
        })
        .await;
}

/// Stops the hub again and again, until its turn goes on although it does nothing.
async fn in_its_turn(server: &Server, hub: &Served) -> Frozen {
    let begun = Instant::now();
    loop {
        let frozen = Frozen::one(hub.pid());
        // What is under way in the server itself ends soon; what waits for the hub stays.
        let stays = came_true(Instant::now(), Duration::from_millis(150), async || {
            !in_turn(server).await
        })
        .await;
        if stays.is_none() {
            return frozen;
        }
        assert!(begun.elapsed() < CAUGHT, "the hub was never caught in its turn");
        drop(frozen);
        tokio::task::yield_now().await;
    }
}

async fn in_turn(server: &Server) -> bool {
    let question =
        "select 1 from pg_locks join pg_stat_activity using (pid) where locktype = 'advisory' and granted
        and application_name = 'sleeper'";
    server.ask("hub", question).await > 0
}
