//! Nothing points to something that is gone, whoever was faster.

use crate::place::Place;
use crate::sample::*;
use muster_domain::host::Host;
use muster_store::{Commit, Store};

crate::on_both!(
    a_host_cannot_be_lent_to_a_cluster_that_is_gone,
    a_cluster_that_has_just_got_a_host_is_not_deleted_over_its_head,
    of_a_bind_and_a_delete_at_once_exactly_one_wins,
    a_pool_is_deleted_only_when_it_is_empty,
);

fn strict(commit: Commit) -> Commit {
    Commit {
        in_any_order: false,
        ..commit
    }
}

async fn pool(store: &Store) -> muster_domain::infra_env::InfraEnv {
    let mut pool = infra_env();
    let write = put(pool.clone());
    pool.revision = store.commit(of([write])).await.unwrap().revisions[0];
    pool
}

async fn saved_cluster(store: &Store) -> muster_domain::cluster::Cluster {
    let mut row = cluster();
    let write = put(row.clone());
    row.revision = store.commit(of([write])).await.unwrap().revisions[0];
    row
}

async fn a_host_cannot_be_lent_to_a_cluster_that_is_gone(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    let mut host = saved(&store, host_in(pool.id)).await;
    let gone = saved_cluster(&store).await;
    let delete = delete(gone.id, gone.revision);
    store.commit(strict(of([delete]))).await.unwrap();
    host.cluster = Some(gone.id);
    assert_stale(store.commit(strict(of([put(host)]))).await, "cluster");
}

async fn a_cluster_that_has_just_got_a_host_is_not_deleted_over_its_head(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    let cluster = saved_cluster(&store).await;
    let mut host = saved(&store, host_in(pool.id)).await;
    host.cluster = Some(cluster.id);
    let host = saved(&store, host).await;
    let delete = || delete(cluster.id, cluster.revision);
    assert_stale(store.commit(strict(of([delete()]))).await, "cluster");
    // With its host given back in the same commit it goes.
    let freed = Host {
        cluster: None,
        ..host
    };
    let whole = of([put(freed), delete()]);
    store.commit(strict(whole)).await.unwrap();
}

async fn of_a_bind_and_a_delete_at_once_exactly_one_wins(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    for _ in 0..20 {
        let cluster = saved_cluster(&store).await;
        let mut host = saved(&store, host_in(pool.id)).await;
        host.cluster = Some(cluster.id);
        let delete = delete(cluster.id, cluster.revision);
        let (bound, deleted) = tokio::join!(
            store.commit(strict(of([put(host)]))),
            store.commit(strict(of([delete])))
        );
        assert!(bound.is_ok() != deleted.is_ok(), "{bound:?} {deleted:?}");
    }
}

async fn a_pool_is_deleted_only_when_it_is_empty(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    let host = saved(&store, host_in(pool.id)).await;
    let delete_pool = || delete(pool.id, pool.revision);
    assert_stale(store.commit(strict(of([delete_pool()]))).await, "infra-env");
    let remove = delete(host.key(), host.revision);
    store.commit(strict(of([remove]))).await.unwrap();
    store.commit(strict(of([delete_pool()]))).await.unwrap();
    assert_stale(
        store.commit(strict(of([put(host_in(pool.id))]))).await,
        "infra-env",
    );
}
