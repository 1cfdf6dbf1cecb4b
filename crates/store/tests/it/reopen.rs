//! Opening, closing, opening again.

use crate::place::Place;
use crate::sample::*;
use muster_domain::host::Report;
use muster_store::{ChangeKind, Database, RowKind, Store, StoreError};

crate::on_both!(
    everything_is_there_after_reopening,
    a_store_dropped_without_closing_loses_nothing_acknowledged,
    closing_writes_what_is_queued_and_refuses_the_rest,
    opening_twice_at_once_migrates_once,
    a_database_of_a_newer_release_is_left_alone,
    an_unreadable_document_is_named,
);

async fn everything_is_there_after_reopening(place: &Place) {
    let store = place.open().await;
    let (mut host, mut cluster) = (host(), cluster());
    let mut change = of([put_with(host.clone(), &[(Report::Inventory, Some("{}"))])]);
    change.puts.push(cluster.clone().into());
    change.journal.push(entry("hello"));
    store.commit(change).await.unwrap();
    store.checkins_flush(&[(host.key(), at(1), 2)]).await.unwrap();
    let feed = store.changes_after(0, 10).await.unwrap();
    store.close().await;

    let store = place.open().await;
    (host.revision, cluster.revision) = (1, 1);
    assert_eq!(store.find(host.key()).await.unwrap().as_ref(), Some(&host));
    assert_eq!(store.find(cluster.id).await.unwrap(), Some(cluster));
    assert_eq!(store.host_reports(host.key()).await.unwrap().len(), 1);
    assert_eq!(store.checkins_load().await.unwrap(), [(host.key(), at(1), 2)]);
    assert_eq!(store.changes_after(0, 10).await.unwrap(), feed);
    assert_eq!(store.counts().await.unwrap().events, 1);
    assert_eq!(saved(&store, host).await.revision, 2);
    assert_eq!(store.changes_last().await.unwrap(), feed.len() as i64 + 1);
}

async fn a_store_dropped_without_closing_loses_nothing_acknowledged(place: &Place) {
    let mut hosts = Vec::new();
    for _ in 0..3 {
        let store = place.open().await;
        hosts.push(saved(&store, host()).await);
        drop(store);
    }
    let store = place.open().await;
    for host in hosts {
        assert_eq!(store.find(host.key()).await.unwrap(), Some(host));
    }
}

async fn closing_writes_what_is_queued_and_refuses_the_rest(place: &Place) {
    let store = place.open().await;
    let writers: Vec<_> = (0..200)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let host = host();
                (host.key(), store.commit(of([put(host)])).await)
            })
        })
        .collect();
    saved(&store, host()).await;
    store.close().await;
    store.close().await;
    let late = store.commit(of([put(host())])).await;
    assert!(matches!(late, Err(StoreError::Unavailable(_))), "{late:?}");
    assert!(store.ping().await.is_err());

    let store = place.open().await;
    for writer in writers {
        let (key, answer) = writer.await.unwrap();
        assert_eq!(store.find(key).await.unwrap().is_some(), answer.is_ok());
    }
}

async fn opening_twice_at_once_migrates_once(place: &Place) {
    // A file has one hub; see `home`.
    if !place.is_postgres() {
        return;
    }
    let (one, two) = tokio::join!(place.open(), place.open());
    let host = saved(&one, host()).await;
    assert_eq!(two.find(host.key()).await.unwrap(), Some(host));
}

async fn a_database_of_a_newer_release_is_left_alone(place: &Place) {
    place.open().await.close().await;
    place
        .tamper("update meta set value = '999' where key = 'schema'")
        .await;
    let error = Store::open(&place.database).await.err().unwrap();
    assert!(
        matches!(&error, StoreError::Corrupt { detail, .. } if detail.contains("999")),
        "{error:?}"
    );
}

async fn an_unreadable_document_is_named(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    place.tamper("update hosts set doc = 'rubbish'").await;
    let error = store.find(host.key()).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Unreadable(row) if row.kind == RowKind::Noun(ChangeKind::Host) && row.host == Some(host.key())),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_store_in_memory_works_like_any_other() {
    let store = Store::open(&Database::Memory).await.unwrap();
    let host = saved(&store, host()).await;
    let (found, next) = tokio::join!(store.find(host.key()), store.commit(of([put(host.clone())])));
    assert_eq!(
        (found.unwrap().is_some(), next.unwrap().revisions),
        (true, vec![2])
    );
    store.close().await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let error = Store::open(&Database::Postgres("postgres://nobody@127.0.0.1:1/none".into()))
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}
