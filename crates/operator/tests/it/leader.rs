//! Several operators side by side: one acts, another takes over.

use crate::world::{Running, World, run};
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

/// The value of a line of the metrics.
async fn figure(running: &Running, line: &str) -> u64 {
    let text = running.metrics().await.unwrap_or_default();
    let found = text.lines().find_map(|one| one.strip_prefix(line));
    found
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or_default()
}

/// Waits until the operator has read leases so often that it could have done anything else meanwhile.
async fn a_while(world: &World, running: &Running) {
    let reads = || {
        running
            .requests
            .snapshot()
            .get("get")
            .copied()
            .unwrap_or_default()
    };
    let before = reads();
    world
        .until("it reads the leases again and again", async || {
            reads() >= before + 8
        })
        .await;
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
    a_while(&world, &second).await;
    assert_eq!(
        second.requests.writes(),
        0,
        "the standby writes nothing, whatever it is"
    );
    first.kill();
    world.infra_env("two", |_| ()).await;
    world
        .until("the second has taken over", async || {
            is_available(&world, "two").await
        })
        .await;
    assert!(second.requests.writes() > 0);
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
    // Of one group, so that it either acts or does not.
    let options = Options {
        controllers: "infra-env".parse().unwrap(),
        ..electing(&world)
    };
    let first = run(options).await;
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
    let before = first.requests.writes();
    world.infra_env("one", |_| ()).await;
    let waiting = "muster_operator_queue_length{controller=\"infra-env\"}";
    world
        .until("it has read what there is to do", async || {
            figure(&first, waiting).await > 0
        })
        .await;
    a_while(&world, &first).await;
    assert_eq!(first.requests.writes(), before, "it has lost the right to");
    assert!(!is_available(&world, "one").await);
    leases.delete(name, &DeleteParams::default()).await.unwrap();
    world
        .until("it leads again and acts", async || {
            is_available(&world, "one").await
        })
        .await;
    first.stop().await;
}
