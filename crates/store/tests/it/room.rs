//! What is old or deleted goes, in pieces, and the file gets smaller.

use crate::place::Place;
use crate::sample::*;
use muster_store::{Commit, Database, EventQuery, FileWrite, Store};
use sqlx::{AnyConnection, Connection};
use std::path::Path;

crate::on_both!(
    a_page_of_history_has_a_bound_and_the_next_one_goes_on,
    old_history_goes_and_the_rest_stays,
    an_old_feed_goes_piece_by_piece,
);

const MIB: usize = 1 << 20;
const PIECE: usize = 8 * MIB;

async fn told(store: &Store, count: u64, seconds: i64) {
    let lines = (0..count).map(|number| entry(&number.to_string()));
    let commit = Commit {
        journal: lines.collect(),
        ..Commit::new(at(seconds))
    };
    store.commit(commit).await.unwrap();
}

async fn a_page_of_history_has_a_bound_and_the_next_one_goes_on(place: &Place) {
    let store = place.open().await;
    told(&store, EventQuery::MOST + 3, 0).await;
    let total = i64::try_from(EventQuery::MOST).unwrap() + 3;
    for limit in [None, Some(u64::MAX)] {
        let query = EventQuery {
            limit,
            ..EventQuery::default()
        };
        let page = store.events_list(&query).await.unwrap();
        assert_eq!((page.events.len() as u64, page.total), (EventQuery::MOST, total));
    }
    let rest = EventQuery {
        offset: EventQuery::MOST,
        ..EventQuery::default()
    };
    let page = store.events_list(&rest).await.unwrap();
    assert_eq!((page.events.len(), page.total), (3, total));
}

async fn old_history_goes_and_the_rest_stays(place: &Place) {
    let store = place.open().await;
    told(&store, 2_500, 0).await;
    told(&store, 7, 100).await;
    assert_eq!(store.events_prune(at(100)).await.unwrap(), 2_500);
    assert_eq!(store.counts().await.unwrap().events, 7);
    assert_eq!(store.events_prune(at(100)).await.unwrap(), 0);
    told(&store, 1, 101).await;
    let all = store.events_list(&EventQuery::default()).await.unwrap();
    assert_eq!(
        all.events.last().unwrap().id,
        2_508,
        "numbers are not given out again"
    );
}

async fn an_old_feed_goes_piece_by_piece(place: &Place) {
    const OLD: usize = 10_500;
    let store = place.open().await;
    let mut old = of((0..OLD).map(|_| put(host())));
    old.at = at(0);
    store.commit(old).await.unwrap();
    let mut new = of([put(host())]);
    new.at = at(100);
    store.commit(new).await.unwrap();
    assert_eq!(store.changes_prune(at(100)).await.unwrap(), OLD as u64);
    let range = store.changes_range().await.unwrap();
    assert_eq!((range.pruned, range.last), (OLD as i64, OLD as i64 + 1));
}

/// Files that take much room are written, and deleted.
async fn large_files_come_and_go(store: &Store, size: usize) {
    let owner = cluster();
    let cluster = owner.id;
    let made = of([put(owner)]);
    store.commit(made).await.unwrap();
    let path = |number: usize| format!("logs/{number}");
    let put = |number| FileWrite::put(cluster, path(number), vec![7; PIECE]);
    let delete = |number| FileWrite::delete(cluster, path(number));
    for number in 0..size / PIECE {
        written(store, put(number)).await;
    }
    for number in 0..size / PIECE {
        written(store, delete(number)).await;
    }
}

async fn written(store: &Store, write: FileWrite) {
    let mut commit = commit();
    commit.files.push(write);
    store.commit(commit).await.unwrap();
}

fn size(file: &Path) -> usize {
    std::fs::metadata(file).unwrap().len() as usize
}

fn file_of(place: &Place) -> &Path {
    match &place.database {
        Database::Sqlite(file) => file,
        _ => unreachable!(),
    }
}

#[tokio::test]
async fn the_file_gives_back_what_was_deleted_while_the_hub_runs() {
    let place = Place::sqlite();
    let store = place.open().await;
    let kept = saved(&store, host()).await;
    large_files_come_and_go(&store, 48 * MIB).await;
    assert!(store.shrink(1).await.unwrap() > 0, "a step is a part of it");
    store.shrink(usize::MAX).await.unwrap();
    assert!(size(file_of(&place)) < 20 * MIB, "{}", size(file_of(&place)));
    assert_eq!(
        store.shrink(usize::MAX).await.unwrap(),
        0,
        "some room stays for what comes"
    );
    assert_eq!(store.find(kept.key()).await.unwrap(), Some(kept));
    store.close().await;
}

/// As older releases made them.
const CANNOT_SHRINK: &str = "pragma auto_vacuum = none; vacuum";

#[tokio::test]
async fn a_file_of_an_older_release_can_shrink_after_its_first_start() {
    let place = Place::sqlite();
    let store = place.open().await;
    let kept = saved(&store, host()).await;
    store.close().await;
    place.tamper(CANNOT_SHRINK).await;

    let store = place.open().await;
    assert_eq!(store.find(kept.key()).await.unwrap(), Some(kept));
    large_files_come_and_go(&store, 48 * MIB).await;
    assert!(store.shrink(1).await.unwrap() > 0);
    store.close().await;
}

#[tokio::test]
async fn a_file_of_an_older_release_that_is_mostly_empty_is_made_small_at_the_start() {
    let place = Place::sqlite();
    place.open().await.close().await;
    place.tamper(CANNOT_SHRINK).await;
    place.tamper("create table t (x blob)").await;
    place
        .tamper("insert into t values (zeroblob(80 * 1024 * 1024))")
        .await;
    place.tamper("drop table t").await;
    assert!(size(file_of(&place)) > 80 * MIB);

    let store = place.open().await;
    assert!(size(file_of(&place)) < 8 * MIB, "{}", size(file_of(&place)));
    store.close().await;
}

/// A hub of a release that took no lock, say, which rests.
#[tokio::test]
async fn a_file_that_somebody_has_open_is_not_exchanged_for_a_smaller_one() {
    let place = Place::sqlite();
    let store = place.open().await;
    saved(&store, host()).await;
    store.close().await;
    place.tamper(CANNOT_SHRINK).await;
    let mut other = AnyConnection::connect(&place.url()).await.unwrap();
    let count = "select count(*) from hosts";
    sqlx::query(count).fetch_one(&mut other).await.unwrap();

    let store = place.open().await;
    let text = "insert into meta (key, value) values ('other', 'was here')";
    sqlx::query(text).execute(&mut other).await.unwrap();
    other.close().await.unwrap();
    store.close().await;
    assert_eq!(place.count("meta where key = 'other'").await, 1);
}
