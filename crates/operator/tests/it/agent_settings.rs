//! What people write into Agents and their Secrets, what their hosts get of it, and what is removed again.

use crate::lent::{says, word};
use crate::world::World;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use muster_operator::crd::Agent;
use muster_operator::crd::keys::label;
use serde_json::{Value, json};
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_read_once_labelled_and_followed_from_then_on() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    let secret = |token: &str| Secret {
        metadata: crate::world::named("token"),
        string_data: Some([("ignition-token".to_owned(), token.to_owned())].into()),
        ..Secret::default()
    };
    world.create(&world.clusters, &secret("one")).await;
    let reference = json!({ "namespace": world.clusters, "name": "token" });
    world
        .change_agent(
            &name,
            json!({ "spec": { "ignitionEndpointTokenReference": reference } }),
        )
        .await
        .unwrap();
    let id: Uuid = name.parse().unwrap();
    let row = async || world.hub.host(pool, id).await.unwrap();
    world
        .until("the host has it", async || {
            row().await.ignition_endpoint_token_set
        })
        .await;
    let labelled = |secret: &Secret| {
        secret
            .labels()
            .get(label::WATCH)
            .is_some_and(|value| value == "true")
    };
    world
        .when::<Secret>(&world.clusters, "token", "labelled", labelled)
        .await;
    let before = row().await.updated_at;
    let rotated = json!({ "stringData": { "ignition-token": "two" } });
    world
        .patch::<Secret>(&world.clusters, "token", rotated)
        .await
        .unwrap();
    world
        .until("the host has the new one", async || {
            row().await.updated_at > before
        })
        .await;
    world
        .change_agent(
            &name,
            json!({ "spec": { "ignitionEndpointTokenReference": null } }),
        )
        .await
        .unwrap();
    world
        .until("the host has none", async || {
            !row().await.ignition_endpoint_token_set
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_the_host_does_not_have_is_never_replaced_by_another() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    let hint = json!({ "spec": { "installation_disk_path": "/dev/not-found-by-hints" } });
    world.change_agent(&name, hint).await.unwrap();
    let refused = |agent: &Agent| says(agent, "SpecSynced") == word("False", "InputError");
    world.agent_when(&name, "refused", refused).await;
    world.assert_converged().await;
    world
        .change_agent(&name, json!({ "spec": { "installation_disk_path": null } }))
        .await
        .unwrap();
    world
        .agent_when(&name, "synced", |agent| says(agent, "SpecSynced").0 == "True")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_taken_out_of_an_agent_is_chosen_by_the_hub_again() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    let status = world.agent(&name).await.status.unwrap();
    let found = status.installation_disk_id.clone();
    let mut others = status
        .inventory
        .disks
        .iter()
        .filter(|disk| disk.installation_eligibility.eligible && disk.id != found);
    let disk = others.next_back().expect("a second disk that is good").id.clone();
    let installs_to = async |wanted: &str| {
        world
            .agent_when(&name, wanted, |agent| {
                let status = agent.status.clone().unwrap_or_default();
                status.installation_disk_id == wanted && says(agent, "SpecSynced").0 == "True"
            })
            .await;
    };
    let ask = async |disk: Value| {
        let patch = json!({ "spec": { "installation_disk_id": disk } });
        world.change_agent(&name, patch).await.unwrap();
    };
    ask(json!(disk)).await;
    installs_to(&disk).await;
    ask(json!(null)).await;
    installs_to(&found).await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_not_good_is_followed_and_one_that_is_missing_is_waited_for() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    let reference = json!({ "spec": {
        "fencingCredentialsSecretRef": "bmc",
        "ignitionEndpointTokenReference": { "namespace": world.clusters, "name": "token" },
    }});
    world.change_agent(&name, reference).await.unwrap();
    let synced = |status: &'static str, reason: &'static str| {
        move |agent: &Agent| says(agent, "SpecSynced") == word(status, reason)
    };
    world
        .agent_when(&name, "without its secrets", synced("False", "BackendError"))
        .await;
    let secret = |name: &str, values: &[(&str, &str)]| Secret {
        metadata: crate::world::named(name),
        string_data: Some(
            values
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
        ),
        ..Secret::default()
    };
    let token = secret("token", &[("ignition-token", "t0ken")]);
    world.create(&world.clusters, &token).await;
    let parts = [
        ("address", "redfish://bmc"),
        ("username", "u"),
        ("password", "p"),
        ("certificateVerification", "Perhaps"),
    ];
    world.create(&world.pool, &secret("bmc", &parts)).await;
    world
        .agent_when(&name, "with a bad secret", synced("False", "InputError"))
        .await;
    let mended = json!({ "stringData": { "certificateVerification": "Disabled" } });
    world.patch::<Secret>(&world.pool, "bmc", mended).await.unwrap();
    world.agent_when(&name, "mended", synced("True", "SyncOK")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_out_of_an_agent_is_taken_from_its_host() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.silent_host(pool).await;
    let id: Uuid = name.parse().unwrap();
    let row = async || world.hub.host_rows(id).await.unwrap().hosts.remove(0);
    let patch = json!({ "spec": {
        "hostname": "chosen", "role": "master", "machineConfigPool": "infra", "nodeLabels": { "zone": "north" },
        "ignitionConfigOverrides": "{\"ignition\": {\"version\": \"3.2.0\"}}", "approved": true,
        "ignitionEndpointHTTPHeaders": { "X-Test": "1" },
    }});
    world.change_agent(&name, patch).await.unwrap();
    world
        .until("the host has it all", async || {
            let row = row().await;
            row.given_name == "chosen"
                && row.host.role == "master"
                && row.host.machine_config_pool_name == "infra"
                && row.host.node_labels.contains("north")
                && !row.host.ignition_config_overrides.is_empty()
                && row.ignition_headers_set
                && row.approved
        })
        .await;
    let empty = json!({ "spec": {
        "hostname": null, "role": "", "machineConfigPool": null, "nodeLabels": null, "ignitionConfigOverrides": null,
        "ignitionEndpointHTTPHeaders": null, "approved": false,
    }});
    world.change_agent(&name, empty).await.unwrap();
    world
        .until("the host has nothing of it", async || {
            let row = row().await;
            row.given_name.is_empty()
                && row.host.role == "auto-assign"
                && row.host.machine_config_pool_name.is_empty()
                && row.host.node_labels.is_empty()
                && row.host.ignition_config_overrides.is_empty()
                && !row.ignition_headers_set
                && !row.approved
        })
        .await;
}
