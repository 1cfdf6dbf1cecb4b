//! What the API server itself refuses, and what it accepts as it is written elsewhere.

use crate::world::World;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use muster_operator::crd::agent::{AgentSpec, AgentStatus, DebugInfo};
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, AgentClassification, AgentClusterInstall, InfraEnv};
use serde_json::{Value, json};

pub fn refusal<T>(answer: Result<T, kube::Error>) -> String {
    match answer.map(drop).unwrap_err() {
        kube::Error::Api(status) => {
            assert_eq!(status.code, 422, "{}", status.message);
            status.message
        }
        other => panic!("{other}"),
    }
}

pub async fn put(world: &World, object: Value) -> Result<DynamicObject, kube::Error> {
    let (api_version, kind) = (
        object["apiVersion"].as_str().unwrap(),
        object["kind"].as_str().unwrap(),
    );
    let (group, version) = api_version.split_once('/').unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = Api::namespaced_with(world.kube.clone(), &world.pool, &resource);
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap())
        .await
}

pub fn infra_env(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "agent-install.openshift.io/v1beta1", "kind": "InfraEnv", "metadata": {"name": name},
        "spec": spec})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_infra_env_keeps_its_cluster_and_architecture() {
    let world = World::without_operator().await;
    let reference = json!({"name": "c", "namespace": "n"});
    put(
        &world,
        infra_env(
            "bound",
            json!({"pullSecretRef": {"name": "p"}, "clusterRef": reference}),
        ),
    )
    .await
    .unwrap();
    put(&world, infra_env("free", json!({"pullSecretRef": {"name": "p"}})))
        .await
        .unwrap();
    let patch = async |name, spec| {
        world
            .patch::<InfraEnv>(&world.pool, name, json!({"spec": spec}))
            .await
    };
    for (name, spec) in [
        ("bound", json!({"clusterRef": null})),
        ("bound", json!({"clusterRef": {"name": "other"}})),
        ("free", json!({"clusterRef": reference})),
    ] {
        assert!(refusal(patch(name, spec).await).contains("clusterRef cannot be"));
    }
    assert!(refusal(patch("free", json!({"cpuArchitecture": "aarch64"})).await).contains("cpuArchitecture"));
    patch("free", json!({"cpuArchitecture": ""}))
        .await
        .expect("the default, written differently");
    patch("bound", json!({"osImageVersion": "4.18"}))
        .await
        .expect("left to the controller after creation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_infra_env_may_have_a_cluster_and_an_os_image_and_has_known_words() {
    let world = World::without_operator().await;
    let both = json!({"pullSecretRef": {"name": "p"}, "clusterRef": {"name": "c"}, "osImageVersion": "4.18"});
    put(&world, infra_env("both", both))
        .await
        .expect("as it comes from a backup; the controller decides what counts");
    let word = json!({"pullSecretRef": {"name": "p"}, "ipxeScriptType": "Sometimes"});
    assert!(refusal(put(&world, infra_env("a", word)).await).contains("ipxeScriptType"));
    let blank =
        json!({"pullSecretRef": {"name": "p"}, "kernelArguments": [{"operation": "append", "value": "a b"}]});
    assert!(refusal(put(&world, infra_env("a", blank)).await).contains("kernelArguments"));
    let made = put(&world, infra_env("a", json!({"pullSecretRef": {}})))
        .await
        .unwrap();
    assert_eq!(made.data["spec"]["pullSecretRef"]["name"], "");
    assert_eq!(made.data["spec"]["cpuArchitecture"], "x86_64");
    assert_eq!(made.data["spec"]["ipxeScriptType"], "DiscoveryImageAlways");
}

const INSTALLING: [&str; 6] = [
    "preparing-for-installation",
    "preparing-failed",
    "preparing-successful",
    "installing",
    "installing-in-progress",
    "installing-pending-user-action",
];

pub async fn agent(world: &World, name: &str, state: &str, kind: &str) {
    let spec = AgentSpec {
        cluster_deployment_name: Some(ClusterRef {
            name: "c".into(),
            namespace: "n".into(),
        }),
        ..AgentSpec::default()
    };
    world.create(&world.pool, &Agent::new(name, spec)).await;
    let status = AgentStatus {
        kind: kind.into(),
        debug_info: DebugInfo {
            state: state.into(),
            ..DebugInfo::default()
        },
        ..AgentStatus::default()
    };
    let api = world.api::<Agent>(&world.pool);
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_is_not_taken_from_under_an_installation_unless_it_joins_an_installed_cluster() {
    let world = World::without_operator().await;
    agent(&world, "ready", "known", "Host").await;
    let patch = async |name: &str, spec: Value| {
        let spec = json!({"spec": spec});
        world.patch::<Agent>(&world.pool, name, spec).await
    };
    let free = json!({"clusterDeploymentName": null});
    let other = json!({"clusterDeploymentName": {"name": "other"}});
    for state in INSTALLING {
        let (day1, day2) = (format!("day1-{state}"), format!("day2-{state}"));
        agent(&world, &day1, state, "Host").await;
        agent(&world, &day2, state, "AddToExistingClusterHost").await;
        for (name, spec) in [(&day1, &free), (&day1, &other), (&day2, &other)] {
            let refused = refusal(patch(name, spec.clone()).await);
            assert!(refused.contains("being installed"), "{name}: {refused}");
        }
        patch(&day1, json!({"approved": true}))
            .await
            .expect("something else");
        patch(&day2, free.clone())
            .await
            .expect("a host that joins may leave");
    }
    for state in ["installed", "error", "cancelled", "added-to-existing-cluster"] {
        agent(&world, state, state, "Host").await;
        patch(state, free.clone())
            .await
            .expect("the installation is over");
    }
    patch("ready", other).await.expect("nothing is installed yet");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_role_or_approved_is_refused_and_ours_are_not() {
    let world = World::without_operator().await;
    let bare = json!({"apiVersion": "agent-install.openshift.io/v1beta1", "kind": "Agent", "metadata": {"name": "a"},
        "spec": {}});
    let text = refusal(put(&world, bare).await);
    assert!(text.contains("approved") && text.contains("role"), "{text}");
    agent(&world, "ours", "known", "Host").await;
    let disks = json!({"spec": {"installation_disk_id": "a", "installation_disk_path": "/dev/a"}});
    assert!(refusal(world.patch::<Agent>(&world.pool, "ours", disks).await).contains("installation_disk"));
}

pub fn install(name: &str, spec: Value) -> Value {
    let mut whole = json!({"clusterDeploymentRef": {"name": "c"}, "imageSetRef": {"name": "4.18"}, "networking": {},
        "provisionRequirements": {"controlPlaneAgents": 3}});
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    json!({"apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall",
        "metadata": {"name": name}, "spec": whole})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_its_release_and_its_settings_once_it_is_being_installed() {
    let world = World::without_operator().await;
    put(&world, install("c", json!({}))).await.unwrap();
    let patch = async |spec: Value| {
        world
            .patch::<AgentClusterInstall>(&world.pool, "c", json!({"spec": spec}))
            .await
    };
    assert!(refusal(patch(json!({"imageSetRef": {"name": "4.19"}})).await).contains("imageSetRef"));
    patch(json!({"sshPublicKey": "a"}))
        .await
        .expect("it has not begun");
    let began = async |reason: &str| {
        let conditions = json!([{"type": "Completed", "status": "False", "reason": reason}]);
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let api = world.api::<AgentClusterInstall>(&world.pool);
        api.patch_status("c", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    began("InstallationInProgress").await;
    let two = json!({"sshPublicKey": "b", "networking": {"serviceNetwork": ["172.31.0.0/16"]}});
    let refused = refusal(patch(two).await);
    assert!(refused.contains("has begun"), "{refused}");
    for field in ["spec.networking.serviceNetwork", "spec.sshPublicKey"] {
        let named = format!("{field} cannot be changed");
        assert!(refused.contains(&named), "{refused}");
    }
    let workers = json!({"provisionRequirements": {"workerAgents": 2}});
    let refused = refusal(patch(workers.clone()).await);
    assert!(
        refused.contains("workerAgents cannot be changed before its end"),
        "{refused}"
    );
    patch(json!({"ignitionEndpoint": {"url": "https://x"}}))
        .await
        .expect("free");
    began("InstallationCompleted").await;
    patch(workers).await.expect("more hosts may come after its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_out_and_what_is_empty_mean_the_same_to_a_cluster_that_is_being_installed() {
    let world = World::without_operator().await;
    let empty = json!({"holdInstallation": false, "apiVIP": "", "proxy": {}, "ntpSources": [],
        "networking": {"machineNetwork": [], "userManagedNetworking": false}, "diskEncryption": {}});
    put(&world, install("written", empty.clone())).await.unwrap();
    put(&world, install("left", json!({}))).await.unwrap();
    for name in ["written", "left"] {
        let conditions =
            json!([{"type": "Completed", "status": "False", "reason": "InstallationInProgress"}]);
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let api = world.api::<AgentClusterInstall>(&world.pool);
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    let change = async |name: &str, spec: Value| {
        world
            .patch::<AgentClusterInstall>(&world.pool, name, json!({"spec": spec}))
            .await
    };
    let without = json!({"holdInstallation": null, "apiVIP": null, "proxy": null, "ntpSources": null,
        "networking": {"machineNetwork": null, "userManagedNetworking": null}, "diskEncryption": null});
    change("written", without)
        .await
        .expect("nothing is left out that meant something");
    change("left", empty)
        .await
        .expect("nothing is added that means something");
    for real in [
        json!({"holdInstallation": true}),
        json!({"proxy": {"httpProxy": "http://p"}}),
        json!({"ntpSources": ["ntp"]}),
        json!({"networking": {"userManagedNetworking": true}}),
        json!({"provisionRequirements": {"workerAgents": 1}}),
    ] {
        assert!(
            refusal(change("left", real.clone()).await).contains("cannot be changed"),
            "{real}"
        );
    }
    change("left", json!({"provisionRequirements": {"workerAgents": 0}}))
        .await
        .expect("none are none");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_manages_the_network_may_be_spelled_out_while_a_cluster_is_being_installed() {
    let world = World::without_operator().await;
    let one = json!({"provisionRequirements": {"controlPlaneAgents": 1}});
    put(&world, install("one", one)).await.unwrap();
    let external = json!({"platformType": "External", "external": {"platformName": "mine"}});
    put(&world, install("external", external)).await.unwrap();
    for name in ["one", "external"] {
        let conditions =
            json!([{"type": "Completed", "status": "False", "reason": "InstallationInProgress"}]);
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let api = world.api::<AgentClusterInstall>(&world.pool);
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
        let by_user = json!({"spec": {"networking": {"userManagedNetworking": true}}});
        world
            .patch::<AgentClusterInstall>(&world.pool, name, by_user)
            .await
            .expect("it was so all the time");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spec_of_which_nothing_must_be_given_may_be_left_out() {
    let world = World::without_operator().await;
    let capi = "capi-provider.agent-install.openshift.io/v1beta1";
    for (api, kind) in [
        (capi, "AgentMachine"),
        (capi, "AgentCluster"),
        ("agent-install.openshift.io/v1beta1", "NMStateConfig"),
    ] {
        let object = json!({"apiVersion": api, "kind": kind, "metadata": {"name": "plain"}});
        put(&world, object).await.unwrap();
    }
    let install = json!({"apiVersion": "extensions.hive.openshift.io/v1beta1", "kind": "AgentClusterInstall",
        "metadata": {"name": "plain"}});
    assert!(refusal(put(&world, install).await).contains("spec"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_contradicts_itself_is_refused() {
    let world = World::without_operator().await;
    let managed = |flag: bool| json!({"userManagedNetworking": flag});
    let one = json!({"controlPlaneAgents": 1});
    for (spec, word) in [
        (
            json!({"provisionRequirements": one, "networking": managed(false)}),
            "one host",
        ),
        (
            json!({"platformType": "None", "networking": managed(false)}),
            "None",
        ),
        (
            json!({"platformType": "BareMetal", "networking": managed(true)}),
            "BareMetal",
        ),
        (
            json!({"platformType": "External", "networking": managed(false)}),
            "External",
        ),
        (
            json!({"platformType": "Nutanix", "networking": managed(true)}),
            "Nutanix",
        ),
    ] {
        assert!(refusal(put(&world, install("c", spec)).await).contains(word));
    }
    put(&world, install("c", json!({"provisionRequirements": one})))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_classification_is_a_legal_label_for_ever() {
    let world = World::without_operator().await;
    let classification = |name: &str, key: &str, value: &str| {
        json!({"apiVersion": "agent-install.openshift.io/v1beta1", "kind": "AgentClassification",
            "metadata": {"name": name}, "spec": {"labelKey": key, "labelValue": value, "query": ".cpu.count == 2"}})
    };
    assert!(refusal(put(&world, classification("a", "a/b", "x")).await).contains("labelKey"));
    assert!(refusal(put(&world, classification("a", "size", "QUERYERROR-x")).await).contains("QUERYERROR"));
    put(&world, classification("a", "size", "large")).await.unwrap();
    for field in ["labelKey", "labelValue"] {
        let patch = json!({"spec": {field: "small"}});
        let answer = world.patch::<AgentClassification>(&world.pool, "a", patch).await;
        assert!(refusal(answer).contains(&format!("{field} cannot be changed")));
    }
    let longest = "x".repeat(63);
    put(&world, classification("long", "size", &longest))
        .await
        .unwrap();
    for illegal in [format!("{longest}x"), "x-".into(), "a b".into()] {
        assert!(
            refusal(put(&world, classification("b", "size", &illegal)).await).contains("at most 63"),
            "{illegal}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_get_agents_prints_the_familiar_columns() {
    let world = World::without_operator().await;
    agent(&world, "a", "known", "Host").await;
    let request = http::Request::get(format!(
        "/apis/agent-install.openshift.io/v1beta1/namespaces/{}/agents",
        world.pool
    ))
    .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
    .body(Vec::new())
    .unwrap();
    let table: Value = world.kube.request(request).await.unwrap();
    let names: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "Name",
            "Cluster",
            "Approved",
            "Role",
            "Stage",
            "Hostname",
            "Requested Hostname"
        ]
    );
    assert_eq!(table["rows"][0]["cells"][1], "c");
}
