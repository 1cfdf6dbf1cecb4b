//! A change made on an old reading is refused, and nothing of it is written.

use crate::place::Place;
use crate::sample::*;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Effect, Report};
use muster_domain::id::ClusterId;
use muster_store::{EventQuery, StoreError};
use uuid::Uuid;

crate::on_both!(
    of_two_writers_exactly_one_wins,
    hundreds_of_writers_on_one_row_lose_no_acknowledged_change,
    a_second_insert_is_stale,
    what_is_gone_cannot_be_written_or_deleted,
    clusters_and_infra_envs_are_guarded_too,
    a_commit_of_many_rows_is_all_or_nothing,
    a_commit_cannot_write_a_row_twice,
    a_reborn_host_is_not_mistaken_for_the_one_that_died,
    a_row_changed_past_the_door_is_not_overwritten,
);

async fn of_two_writers_exactly_one_wins(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    let (mut a, mut b) = (host.clone(), host.clone());
    a.requested_hostname = Some("a".into());
    b.requested_hostname = Some("b".into());
    let (first, second) = tokio::join!(store.commit(of([put(a)])), store.commit(of([put(b)])));
    let winner = match (first, second) {
        (Ok(_), lost) => {
            assert_stale(lost, "host");
            "a"
        }
        (lost, Ok(_)) => {
            assert_stale(lost, "host");
            "b"
        }
        both => panic!("nobody won: {both:?}"),
    };
    let now = store.find(host.key()).await.unwrap().unwrap();
    assert_eq!(
        (now.revision, now.requested_hostname.as_deref()),
        (2, Some(winner))
    );
}

async fn hundreds_of_writers_on_one_row_lose_no_acknowledged_change(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    let writers: Vec<_> = (0..300)
        .map(|number: i64| {
            let (store, key) = (store.clone(), host.key());
            tokio::spawn(async move {
                let mut acknowledged = 0;
                // Reads, adds one, writes; three tries, win or lose.
                for _ in 0..3 {
                    let mut host = store.find(key).await.unwrap().unwrap();
                    host.clock += 1;
                    host.agent_version = number.to_string();
                    match store.commit(of([put(host)])).await {
                        Ok(_) => acknowledged += 1,
                        Err(StoreError::Stale(_)) => {}
                        Err(other) => panic!("{other:?}"),
                    }
                }
                acknowledged
            })
        })
        .collect();
    let mut acknowledged = 0;
    for writer in writers {
        acknowledged += writer.await.unwrap();
    }
    let now = store.find(host.key()).await.unwrap().unwrap();
    assert!(acknowledged > 0);
    assert_eq!((now.clock, now.revision), (acknowledged, acknowledged + 1));
    assert_eq!(store.changes_last().await.unwrap(), acknowledged + 1);
}

async fn a_second_insert_is_stale(place: &Place) {
    let store = place.open().await;
    let host = host();
    let inserts = (0..20).map(|_| store.commit(of([put(host.clone())])));
    let answers = futures_util::future::join_all(inserts).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_stale(store.commit(of([put(host)])).await, "host");
}

async fn what_is_gone_cannot_be_written_or_deleted(place: &Place) {
    let store = place.open().await;
    let mut host = host();
    host.revision = 3;
    assert_stale(store.commit(of([put(host.clone())])).await, "host");
    for revision in [0, 1] {
        assert_stale(store.commit(of([delete(host.key(), revision)])).await, "host");
    }
    assert_eq!(store.changes_last().await.unwrap(), 0);
}

async fn clusters_and_infra_envs_are_guarded_too(place: &Place) {
    let store = place.open().await;
    let (cluster, infra_env) = (cluster(), infra_env());
    let writes = || (of([put(cluster.clone())]), of([put(infra_env.clone())]));
    let (first, second) = (writes(), writes());
    store.commit(first.0).await.unwrap();
    store.commit(first.1).await.unwrap();
    assert_stale(store.commit(second.0).await, "cluster");
    assert_stale(store.commit(second.1).await, "infra-env");
    assert_stale(store.commit(of([delete(cluster.id, 2)])).await, "cluster");
    assert_stale(store.commit(of([delete(infra_env.id, 2)])).await, "infra-env");
}

async fn a_commit_of_many_rows_is_all_or_nothing(place: &Place) {
    let store = place.open().await;
    let (one, two) = (saved(&store, host()).await, saved(&store, host()).await);
    let new = host();
    let moved = saved(&store, two.clone()).await;
    let seq = store.changes_last().await.unwrap();

    let mut change = of([
        put_with(one.clone(), &[(Report::Inventory, Some("{}"))]),
        put(new.clone()),
        delete(two.key(), two.revision),
    ]);
    change.puts.push(cluster().into());
    change.journal.push(entry("never"));
    change.effects.push(Effect::FinishMove {
        host: one.key(),
        to: ClusterId(Uuid::new_v4()),
    });
    // Others in the same batch go their way.
    let other = saved(&store, host()).await;
    let neighbours = (0..10).map(|_| store.commit(of([put(host())])));
    let (answer, neighbours) = tokio::join!(
        store.commit(change.clone()),
        futures_util::future::join_all(neighbours)
    );
    assert_stale(answer, "host");
    assert!(neighbours.iter().all(Result::is_ok));

    assert_eq!(store.find(one.key()).await.unwrap(), Some(one.clone()));
    assert!(store.host_reports(one.key()).await.unwrap().is_empty());
    assert_eq!(store.find(new.key()).await.unwrap(), None);
    assert_eq!(store.find(two.key()).await.unwrap().as_ref(), Some(&moved));
    assert!(store.list::<Cluster>().await.unwrap().is_empty());
    assert_eq!(store.events_list(&EventQuery::default()).await.unwrap().total, 0);
    assert!(store.outbox_due(at(3600), 10).await.unwrap().is_empty());
    assert_eq!(store.changes_last().await.unwrap(), seq + 11);
    assert_eq!(store.find(other.key()).await.unwrap().as_ref(), Some(&other));

    change.deletes[0].revision = moved.revision;
    let done = store.commit(change).await.unwrap();
    assert_eq!(
        done.revisions,
        [2, 1, 1, 3],
        "two hosts, a cluster, and the host that is gone"
    );
    assert_eq!(done.seq, seq + 15);
}

async fn a_commit_cannot_write_a_row_twice(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    let mut next = host.clone();
    next.revision += 1;
    assert_stale(store.commit(of([put(host.clone()), put(next)])).await, "host");
    assert_eq!(store.find(host.key()).await.unwrap(), Some(host));
}

async fn a_reborn_host_is_not_mistaken_for_the_one_that_died(place: &Place) {
    let store = place.open().await;
    let old = saved(&store, host()).await;
    store.commit(of([delete(old.key(), 1)])).await.unwrap();
    let mut young = old.clone();
    young.revision = 0;
    let young = saved(&store, young).await;
    assert_eq!(young.revision, 3);
    assert_stale(store.commit(of([put(old)])).await, "host");
    assert_eq!(store.find(young.key()).await.unwrap(), Some(young));
}

async fn a_row_changed_past_the_door_is_not_overwritten(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    place.tamper("update hosts set revision = 7").await;
    assert_stale(store.commit(of([put(host.clone())])).await, "host");
    assert_eq!(store.find(host.key()).await.unwrap().unwrap().revision, 7);
}
