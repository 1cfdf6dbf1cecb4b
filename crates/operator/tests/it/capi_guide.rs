//! The guide for Cluster API, carried out as it is written. Cluster API itself does not run here: what it makes of a
//! MachineDeployment is made by hand.

use crate::guides::{blocks, carry_out};
use crate::lent::machine;
use crate::machines::{Capi, agent_of, holder};
use crate::world::World;
use k8s_openapi::api::core::v1::Secret;
use muster_operator::crd::AgentMachineTemplate;
use muster_operator::crd::infra_env::AgentApproval;
use serde_json::json;
use std::path::Path;

const GUIDE: &str = include_str!("../../../../docs/guides/capi.md");

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_of_cluster_api_can_be_followed() {
    let mut world = World::start().await;
    let home = tempfile::tempdir().unwrap();
    std::fs::copy(&world.server.admin, home.path().join("blue.kubeconfig")).unwrap();
    let pool = world
        .pool_of("lab", |infra_env| {
            infra_env.spec.agent_approval = Some(AgentApproval { auto_approve: true });
        })
        .await;
    world.fleet(pool, 1, |config| config.first_index = 0);
    let agent = machine(pool, 0).id().to_string();
    world.agent_in(&agent, "known-unbound").await;
    // A part of two objects that HyperShift has, to be read and not to be applied; and a subresource of Cluster API.
    let only_read =
        |text: &str| text.starts_with("# HostedCluster") || text.contains("scale machinedeployment");
    let mut done = 0;
    for block in blocks(GUIDE).iter().filter(|block| !only_read(&block.text)) {
        let said = carry_out(&world, home.path(), block).await;
        assert_eq!(said.code, 0, "{}\n{}{}", block.text, said.out, said.err);
        done += 1;
        if block.text.contains("apply -f machines.yaml") {
            let template: AgentMachineTemplate = world.get(&world.clusters, "blue-workers").await;
            let spec = json!(template.spec.template.spec);
            let data = json!({ "dataSecretName": "blue-workers" });
            world
                .capi_machine_with(Capi::V1Beta1, "blue", "blue-1", spec, data)
                .await;
        }
        if block.text.contains("condition=AgentReserved") {
            assert!(
                said.out.contains("blue-1: ") && said.out.contains("The machine took"),
                "{}",
                said.out
            );
        }
    }
    assert!(done >= 9, "{done} blocks");
    let lent = world.lent_machine("blue-1").await;
    assert_eq!(agent_of(&lent), Some(agent.clone()));
    world.get::<Secret>(&world.clusters, "agent-blue-workers").await;
    world
        .agent_when(&agent, "belongs to the cluster", |agent| {
            agent.spec.machine_config_pool == "worker" && !crate::lent::state(agent).ends_with("-unbound")
        })
        .await;
    world.terminate(Capi::V1Beta1, "blue-1").await;
    world.unhooked("blue-1").await;
    assert_eq!(holder(&world.agent(&agent).await), None);
}

#[test]
fn every_file_that_the_guide_of_cluster_api_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides");
    let links = GUIDE
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let files: Vec<_> = links.filter(|link| !link.starts_with("https://")).collect();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        assert!(root.join(file).exists(), "{file}");
    }
}
