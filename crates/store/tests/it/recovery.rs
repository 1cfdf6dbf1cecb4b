//! A write that fails is refused with its cause, and the next one works as soon as the cause is gone.

use crate::place::Place;
use crate::sample::*;
use muster_store::{Database, DatabaseFault, Store, StoreError};
use std::time::Duration;

crate::on_both!(
    after_a_write_that_the_database_gave_up_writes_go_on,
    hundreds_of_refused_writes_leave_the_writer_whole,
);

/// SQLite ends the transaction by itself, as it does on a full disk; PostgreSQL refuses the commit.
async fn break_writes(place: &Place) {
    place
        .tamper_either(
            "create trigger fault before insert on hosts begin select raise(rollback, 'injected'); end",
            "create function fault() returns trigger language plpgsql as $$
             begin raise exception 'injected' using errcode = '53100'; end $$;
             create constraint trigger fault after insert on hosts deferrable initially deferred
             for each row execute function fault()",
        )
        .await;
}

async fn mend_writes(place: &Place) {
    place
        .tamper_either("drop trigger fault", "drop trigger fault on hosts")
        .await;
}

async fn after_a_write_that_the_database_gave_up_writes_go_on(place: &Place) {
    let store = place.open().await;
    break_writes(place).await;
    for _ in 0..2 {
        let refused = store.commit(of([put(host())])).await.unwrap_err();
        if place.is_postgres() {
            assert_eq!(refused.fault(), Some(DatabaseFault::Full), "{refused:?}");
        }
    }
    mend_writes(place).await;
    saved(&store, host()).await;
    assert_eq!(place.count("hosts").await, 1);
    store.close().await;
}

async fn hundreds_of_refused_writes_leave_the_writer_whole(place: &Place) {
    let store = place.open().await;
    break_writes(place).await;
    let refused: Vec<_> = (0..300)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.commit(of([put(host())])).await })
        })
        .collect();
    for answer in refused {
        assert!(answer.await.unwrap().is_err());
    }
    mend_writes(place).await;
    saved(&store, host()).await;
    assert_eq!(place.count("hosts").await, 1);
    store.close().await;
}

const HANG_UP: &str = "select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()";

async fn written(store: &Store) -> Result<(), StoreError> {
    store.commit(of([put(host())])).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hung_up_while_nothing_was_under_way_costs_nobody_an_answer() {
    let Some(place) = Place::postgres().await else {
        return;
    };
    let store = place.open().await;
    for _ in 0..3 {
        place.tamper(HANG_UP).await;
        written(&store).await.unwrap();
    }
    assert_eq!(place.count("hosts").await, 3);
    store.close().await;
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_up_in_the_middle_of_a_write_refuses_that_one_only() {
    let Some(place) = Place::postgres().await else {
        return;
    };
    let store = place.open().await;
    place
        .tamper(
            "create function fault() returns trigger language plpgsql as $$
             begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$;
             create trigger fault before insert on hosts for each row execute function fault()",
        )
        .await;
    let refused = written(&store).await.unwrap_err();
    assert_eq!(refused.fault(), Some(DatabaseFault::Away), "{refused:?}");
    mend_writes(&place).await;
    written(&store).await.unwrap();
    assert_eq!(place.count("hosts").await, 1);
    store.close().await;
    place.remove().await;
}

/// What says whether writes work must be one: nothing else is written to a hub at rest.
#[tokio::test]
async fn whoever_asks_whether_writes_work_makes_one() {
    let place = Place::sqlite();
    let store = place.open().await;
    let Database::Sqlite(file) = &place.database else {
        unreachable!()
    };
    let log = file.with_extension("db-wal");
    let size = || std::fs::metadata(&log).unwrap().len();
    let before = size();
    store.writable(Duration::from_secs(10)).await.unwrap();
    assert!(size() > before);
    store.close().await;
}
