//! Several operators side by side: one acts, another takes over.

use crate::world::{World, run};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams};
use muster_operator::crd::infra_env::InfraEnv;
use muster_operator::runtime::lease::Terms;
use muster_operator::{Election, Options};
use serde_json::json;
use std::time::Duration;

fn electing(world: &World) -> Options {
    Options {
        election: Election::On {
            namespace: Some(world.pool.clone()),
            terms: Terms {
                duration: Duration::from_secs(3),
                deadline: Duration::from_secs(2),
                every: Duration::from_millis(300),
            },
        },
        ..world.options()
    }
}

async fn is_available(world: &World, name: &str) -> bool {
    let infra_env: InfraEnv = world.get(&world.pool, name).await;
    infra_env
        .status
        .is_some_and(|status| !status.iso_download_url.is_empty())
}

/// Requests that change something other than the lease, which is put.
fn changes(running: &crate::world::Running) -> u64 {
    let counts = running.requests.snapshot();
    counts.get("patch").copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_operators_one_acts_and_the_other_takes_over() {
    let world = World::without_operator().await;
    let first = run(electing(&world)).await;
    first.idle().await;
    let second = run(electing(&world)).await;
    world.infra_env("one", |_| ()).await;
    world
        .until("the first acts", async || is_available(&world, "one").await)
        .await;
    assert_eq!(changes(&second), 0, "the standby writes nothing");
    first.kill();
    world.infra_env("two", |_| ()).await;
    world
        .until("the second has taken over", async || {
            is_available(&world, "two").await
        })
        .await;
    assert!(changes(&second) > 0);
    second.stop().await;
    let leases = world.api::<Lease>(&world.pool);
    let lease = leases.get("77190dcb.agent-install.openshift.io").await.unwrap();
    assert_eq!(
        lease.spec.unwrap().holder_identity.as_deref(),
        Some(""),
        "given back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_lost_its_lease_stops_acting() {
    let world = World::without_operator().await;
    let first = run(electing(&world)).await;
    first.idle().await;
    let leases = world.api::<Lease>(&world.pool);
    let name = "77190dcb.agent-install.openshift.io";
    // Not guarded: its holder renews it all the time.
    let stolen = json!({ "spec": { "holderIdentity": "somebody else", "leaseDurationSeconds": 3600 } });
    leases
        .patch(name, &PatchParams::default(), &Patch::Merge(stolen))
        .await
        .unwrap();
    world
        .until("it does not lead any more", async || {
            first
                .metrics()
                .await
                .is_some_and(|text| text.contains("muster_operator_leads 0"))
        })
        .await;
    let before = changes(&first);
    world.infra_env("one", |_| ()).await;
    assert_eq!(changes(&first), before);
    leases.delete(name, &DeleteParams::default()).await.unwrap();
    world
        .until("it leads again and acts", async || {
            is_available(&world, "one").await
        })
        .await;
    first.stop().await;
}
