//! Clusters from their description to the running cluster, and mistakes that are easily made.

use crate::described::{RELEASE, one_host, says, state, three_hosts, waits};
use crate::lent::{self, word};
use crate::world::{PULL_SECRET, World, named};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use muster_contract::v2::cluster_request::{ClustersQuery, CredentialFile};
use muster_contract::v2::infra_env::{InfraEnvFile, InfraEnvFilesQuery};
use muster_contract::v2::manifest::ManifestsQuery;
use muster_operator::crd::condition::find_install;
use muster_operator::crd::keys::{annotation, finalizer, label};
use muster_operator::crd::reference::ClusterRef;
use muster_operator::crd::{Agent, AgentClusterInstall, ClusterDeployment, ClusterImageSet, InfraEnv};
use serde_json::json;
use uuid::Uuid;

const OTHER_SECRET: &str = r#"{"auths":{"other.example.com":{"auth":"b3RoZXI6b3RoZXI="}}}"#;
const ALL: [&str; 5] = ["Validated", "RequirementsMet", "Completed", "Failed", "Stopped"];

#[tokio::test(flavor = "multi_thread")]
async fn a_described_cluster_is_made_once_and_shown_and_then_all_is_quiet() {
    let mut world = World::start().await;
    world.describe("blue", three_hosts()).await;
    let install = world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    let cluster = world.cluster("blue").await;
    assert_eq!(
        (cluster.name.as_str(), cluster.base_dns_domain.as_str()),
        ("blue", "example.com")
    );
    assert_eq!(
        (
            cluster.openshift_version.as_str(),
            cluster.ocp_release_image.as_str()
        ),
        ("4.20.33", RELEASE)
    );
    assert_eq!(
        (cluster.control_plane_count, &*cluster.cpu_architecture),
        (3, "x86_64")
    );
    assert_eq!(install.finalizers(), [finalizer::AGENT_CLUSTER_INSTALL]);
    let deployment: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert_eq!(deployment.finalizers(), [finalizer::CLUSTER_DEPLOYMENT]);
    assert_eq!(install.owner_references()[0].uid, deployment.uid().unwrap());
    let status = install.status.clone().unwrap();
    assert!(
        status
            .debug_info
            .events_url
            .ends_with(&format!("cluster_id={}", cluster.id))
    );
    assert_eq!(
        (status.api_vip.as_str(), status.platform_type.as_str()),
        ("10.64.0.20", "BareMetal")
    );
    world
        .install_says("blue", "Validated", "False", "ValidationsUserPending")
        .await;
    assert_eq!(
        says(&install, "RequirementsMet"),
        word("False", "ClusterNotReady")
    );
    assert_eq!(
        says(&install, "Completed"),
        word("False", "InstallationNotStarted")
    );
    assert_eq!(
        world.secret("blue-pull").await.labels()[label::WATCH],
        "true",
        "watched from now on"
    );
    world.operator().idle().await;
    world.assert_converged().await;
    assert_eq!(
        world.hub.clusters(&ClustersQuery::default()).await.unwrap().len(),
        1,
        "found again without memory"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_may_come_in_any_order() {
    let world = World::start().await;
    world.install("blue", one_host()).await;
    let install = world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    for type_ in ALL {
        assert_eq!(says(&install, type_), word("Unknown", "NotAvailable"), "{type_}");
    }
    world.deploy("blue", |_| ()).await;
    world
        .install_says("blue", "SpecSynced", "False", "BackendError")
        .await;
    world.pull_secret(&world.clusters, "blue-pull", PULL_SECRET).await;
    world.image_set().await;
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    world.install_waits("blue").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_get_wrong_is_named_and_no_secret_is_shown() {
    let world = World::start().await;
    world.image_set().await;
    world
        .pull_secret(&world.clusters, "blue-pull", r#"{"hunter2":{}}"#)
        .await;
    world.deploy("blue", |_| ()).await;
    world.install("blue", one_host()).await;
    let install = world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    assert!(
        !format!("{:?}", install.status).contains("hunter2"),
        "{:?}",
        install.status
    );
    let right = json!({ "stringData": { ".dockerconfigjson": PULL_SECRET } });
    world
        .patch::<Secret>(&world.clusters, "blue-pull", right)
        .await
        .unwrap();
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    world
        .change_install(
            "blue",
            json!({ "spec": { "provisionRequirements": { "controlPlaneAgents": 7 } } }),
        )
        .await;
    world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    world
        .change_install(
            "blue",
            json!({ "spec": { "provisionRequirements": { "controlPlaneAgents": 3 } } }),
        )
        .await;
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    assert_eq!(world.cluster("blue").await.control_plane_count, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_that_the_hub_does_not_know_is_named_and_mended_by_a_change_of_the_image_set() {
    let world = World::start().await;
    let sets: Api<ClusterImageSet> = Api::all(world.kube.clone());
    let mut set = ClusterImageSet::new(&world.image_set_name(), Default::default());
    set.spec.release_image = "registry.example.com/release@sha256:01".into();
    sets.create(&PostParams::default(), &set).await.unwrap();
    world.describe("blue", one_host()).await;
    let install = world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    let conditions = install.status.unwrap().conditions;
    let synced = find_install(&conditions, "SpecSynced").unwrap();
    assert!(
        synced.message.contains(&world.image_set_name()),
        "{}",
        synced.message
    );
    let right = json!({ "spec": { "releaseImage": RELEASE } });
    sets.patch(
        &world.image_set_name(),
        &PatchParams::default(),
        &Patch::Merge(right),
    )
    .await
    .unwrap();
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    assert_eq!(world.cluster("blue").await.ocp_release_image, RELEASE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_is_there_before_the_end_is_replaced_by_the_whole_one_and_stays_whose_it_is() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    let mut stale = Secret {
        metadata: named("blue-admin-kubeconfig"),
        ..Secret::default()
    };
    stale.string_data = Some([("kubeconfig".to_owned(), "of another cluster".to_owned())].into());
    stale.metadata.labels = Some([("mine".to_owned(), "yes".to_owned())].into());
    world.create(&world.clusters, &stale).await;
    world.describe("blue", one_host()).await;
    world.approve(&host).await;
    world.want(&host, Some("blue")).await.unwrap();
    world.install_in("blue", "adding-hosts").await;
    let kept = world.secret("blue-admin-kubeconfig").await;
    let text = String::from_utf8(kept.data.clone().unwrap()["kubeconfig"].0.clone()).unwrap();
    let file = world
        .hub
        .credential_file(world.cluster_id("blue").await, CredentialFile::Kubeconfig)
        .await
        .unwrap();
    assert_eq!(text.as_bytes(), file);
    assert_eq!(kept.labels()["mine"], "yes", "what is not ours stays");
    // The API server of OpenShift refuses owners on objects that the operator may not delete.
    assert_eq!(kept.owner_references(), [], "it does not go with the cluster");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_the_objects_reach_the_hub_and_so_does_what_is_removed() {
    let mut world = World::start().await;
    world.describe("blue", one_host()).await;
    world.install_waits("blue").await;
    let proxy = json!({ "httpProxy": "http://proxy.example.com:3128", "noProxy": "example.com" });
    let endpoint = json!({ "url": "https://ignition.example.com" });
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK5fZ7RM4rPRmz3yCqBRUGGcbgyWYFXr8nYrVvYyB7Ck me";
    let change = json!({ "spec": { "proxy": proxy, "ignitionEndpoint": endpoint, "sshPublicKey": key } });
    world.change_install("blue", change).await;
    world
        .until("the hub has it", async || {
            world.cluster("blue").await.ssh_public_key == key
        })
        .await;
    let cluster = world.cluster("blue").await;
    assert_eq!(
        (cluster.http_proxy.as_str(), cluster.no_proxy.as_str()),
        ("http://proxy.example.com:3128", "example.com")
    );
    assert_eq!(
        cluster.ignition_endpoint.unwrap().url.as_deref(),
        Some("https://ignition.example.com")
    );
    let nothing = json!({ "spec": { "proxy": null, "ignitionEndpoint": null, "sshPublicKey": null } });
    world.change_install("blue", nothing).await;
    world
        .until("the hub forgot it", async || {
            world.cluster("blue").await.ssh_public_key.is_empty()
        })
        .await;
    let cluster = world.cluster("blue").await;
    assert_eq!(
        (
            cluster.http_proxy.as_str(),
            cluster.ignition_endpoint.unwrap().url
        ),
        ("", None)
    );
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_image_has_the_pull_secret_of_its_infra_env_and_the_cluster_its_own() {
    let world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    world.image_set().await;
    world
        .pull_secret(&world.clusters, "blue-pull", OTHER_SECRET)
        .await;
    world.deploy("blue", |_| ()).await;
    world.install("blue", one_host()).await;
    world.install_waits("blue").await;
    let config = world
        .hub
        .install_config(world.cluster_id("blue").await)
        .await
        .unwrap();
    assert!(
        config.contains("other.example.com") && !config.contains("registry.example.com"),
        "{config}"
    );
    let query = InfraEnvFilesQuery {
        file_name: InfraEnvFile::DiscoveryIgn,
        mac: None,
        ipxe_script_type: None,
        discovery_iso_type: None,
    };
    let ignition = String::from_utf8(world.hub.infra_env_file(pool, &query).await.unwrap()).unwrap();
    assert!(
        ignition.contains(&BASE64_STANDARD.encode(PULL_SECRET)),
        "{ignition}"
    );
    assert!(!ignition.contains(&BASE64_STANDARD.encode(OTHER_SECRET)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_secret_that_is_changed_reaches_the_hub() {
    let world = World::start().await;
    world.describe("blue", one_host()).await;
    world.install_waits("blue").await;
    let id = world.cluster_id("blue").await;
    let other = json!({ "stringData": { ".dockerconfigjson": OTHER_SECRET } });
    world
        .patch::<Secret>(&world.clusters, "blue-pull", other)
        .await
        .unwrap();
    world
        .until("the hub has the new one", async || {
            world
                .hub
                .install_config(id)
                .await
                .unwrap()
                .contains("other.example.com")
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_installed_once_its_cluster_is_described_and_it_is_approved() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    world.want(&host, Some("blue")).await.unwrap();
    world
        .agent_when(&host, "waiting", |agent| {
            lent::says(agent, "SpecSynced") == word("False", "BackendError")
        })
        .await;
    world.describe("blue", one_host()).await;
    world
        .install_says("blue", "RequirementsMet", "False", "UnapprovedAgents")
        .await;
    world.approve(&host).await;
    world
        .install_says("blue", "Completed", "False", "InstallationInProgress")
        .await;
    let install = world.install_in("blue", "adding-hosts").await;
    assert_eq!(says(&install, "Completed"), word("True", "InstallationCompleted"));
    assert_eq!(says(&install, "Stopped"), word("True", "InstallationCompleted"));
    assert_eq!(says(&install, "Failed"), word("False", "InstallationNotFailed"));
    assert_eq!(
        says(&install, "RequirementsMet"),
        word("True", "ClusterAlreadyInstalling")
    );
    let last = says(&install, "LastInstallationPreparationFailed");
    assert_eq!(
        last,
        word("False", "There is no failing prior preparation attempt")
    );

    let id = world.cluster_id("blue").await;
    let metadata = install.spec.cluster_metadata.clone().unwrap();
    assert_eq!(metadata.infra_id, id.to_string());
    assert_eq!(
        metadata.cluster_id,
        world
            .cluster("blue")
            .await
            .openshift_cluster_id
            .unwrap()
            .to_string()
    );
    assert_eq!(
        metadata.admin_password_secret_ref.unwrap().name,
        "blue-admin-password"
    );
    let text =
        |secret: &Secret, key: &str| String::from_utf8(secret.data.clone().unwrap()[key].0.clone()).unwrap();
    let kubeconfig = world.secret("blue-admin-kubeconfig").await;
    assert!(text(&kubeconfig, "kubeconfig").contains("clusters:"));
    assert_eq!(kubeconfig.labels()[label::HIVE_SECRET_TYPE], "kubeconfig");
    assert_eq!(kubeconfig.labels()[label::HIVE_CLUSTER_DEPLOYMENT], "blue");
    assert_eq!(kubeconfig.owner_references()[0].block_owner_deletion, Some(true));
    let password = world.secret("blue-admin-password").await;
    assert_eq!(
        (
            text(&password, "username").as_str(),
            text(&password, "password").as_str()
        ),
        ("kubeadmin", "correct-horse")
    );

    let deployment: ClusterDeployment = world.get(&world.clusters, "blue").await;
    assert!(
        deployment.spec.installed,
        "there is no Hive here that would say so"
    );
    assert_eq!(deployment.spec.cluster_metadata.unwrap().infra_id, id.to_string());
    let events: Api<Event> = world.api(&world.clusters);
    let items = events.list(&ListParams::default()).await.unwrap().items;
    for reason in ["InstallationInProgress", "InstallationCompleted"] {
        assert!(
            items.iter().any(|event| event.reason.as_deref() == Some(reason)),
            "{reason} is an event"
        );
    }
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_is_held_waits_until_nobody_holds_it() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    let mut spec = one_host();
    spec["holdInstallation"] = json!(true);
    world.describe("blue", spec).await;
    let pause = json!({ "metadata": { "annotations": { "hive.openshift.io/reconcile-pause": "true" } } });
    world
        .patch::<ClusterDeployment>(&world.clusters, "blue", pause)
        .await
        .unwrap();
    world.approve(&host).await;
    world.want(&host, Some("blue")).await.unwrap();
    world
        .install_says("blue", "Completed", "False", "InstallationOnHold")
        .await;
    let install = world
        .install_says("blue", "RequirementsMet", "True", "ClusterIsReady")
        .await;
    assert_eq!(state(&install), "ready");
    world
        .change_install("blue", json!({ "spec": { "holdInstallation": false } }))
        .await;
    world.operator().idle().await;
    world
        .install_says("blue", "Completed", "False", "InstallationOnHold")
        .await;
    let go = json!({ "metadata": { "annotations": { "hive.openshift.io/reconcile-pause": null } } });
    world
        .patch::<ClusterDeployment>(&world.clusters, "blue", go)
        .await
        .unwrap();
    world.install_in("blue", "adding-hosts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_agents_than_wanted_hold_the_installation_up() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let hosts = world.free_hosts(pool, 4).await;
    world.describe("blue", three_hosts()).await;
    for host in &hosts {
        world.approve(host).await;
        world.want(host, Some("blue")).await.unwrap();
    }
    let install = world
        .install_says("blue", "RequirementsMet", "False", "InsufficientAgents")
        .await;
    assert_eq!(state(&install), "ready");
    for host in &hosts {
        world.agent_in(host, "known").await;
    }
    world.operator().idle().await;
    assert_eq!(
        world.cluster("blue").await.status,
        "ready",
        "it must not start with one too many"
    );
    let spare = world.agents().await.into_iter().find(|agent| {
        agent
            .status
            .as_ref()
            .is_some_and(|status| status.role == "worker")
    });
    world.want(&spare.unwrap().name_any(), None).await.unwrap();
    let install = world.install_in("blue", "adding-hosts").await;
    assert_eq!(install.status.unwrap().control_plane_agents_discovered, Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_spec_is_not_in_effect_holds_the_installation_up() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let hosts = world.free_hosts(pool, 3).await;
    world.describe("blue", three_hosts()).await;
    let wrong = json!({ "spec": { "installerArgs": "no list" } });
    world.change_agent(&hosts[1], wrong).await.unwrap();
    for host in &hosts {
        world.approve(host).await;
        world.want(host, Some("blue")).await.unwrap();
    }
    let install = world
        .install_says("blue", "RequirementsMet", "False", "UnsyncedAgents")
        .await;
    assert_eq!(state(&install), "ready", "all of them are there and in order");
    world.operator().idle().await;
    assert_eq!(world.cluster("blue").await.status, "ready");
    let right = json!({ "spec": { "installerArgs": null } });
    world.change_agent(&hosts[1], right).await.unwrap();
    world.install_in("blue", "adding-hosts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_clusters_with_one_name_the_agent_belongs_to_that_of_the_namespace_it_names() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    world.describe("blue", one_host()).await;
    world.describe_in(&world.pool, "blue", one_host()).await;
    world.when(&world.pool, "blue", "waiting for hosts", waits).await;
    world.want(&host, Some("blue")).await.unwrap();
    let agent = world.agent_in(&host, "known").await;
    assert_eq!(
        agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE],
        world.clusters
    );
    let theirs = world.cluster_id_in(&world.pool, "blue").await;
    let ours = world.cluster_id("blue").await;
    assert_ne!(theirs, ours);
    let row = async || world.hub.host(pool, host.parse().unwrap()).await.unwrap();
    assert_eq!(row().await.cluster_id, Some(ours));

    world.delete::<ClusterDeployment>(&world.pool, "blue").await;
    world.gone::<ClusterDeployment>(&world.pool, "blue").await;
    world.operator().idle().await;
    assert_eq!(
        row().await.cluster_id,
        Some(ours),
        "the other's end is none of its business"
    );
    assert!(world.agent(&host).await.spec.cluster_deployment_name.is_some());

    world.delete_deployment("blue").await;
    world.cluster_is_gone("blue", ours).await;
    let agent = world.agent_in(&host, "known-unbound").await;
    assert_eq!(
        agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE],
        "",
        "the label stays, without a value"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn both_times_of_a_condition_move_together_and_only_with_a_difference() {
    let world = World::start().await;
    world.describe("blue", one_host()).await;
    let install = world.install_waits("blue").await;
    let raw = serde_json::to_value(&install.status).unwrap();
    for condition in raw["conditions"].as_array().unwrap() {
        assert_eq!(
            condition["lastProbeTime"], condition["lastTransitionTime"],
            "{condition}"
        );
        assert!(
            condition.get("lastHeartbeatTime").is_none() && condition.get("observedGeneration").is_none()
        );
    }
    let synced = |install: &AgentClusterInstall| {
        let conditions = install.status.clone().unwrap().conditions;
        conditions
            .into_iter()
            .find(|condition| condition.type_ == "SpecSynced")
            .unwrap()
    };
    assert_eq!(synced(&install).message, "SyncOK");
    world
        .change_install("blue", json!({ "spec": { "mastersSchedulable": true } }))
        .await;
    world
        .until("the hub knows", async || {
            world.cluster("blue").await.schedulable_masters == Some(true)
        })
        .await;
    world.operator().idle().await;
    let later = world.get::<AgentClusterInstall>(&world.clusters, "blue").await;
    assert_eq!(synced(&later), synced(&install), "nothing new was to be said");
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_of_config_maps_follow_them() {
    let mut world = World::start().await;
    let map = |name: &str, files: &[(&str, &str)]| ConfigMap {
        metadata: named(name),
        data: Some(
            files
                .iter()
                .map(|(file, text)| ((*file).to_owned(), (*text).to_owned()))
                .collect(),
        ),
        ..ConfigMap::default()
    };
    world
        .create(
            &world.clusters,
            &map("one", &[("a.yaml", "a: 1"), ("b.yaml", "b: 1")]),
        )
        .await;
    let mut spec = one_host();
    spec["manifestsConfigMapRefs"] = json!([{ "name": "one" }, { "name": "two" }]);
    world.describe("blue", spec).await;
    world
        .install_says("blue", "SpecSynced", "False", "BackendError")
        .await;
    world
        .create(&world.clusters, &map("two", &[("c.yaml", "c: 1")]))
        .await;
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    let id = world.cluster_id("blue").await;
    let files = async || -> Vec<String> {
        let all = world.hub.manifests(id, &ManifestsQuery::default()).await.unwrap();
        let mut all: Vec<_> = all
            .iter()
            .map(|manifest| format!("{}/{}", manifest.folder, manifest.file_name))
            .collect();
        all.sort();
        all
    };
    assert_eq!(
        files().await,
        ["openshift/a.yaml", "openshift/b.yaml", "openshift/c.yaml"]
    );
    let change = json!({ "data": { "a.yaml": null, "d.yaml": "d: 1" } });
    world
        .patch::<ConfigMap>(&world.clusters, "one", change)
        .await
        .unwrap();
    world
        .until("the hub follows", async || {
            files().await == ["openshift/b.yaml", "openshift/c.yaml", "openshift/d.yaml"]
        })
        .await;
    world
        .patch::<ConfigMap>(&world.clusters, "two", json!({ "data": { "b.yaml": "b: 2" } }))
        .await
        .unwrap();
    world
        .install_says("blue", "SpecSynced", "False", "InputError")
        .await;
    world
        .patch::<ConfigMap>(&world.clusters, "two", json!({ "data": { "b.yaml": null } }))
        .await
        .unwrap();
    world.install_says("blue", "SpecSynced", "True", "SyncOK").await;
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_runs_already_is_imported_and_takes_on_hosts() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let host = world.free_hosts(pool, 1).await.remove(0);
    let own_id = Uuid::new_v4();
    world
        .deploy("spoke", |deployment| {
            deployment.spec.installed = true;
            deployment.spec.pull_secret_ref = None;
            let metadata =
                json!({ "clusterID": own_id, "infraID": "x", "adminKubeconfigSecretRef": { "name": "k" } });
            deployment.spec.cluster_metadata = serde_json::from_value(metadata).unwrap();
        })
        .await;
    let mut spec = three_hosts();
    spec["imageSetRef"] = json!(null);
    world.install("spoke", spec).await;
    let install = world.install_in("spoke", "adding-hosts").await;
    assert_eq!(
        says(&install, "SpecSynced"),
        word("True", "SyncOK"),
        "neither release nor pull secret is needed"
    );
    assert_eq!(says(&install, "Completed"), word("True", "InstallationCompleted"));
    let cluster = world.cluster("spoke").await;
    assert_eq!(
        (cluster.openshift_cluster_id, cluster.imported),
        (Some(own_id), true)
    );
    assert_eq!(cluster.api_vip_dns_name.as_deref(), Some("api.spoke.example.com"));
    world.operator().idle().await;
    world.want(&host, Some("spoke")).await.unwrap();
    world.agent_in(&host, "known").await;
    world.operator().idle().await;
    assert_eq!(
        world.agent(&host).await.status.unwrap().debug_info.state,
        "known",
        "nobody has approved it"
    );
    world.approve(&host).await;
    let joins =
        |agent: &Agent| lent::says(agent, "RequirementsMet") == word("True", "AgentAlreadyInstalling");
    world.agent_when(&host, "installing", joins).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_that_are_to_be_ignored_are_named_by_annotations() {
    let world = World::start().await;
    world.describe("blue", three_hosts()).await;
    world.install_waits("blue").await;
    let ignore = |cluster: Option<&str>, host: Option<&str>| {
        json!({ "metadata": { "annotations": {
            annotation::IGNORED_CLUSTER_VALIDATIONS: cluster, annotation::IGNORED_HOST_VALIDATIONS: host,
        }}})
    };
    let ignored = async |cluster: &str, host: &str| {
        let view = world.cluster("blue").await;
        let has = |text: &str, id: &str| {
            if id.is_empty() {
                !text.contains('"')
            } else {
                text.contains(id)
            }
        };
        has(&view.ignored_cluster_validations, cluster) && has(&view.ignored_host_validations, host)
    };
    let ids = ("network-type-valid", "has-min-memory");
    world
        .change_install("blue", ignore(Some(ids.0), Some(ids.1)))
        .await;
    world
        .until("the hub ignores them", async || ignored(ids.0, ids.1).await)
        .await;
    world.change_install("blue", ignore(None, None)).await;
    world
        .until("the hub ignores nothing", async || ignored("", "").await)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_cluster_takes_on_more_hosts_one_by_one() {
    let mut world = World::start().await;
    let (pool, first) = world.installed("blue").await;
    world.fleet(pool, 1, |config| {
        config.first_index = 1;
        config.return_boots = None;
    });
    let second = lent::machine(pool, 1).id().to_string();
    world.agent_in(&second, "known-unbound").await;
    world.approve(&second).await;
    world.want(&second, Some("blue")).await.unwrap();
    let day_two = |agent: &Agent| {
        agent
            .status
            .as_ref()
            .is_some_and(|status| status.kind == "AddToExistingClusterHost")
    };
    world
        .agent_when(&second, "a host of the second day", day_two)
        .await;
    let joins =
        |agent: &Agent| lent::says(agent, "RequirementsMet") == word("True", "AgentAlreadyInstalling");
    world.agent_when(&second, "installing", joins).await;
    assert_eq!(
        lent::state(&world.agent(&first).await),
        "installed",
        "the first is left alone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_an_infra_env_with_a_cluster_are_installed_without_being_bound() {
    let mut world = World::start().await;
    world.describe("blue", one_host()).await;
    let clusters = world.clusters.clone();
    let early = |infra_env: &mut InfraEnv| {
        infra_env.spec.cluster_ref = Some(ClusterRef {
            name: "blue".into(),
            namespace: clusters.clone(),
        });
        infra_env.spec.agent_approval = Some(serde_json::from_value(json!({ "autoApprove": true })).unwrap());
    };
    let pool = world.pool_of("lab", early).await;
    world.fleet(pool, 1, |config| {
        config.first_index = 0;
        config.return_boots = None;
    });
    world.install_in("blue", "adding-hosts").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_deployments_with_one_id_do_not_share_a_cluster() {
    let world = World::start().await;
    world.describe("blue", one_host()).await;
    world.install_waits("blue").await;
    let id = world.cluster_id("blue").await;
    world.pull_secret(&world.clusters, "copy-pull", PULL_SECRET).await;
    let key = muster_operator::crd::keys::annotation::CLUSTER_ID;
    world
        .deploy("copy", |copy| {
            drop(copy.annotations_mut().insert(key.into(), id.to_string()))
        })
        .await;
    world.install("copy", one_host()).await;
    world
        .install_says("copy", "SpecSynced", "False", "InputError")
        .await;
    world.delete::<ClusterDeployment>(&world.clusters, "copy").await;
    world.gone::<ClusterDeployment>(&world.clusters, "copy").await;
    assert_eq!(world.cluster("blue").await.id, id, "it was never the copy's");
}
