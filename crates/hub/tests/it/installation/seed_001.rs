//! The test plan of the return of hosts, each line a test named after it, and its user stories.
//!
//! Lines about `BareMetalHost` resources need a power controller and are not here. Where the plan names the `Bound`
//! condition with the reason `UnbindingPendingUserAction`, the tests look for what it is made of: the host names no
//! cluster, and its status is `unbinding-pending-user-action`.

use super::{THREE, boot_home, is_free};
use crate::world::World;
use uuid::Uuid;

/// What hosts were when their cluster lost them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Were {
    Installed,
    Cancelled,
    Error,
    AddedToExistingCluster,
}

/// A late-bound cluster with machine 0 in that state.
async fn lend(were: Were) -> (World, Uuid) {
    let mut world = match were {
        Were::Error => World::with_machines(200, 3, &["fail:#0:writing-image-to-disk"]).await,
        _ => World::with_machines(200, 4, &[]).await,
    };
    let cluster = match were {
        Were::Installed => world.installed_cluster("prod", &THREE).await,
        Were::Cancelled => {
            let cluster = world.ready_cluster("prod", &THREE).await;
            world.install(cluster).await;
            // From there on its disk boots something else than discovery.
            world.until_stage(0, "Writing image to disk", 60).await;
            world.cancel(cluster).await;
            cluster
        }
        Were::Error => {
            let cluster = world.ready_cluster("prod", &THREE).await;
            world.install(cluster).await;
            world.until_cluster(cluster, "error", 60).await;
            cluster
        }
        Were::AddedToExistingCluster => {
            let cluster = world.installed_cluster("prod", &[1, 2, 3]).await;
            assert_eq!(world.act(cluster, "allow-add-hosts").await.0, 202);
            assert_eq!(world.bind_to(0, cluster).await.0, 200);
            world.until_host(0, "known", 15).await;
            assert_eq!(world.host_act(0, "install").await.0, 202);
            world.until_host(0, "added-to-existing-cluster", 60).await;
            cluster
        }
    };
    let expected = match were {
        Were::Installed => "installed",
        Were::Cancelled => "cancelled",
        Were::Error => "error",
        Were::AddedToExistingCluster => "added-to-existing-cluster",
    };
    assert_eq!(world.status(0).await, expected);
    (world, cluster)
}

async fn waits_for_a_boot(world: &mut World, machine: usize) {
    let host = world.host(machine).await;
    assert_eq!(host["status"], "unbinding-pending-user-action", "{host}");
    assert!(is_free(&host), "{host}");
    let told = world.explain_host(machine).await;
    assert!(
        told["next_action"]
            .as_str()
            .unwrap_or_default()
            .contains("discovery image"),
        "{told}"
    );
}

/// The plan's last word about either list: it waits, and the next discovery boot brings it back.
async fn comes_back(world: &mut World) {
    waits_for_a_boot(world, 0).await;
    boot_home(world, &[0]).await;
    assert!(is_free(&world.host(0).await));
    assert_eq!(world.receipts(0).await.len(), 1);
}

async fn delete(were: Were) {
    let (mut world, cluster) = lend(were).await;
    world.delete_cluster(cluster).await;
    comes_back(&mut world).await;
}

async fn unbind(were: Were) {
    let (mut world, cluster) = lend(were).await;
    assert_eq!(world.unbind(0).await, 200);
    comes_back(&mut world).await;
    assert_ne!(world.cluster_status(cluster), "gone");
}

mod create_a_cluster_with_agents_not_using_late_binding {
    use super::*;

    #[tokio::test]
    async fn delete_the_cluster_agents_should_be_deleted() {
        let mut world = World::empty(201).await;
        let cluster = world.new_cluster("owner").await;
        let pool = world.pool("own", Some(cluster)).await;
        world.boot(pool, 3, &[]);
        world.until_cluster(cluster, "ready", 20).await;
        world.delete_cluster(cluster).await;
        for machine in THREE {
            let path = world.host_path(machine);
            assert_eq!(world.call("GET", &path, None).await.0, 404);
            assert_eq!(
                world.store.find(world.key(machine)).await.expect("readable"),
                None
            );
        }
    }
}

mod create_a_cluster_with_agents_using_late_binding {
    use super::*;

    #[tokio::test]
    async fn delete_the_cluster_agents_should_not_be_deleted() {
        let mut world = World::with_machines(202, 3, &[]).await;
        let cluster = world.ready_cluster("prod", &THREE).await;
        world.delete_cluster(cluster).await;
        for machine in THREE {
            assert_eq!(world.host(machine).await["status"], "unbinding");
        }
        // They never left discovery, so they are back without anybody's help.
        world.until_hosts(&THREE, "known-unbound", 10).await;
    }

    #[tokio::test]
    async fn the_agents_should_not_have_a_reference_to_the_cluster() {
        let mut world = World::with_machines(203, 3, &[]).await;
        let cluster = world.ready_cluster("prod", &THREE).await;
        world.delete_cluster(cluster).await;
        for machine in THREE {
            assert!(is_free(&world.host(machine).await));
            let row = world
                .store
                .find(world.key(machine))
                .await
                .expect("readable")
                .expect("kept");
            let text = serde_json::to_string(&row).expect("plain data");
            assert!(!text.contains(&cluster.to_string()), "{text}");
        }
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agents_were_installed() {
        delete(Were::Installed).await;
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agents_were_cancelled() {
        delete(Were::Cancelled).await;
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agents_were_in_error() {
        delete(Were::Error).await;
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agents_were_added_to_an_existing_cluster() {
        delete(Were::AddedToExistingCluster).await;
    }
}

mod install_a_cluster_with_agents_using_late_binding {
    use super::*;

    #[tokio::test]
    async fn unbind_an_installed_agent() {
        let (mut world, cluster) = lend(Were::Installed).await;
        assert_eq!(world.unbind(0).await, 200);
        waits_for_a_boot(&mut world, 0).await;
        // The rest of the cluster is none of its business.
        assert_eq!(world.cluster_status(cluster), "installed");
        assert_eq!(world.statuses(&[1, 2]).await, ["installed"; 2]);
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agent_was_installed() {
        unbind(Were::Installed).await;
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agent_was_cancelled() {
        unbind(Were::Cancelled).await;
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agent_was_in_error() {
        unbind(Were::Error).await;
    }

    #[tokio::test]
    async fn not_bound_and_pending_user_action_if_the_agent_was_added_to_an_existing_cluster() {
        unbind(Were::AddedToExistingCluster).await;
    }
}

#[tokio::test]
async fn story_1_hosts_not_used_any_more_are_available_again_as_unbound_agents_in_their_infra_env() {
    let (mut world, cluster) = lend(Were::Installed).await;
    world.delete_cluster(cluster).await;
    boot_home(&mut world, &THREE).await;
    for machine in THREE {
        let host = world.host(machine).await;
        assert_eq!(
            host["infra_env_id"],
            world.infra_env.to_string().as_str(),
            "{host}"
        );
        assert!(is_free(&host), "{host}");
    }
}

#[tokio::test]
async fn story_2_agents_of_a_deleted_cluster_are_available_to_create_a_new_cluster() {
    let (mut world, cluster) = lend(Were::Installed).await;
    world.delete_cluster(cluster).await;
    boot_home(&mut world, &THREE).await;
    world.installed_cluster("next", &THREE).await;
    assert_eq!(world.statuses(&THREE).await, ["installed"; 3]);
}

#[tokio::test]
async fn story_3_an_unbound_agent_is_available_for_a_new_cluster_even_if_it_was_installed_cancelled_or_failed()
 {
    for were in [Were::Installed, Were::Cancelled, Were::Error] {
        let (mut world, cluster) = lend(were).await;
        for machine in THREE {
            assert_eq!(world.unbind(machine).await, 200);
        }
        boot_home(&mut world, &THREE).await;
        let next = world.installed_cluster("next", &THREE).await;
        assert_ne!(next, cluster);
        assert_eq!(world.statuses(&THREE).await, ["installed"; 3], "after {were:?}");
    }
}
