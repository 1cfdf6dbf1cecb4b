//! Check-ins and tombstones: who polled, and who is gone.

use crate::place::Place;
use crate::sample::*;

crate::on_both!(
    a_flush_keeps_the_latest_checkin_of_each_host,
    a_checkin_changes_neither_row_nor_feed,
    a_deleted_host_leaves_a_tombstone_until_it_returns,
    old_tombstones_can_be_pruned,
);

async fn a_flush_keeps_the_latest_checkin_of_each_host(place: &Place) {
    let store = place.open().await;
    let hosts: Vec<_> = (0..2500).map(|_| host()).collect();
    store.commit(of(hosts.iter().cloned().map(put))).await.unwrap();
    let first: Vec<_> = hosts.iter().map(|host| (host.key(), at(1), 11)).collect();
    store.checkins_flush(&first).await.unwrap();
    store
        .checkins_flush(&[
            (hosts[0].key(), at(2), 12),
            (hosts[1].key(), at(2), 12),
            (hosts[0].key(), at(3), 13),
        ])
        .await
        .unwrap();
    let mut wanted = first;
    wanted[0] = (hosts[0].key(), at(3), 13);
    wanted[1] = (hosts[1].key(), at(2), 12);
    wanted.sort();
    let mut loaded = store.checkins_load().await.unwrap();
    loaded.sort();
    assert_eq!(loaded, wanted);
}

async fn a_checkin_changes_neither_row_nor_feed(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    store.checkins_flush(&[(host.key(), at(1), 0)]).await.unwrap();
    assert_eq!(store.changes_last().await.unwrap(), 1);
    saved(&store, host).await;
}

async fn a_deleted_host_leaves_a_tombstone_until_it_returns(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    store.checkins_flush(&[(host.key(), at(1), 0)]).await.unwrap();
    let mut delete = of([delete(host.key(), 1)]);
    delete.at = at(60);
    store.commit(delete).await.unwrap();
    assert_eq!(store.tombstones_load().await.unwrap(), [(host.key(), at(60))]);
    assert_eq!(store.checkins_load().await.unwrap(), []);
    // Flushed too late: the host does not count as alive through this.
    store.checkins_flush(&[(host.key(), at(61), 0)]).await.unwrap();
    assert_eq!(store.checkins_load().await.unwrap(), []);

    let mut back = host.clone();
    back.revision = 0;
    saved(&store, back).await;
    assert_eq!(store.tombstones_load().await.unwrap(), []);
}

async fn old_tombstones_can_be_pruned(place: &Place) {
    let store = place.open().await;
    let mut keys = Vec::new();
    for seconds in [0, 10, 20] {
        let host = saved(&store, host()).await;
        let mut delete = of([delete(host.key(), 1)]);
        delete.at = at(seconds);
        store.commit(delete).await.unwrap();
        keys.push(host.key());
    }
    assert_eq!(store.tombstones_prune(at(20)).await.unwrap(), 2);
    assert_eq!(store.tombstones_load().await.unwrap(), [(keys[2], at(20))]);
}
