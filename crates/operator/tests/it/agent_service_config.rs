//! The settings of another service: said to be without effect, each with what does the same.

use crate::world::{World, condition};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use muster_operator::crd::{AgentServiceConfig, HypershiftAgentServiceConfig};
use serde_json::json;
use std::time::Duration;

/// Much longer than anything takes; only a failure waits for it.
const DEADLINE: Duration = Duration::from_secs(60);

async fn said(api: &Api<AgentServiceConfig>, status: &'static str, reason: &'static str) -> String {
    let says = move |config: Option<&AgentServiceConfig>| {
        let shown = config.and_then(|config| config.status.as_ref());
        let found = shown.and_then(|shown| condition(&shown.conditions, "ReconcileCompleted"));
        found.is_some_and(|found| (found.0, found.1) == (status, reason))
    };
    let waited = tokio::time::timeout(DEADLINE, await_condition(api.clone(), "agent", says)).await;
    let config = waited.expect("it is never said").unwrap().unwrap();
    let conditions = config.status.unwrap().conditions;
    condition(&conditions, "ReconcileCompleted").unwrap().2.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_have_no_effect_are_named_until_they_are_gone() {
    let mut world = World::without_operator().await;
    // There is one per API server, so the operators of other tests do not reconcile it.
    world.start_operator_with("agent-service-config").await;
    let api: Api<AgentServiceConfig> = Api::all(world.kube.clone());
    let _ = api.delete("agent", &DeleteParams::default()).await;
    let config: AgentServiceConfig = serde_json::from_value(json!({
        "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "AgentServiceConfig",
        "metadata": { "name": "agent" },
        "spec": {
            "databaseStorage": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "10Gi" } } },
            "filesystemStorage": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "20Gi" } } },
            "osImages": [{ "openshiftVersion": "4.20", "version": "420", "url": "https://mirror.example.com/rhcos.iso",
                "cpuArchitecture": "x86_64" }],
        },
    }))
    .unwrap();
    api.create(&PostParams::default(), &config).await.unwrap();
    let message = said(&api, "False", "SettingsNotApplied").await;
    assert!(
        message.contains("osImages") && message.contains("hub.osImages"),
        "{message}"
    );
    let without = Patch::Merge(json!({ "spec": { "osImages": null } }));
    api.patch("agent", &PatchParams::default(), &without)
        .await
        .unwrap();
    said(&api, "True", "ReconcileSucceeded").await;
    api.delete("agent", &DeleteParams::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn that_of_a_hosted_cluster_applies_and_says_that_nobody_serves_it_from_here() {
    let mut world = World::without_operator().await;
    world.start_operator_with("agent-service-config").await;
    let volume =
        json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "10Gi" } } });
    let config: HypershiftAgentServiceConfig = serde_json::from_value(json!({
        "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "HypershiftAgentServiceConfig",
        "metadata": { "name": "hosted" },
        "spec": { "databaseStorage": volume, "filesystemStorage": volume,
            "kubeconfigSecretRef": { "name": "hosted-kubeconfig" } },
    }))
    .unwrap();
    world.create(&world.pool, &config).await;
    let says = |config: &HypershiftAgentServiceConfig| {
        let shown = config.status.as_ref();
        let found = shown.and_then(|shown| condition(&shown.conditions, "ReconcileCompleted"));
        found.is_some_and(|found| (found.0, found.1) == ("False", "HostedClusterNotServed"))
    };
    world
        .when::<HypershiftAgentServiceConfig>(&world.pool, "hosted", "named", says)
        .await;
    let nameless = json!({ "spec": { "kubeconfigSecretRef": null } });
    let refused = world
        .patch::<HypershiftAgentServiceConfig>(&world.pool, "hosted", nameless)
        .await;
    assert!(refused.unwrap_err().to_string().contains("kubeconfigSecretRef"));
}
