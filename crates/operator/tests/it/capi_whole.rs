//! The whole way of a host through machines of Cluster API: discovered, taken, installed, named, given back, taken again.

use crate::lent::{machine, stage, state};
use crate::machines::{Capi, TOKEN, agent_of, says};
use crate::world::World;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use muster_contract::v2::install::{HostStage, ReportHostProgress};
use muster_operator::crd::infra_env::AgentApproval;
use muster_operator::crd::keys::label;
use muster_operator::crd::{AgentClusterInstall, AgentMachine, ClusterDeployment};
use serde_json::json;
use std::path::PathBuf;
use uuid::Uuid;

/// Nobody connects to what it vouches for.
const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";

/// A ClusterDeployment that is there before its AgentCluster, as after a restore, and whose kubeconfig leads to the API
/// server of the tests.
pub async fn restored_deployment(world: &World, name: &str) {
    let path: PathBuf = std::env::var_os("MUSTER_TEST_KUBECONFIG").unwrap().into();
    let secret = Secret {
        metadata: crate::world::named("admin-kubeconfig"),
        string_data: Some([("kubeconfig".to_owned(), std::fs::read_to_string(path).unwrap())].into()),
        ..Secret::default()
    };
    world.create(&world.clusters, &secret).await;
    world
        .pull_secret(&world.clusters, "pull", crate::world::PULL_SECRET)
        .await;
    let authority = Secret {
        metadata: crate::world::named("ignition-server-ca-cert"),
        string_data: Some([("tls.crt".to_owned(), AUTHORITY.to_owned())].into()),
        ..Secret::default()
    };
    world.create(&world.clusters, &authority).await;
    let id = Uuid::new_v4().to_string();
    let deployment: ClusterDeployment = serde_json::from_value(json!({
        "apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment",
        "metadata": { "name": name, "labels": { label::AGENT_CLUSTER: name } },
        "spec": {
            "clusterName": name, "baseDomain": "example.com", "installed": true,
            "platform": { "agentBareMetal": { "agentSelector": {} } },
            "pullSecretRef": { "name": "pull" },
            "clusterInstallRef": { "group": "extensions.hive.openshift.io", "version": "v1beta1",
                "kind": "AgentClusterInstall", "name": name },
            "clusterMetadata": { "clusterID": id, "infraID": id,
                "adminKubeconfigSecretRef": { "name": "admin-kubeconfig" } },
        },
    }))
    .unwrap();
    world.create(&world.clusters, &deployment).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_taken_installed_named_given_back_and_taken_again() {
    let mut world = World::start().await;
    let pool = world
        .pool_of("lab", |infra_env| {
            infra_env.spec.agent_approval = Some(AgentApproval { auto_approve: true });
        })
        .await;
    let remote = world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.return_boots = None;
    });
    let host = machine(pool, 0).id();
    let name = host.to_string();
    world.agent_in(&name, "known-unbound").await;
    let node = format!("node-{}", &name[..8]);
    world
        .change_agent(&name, json!({ "spec": { "hostname": node } }))
        .await
        .unwrap();
    restored_deployment(&world, "blue").await;
    world.capi_cluster(Capi::V1Beta2, "blue").await;
    world.user_data("user-data", TOKEN).await;
    let data = || json!({ "dataSecretName": "user-data" });
    world
        .capi_machine_with(Capi::V1Beta2, "blue", "m1", json!({}), data())
        .await;
    let lent = world.lent_machine("m1").await;
    assert_eq!(agent_of(&lent).as_deref(), Some(name.as_str()));
    let install: AgentClusterInstall = world.get(&world.clusters, "blue").await;
    assert!(install.spec.image_set_ref.is_none());
    // Nobody has to ask for it: an approved host of a running cluster is installed.
    world
        .agent_when(&name, "rebooting", |agent| stage(agent) == "Rebooting")
        .await;
    let row = world.hub.host(pool, host).await.unwrap();
    assert_eq!(row.machine_config_pool_name, "ignition");
    let nodes: Api<Node> = Api::all(world.kube.clone());
    let new: Node = serde_json::from_value(json!({ "metadata": { "name": node } })).unwrap();
    nodes.create(&PostParams::default(), &new).await.unwrap();
    let done = ReportHostProgress {
        current_stage: Some(HostStage::Done),
        progress_info: None,
    };
    world.hub.report_host_progress(pool, host, &done).await.unwrap();
    let ready = world
        .machine_when("m1", "ready", |machine| {
            machine.status.as_ref().is_some_and(|status| status.ready)
        })
        .await;
    assert_eq!(says(&ready, "Ready"), ("True".into(), "Ready".into()));
    let id = format!("agent://{name}");
    let named = async || {
        let found = nodes.get(&node).await.unwrap();
        found.spec.and_then(|spec| spec.provider_id).as_deref() == Some(id.as_str())
    };
    world.until("the node knows which machine it is", named).await;
    world.operator().idle().await;
    world.assert_converged().await;
    // The machine goes, and another one waits for a host.
    world
        .capi_machine_with(Capi::V1Beta2, "blue", "m2", json!({}), data())
        .await;
    world
        .machine_when("m2", "waits", |machine| {
            says(machine, "Ready").1 == "NoSuitableAgents"
        })
        .await;
    world.terminate(Capi::V1Beta2, "m1").await;
    world.unhooked("m1").await;
    let agent = world.agent(&name).await;
    assert!(
        state(&agent) == "unbinding-pending-user-action" || state(&agent).ends_with("-unbound"),
        "{}",
        state(&agent)
    );
    assert_eq!(
        world.hub.host(pool, host).await.unwrap().cluster_id,
        None,
        "out of the cluster first"
    );
    assert!(remote.boot_discovery(0));
    let again = world.lent_machine("m2").await;
    assert_eq!(agent_of(&again).as_deref(), Some(name.as_str()));
    world
        .agent_when(&name, "belongs to the next", |agent| {
            !state(agent).ends_with("-unbound")
        })
        .await;
    let machines = world.api::<AgentMachine>(&world.clusters);
    machines.delete("m1", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentMachine>(&world.clusters, "m1").await;
    nodes.delete(&node, &DeleteParams::default()).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_deleted_takes_its_deployment_along_unless_it_is_paused() {
    use muster_operator::crd::AgentCluster;
    let world = World::without_operator().await;
    let provider = world.provider().await;
    let clusters = world.api::<AgentCluster>(&world.clusters);
    let ready = |cluster: &AgentCluster| cluster.status.as_ref().is_some_and(|status| status.ready);
    for (name, paused) in [("gone", false), ("moved", true)] {
        world.hosted_cluster(Capi::V1Beta2, name).await;
        world.when(&world.clusters, name, "ready", ready).await;
        if paused {
            let pause = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "true" } } });
            world
                .patch::<AgentCluster>(&world.clusters, name, pause)
                .await
                .unwrap();
        }
        clusters.delete(name, &DeleteParams::default()).await.unwrap();
        world.gone::<AgentCluster>(&world.clusters, name).await;
    }
    world.gone::<ClusterDeployment>(&world.clusters, "gone").await;
    world.gone::<AgentClusterInstall>(&world.clusters, "gone").await;
    let kept: ClusterDeployment = world.get(&world.clusters, "moved").await;
    assert!(kept.owner_references().is_empty() && kept.metadata.deletion_timestamp.is_none());
    provider.stop().await;
}
