//! The change feed tells every change once, in the order of commits, and can be resumed.

use crate::place::Place;
use crate::sample::*;
use jiff::Timestamp;
use muster_domain::host::Effect;
use muster_domain::id::ClusterId;
use muster_store::{ChangeKind, ChangeOp, ChangesRange, EventQuery};
use std::collections::BTreeMap;
use uuid::Uuid;

crate::on_both!(
    events_outbox_and_feed_come_with_the_row,
    each_change_tells_what_and_where,
    the_feed_can_be_resumed_anywhere,
    two_stores_on_one_database_make_one_feed_without_gaps,
    a_pruned_feed_says_how_far_it_reaches,
);

async fn events_outbox_and_feed_come_with_the_row(place: &Place) {
    let store = place.open().await;
    let host = host();
    let effect = Effect::FinishMove {
        host: host.key(),
        to: ClusterId(Uuid::new_v4()),
    };
    let mut change = of([put(host.clone())]);
    change.request_id = Some(Uuid::new_v4());
    change.journal = vec![host.entry("host_registered", muster_domain::journal::Severity::Info, "hello")];
    change.effects = vec![effect.clone()];
    let done = store.commit(change.clone()).await.unwrap();

    let page = store.events_list(&EventQuery::default()).await.unwrap();
    assert_eq!(page.events.len(), 1);
    assert_eq!(page.events[0].entry, change.journal[0]);
    assert_eq!(
        (page.events[0].at, page.events[0].request_id),
        (change.at, change.request_id)
    );
    let due = store.outbox_due(noon(), 10).await.unwrap();
    assert_eq!(due.iter().map(|item| &item.effect).collect::<Vec<_>>(), [&effect]);
    let feed = store.changes_after(0, 10).await.unwrap();
    assert_eq!((feed.len(), feed[0].seq, done.seq), (1, 1, 1));
}

async fn each_change_tells_what_and_where(place: &Place) {
    let store = place.open().await;
    let mut host = host();
    let (cluster, infra_env) = (cluster(), infra_env());
    host.cluster = Some(cluster.id);
    let mut change = of([put(host.clone())]);
    change.puts.push(cluster.clone().into());
    change.puts.push(infra_env.clone().into());
    store.commit(change).await.unwrap();
    store.commit(of([delete(host.key(), 1)])).await.unwrap();

    let feed = store.changes_after(0, 10).await.unwrap();
    let told: Vec<_> = feed
        .iter()
        .map(|change| (change.kind, change.id, change.op, change.revision))
        .collect();
    assert_eq!(
        told,
        [
            (ChangeKind::Host, host.id.0, ChangeOp::Put, 1),
            (ChangeKind::Cluster, cluster.id.0, ChangeOp::Put, 1),
            (ChangeKind::InfraEnv, infra_env.id.0, ChangeOp::Put, 1),
            (ChangeKind::Host, host.id.0, ChangeOp::Delete, 2),
        ]
    );
    assert_eq!(feed[0].status, host.status().word());
    assert_eq!(
        (feed[0].infra_env, feed[0].cluster),
        (Some(host.infra_env), Some(cluster.id))
    );
    assert_eq!((feed[1].infra_env, feed[1].cluster), (None, Some(cluster.id)));
    assert_eq!((feed[2].infra_env, feed[2].cluster), (Some(infra_env.id), None));
    assert_eq!(
        (feed[3].infra_env, feed[3].cluster),
        (Some(host.infra_env), Some(cluster.id))
    );
    assert_eq!(feed[0].at, noon());
}

async fn the_feed_can_be_resumed_anywhere(place: &Place) {
    let store = place.open().await;
    for _ in 0..25 {
        saved(&store, host()).await;
    }
    let whole = store.changes_after(0, 1000).await.unwrap();
    let mut pieces = Vec::new();
    loop {
        let after = pieces
            .last()
            .map_or(0, |change: &muster_store::Change| change.seq);
        let mut piece = store.changes_after(after, 7).await.unwrap();
        if piece.is_empty() {
            break;
        }
        pieces.append(&mut piece);
    }
    assert_eq!(pieces, whole);
    assert_eq!(
        whole.iter().map(|change| change.seq).collect::<Vec<_>>(),
        (1..=25).collect::<Vec<_>>()
    );
    assert_eq!(store.changes_last().await.unwrap(), 25);
}

/// As two replicas do on PostgreSQL. A reader that follows the feed meanwhile must never be overtaken.
async fn two_stores_on_one_database_make_one_feed_without_gaps(place: &Place) {
    // A file has one hub; see `home`.
    if !place.is_postgres() {
        return;
    }
    const EACH: i64 = 120;
    let stores = [place.open().await, place.open().await];
    let writers = stores.iter().flat_map(|store| {
        (0..EACH).map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let host = saved(&store, host()).await;
                saved(&store, host).await;
            })
        })
    });
    let writers: Vec<_> = writers.collect();
    let (mut seen, mut latest) = (0, BTreeMap::new());
    while seen < 4 * EACH {
        for change in stores[0].changes_after(seen, 50).await.unwrap() {
            assert_eq!(change.seq, seen + 1, "a change came late");
            seen = change.seq;
            let before = latest.insert(change.id, change.revision).unwrap_or(0);
            assert_eq!(
                change.revision,
                before + 1,
                "the changes of a row are out of order"
            );
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(stores[1].changes_last().await.unwrap(), 4 * EACH);
}

async fn a_pruned_feed_says_how_far_it_reaches(place: &Place) {
    let store = place.open().await;
    assert_eq!(
        store.changes_range().await.unwrap(),
        ChangesRange { pruned: 0, last: 0 }
    );
    // The third clock was set back: it must not leave a hole in the middle.
    for seconds in [0, 10, 5, 20] {
        let mut change = of([put(host())]);
        change.at = at(seconds);
        store.commit(change).await.unwrap();
    }
    assert_eq!(store.changes_prune(at(10)).await.unwrap(), 1);
    assert_eq!(
        store.changes_range().await.unwrap(),
        ChangesRange { pruned: 1, last: 4 }
    );
    assert_eq!(store.changes_prune(Timestamp::MAX).await.unwrap(), 3);
    assert_eq!(
        store.changes_range().await.unwrap(),
        ChangesRange { pruned: 4, last: 4 }
    );
    saved(&store, host()).await;
    assert_eq!(
        store.changes_after(4, 10).await.unwrap()[0].seq,
        5,
        "numbers are never used twice"
    );
}
