//! Nothing points to something that is gone, whoever was faster.

use crate::place::Place;
use crate::sample::*;
use muster_domain::host::Host;
use muster_store::{ClusterWrite, Commit, HostWrite, InfraEnvWrite, Store};

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
    let write = InfraEnvWrite::Put {
        infra_env: pool.clone(),
    };
    pool.revision = store.commit(of_infra_env(write)).await.unwrap().infra_envs[0];
    pool
}

async fn saved_cluster(store: &Store) -> muster_domain::cluster::Cluster {
    let mut row = cluster();
    let write = ClusterWrite::Put { cluster: row.clone() };
    row.revision = store.commit(of_cluster(write)).await.unwrap().clusters[0];
    row
}

async fn a_host_cannot_be_lent_to_a_cluster_that_is_gone(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    let mut host = saved(&store, host_in(pool.id)).await;
    let gone = saved_cluster(&store).await;
    let delete = ClusterWrite::Delete {
        id: gone.id,
        revision: gone.revision,
    };
    store.commit(strict(of_cluster(delete))).await.unwrap();
    host.cluster = Some(gone.id);
    assert_stale(store.commit(strict(of_hosts([put(host)]))).await, "cluster");
}

async fn a_cluster_that_has_just_got_a_host_is_not_deleted_over_its_head(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    let cluster = saved_cluster(&store).await;
    let mut host = saved(&store, host_in(pool.id)).await;
    host.cluster = Some(cluster.id);
    let host = saved(&store, host).await;
    let delete = || ClusterWrite::Delete {
        id: cluster.id,
        revision: cluster.revision,
    };
    assert_stale(store.commit(strict(of_cluster(delete()))).await, "cluster");
    // With its host given back in the same commit it goes.
    let freed = Host {
        cluster: None,
        ..host
    };
    let whole = Commit {
        clusters: vec![delete()],
        ..of_hosts([put(freed)])
    };
    store.commit(strict(whole)).await.unwrap();
}

async fn of_a_bind_and_a_delete_at_once_exactly_one_wins(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    for _ in 0..20 {
        let cluster = saved_cluster(&store).await;
        let mut host = saved(&store, host_in(pool.id)).await;
        host.cluster = Some(cluster.id);
        let delete = ClusterWrite::Delete {
            id: cluster.id,
            revision: cluster.revision,
        };
        let (bound, deleted) = tokio::join!(
            store.commit(strict(of_hosts([put(host)]))),
            store.commit(strict(of_cluster(delete)))
        );
        assert!(bound.is_ok() != deleted.is_ok(), "{bound:?} {deleted:?}");
    }
}

async fn a_pool_is_deleted_only_when_it_is_empty(place: &Place) {
    let store = place.open().await;
    let pool = pool(&store).await;
    let host = saved(&store, host_in(pool.id)).await;
    let delete = || InfraEnvWrite::Delete {
        id: pool.id,
        revision: pool.revision,
    };
    assert_stale(store.commit(strict(of_infra_env(delete()))).await, "infra-env");
    let remove = HostWrite::Delete {
        key: host.key(),
        revision: host.revision,
    };
    store.commit(strict(of_hosts([remove]))).await.unwrap();
    store.commit(strict(of_infra_env(delete()))).await.unwrap();
    assert_stale(
        store.commit(strict(of_hosts([put(host_in(pool.id))]))).await,
        "infra-env",
    );
}
