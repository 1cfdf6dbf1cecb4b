//! Plans by example: a snapshot is set up, and the plan for it read.

mod site;

use super::*;
use crate::controller::infra_env::snapshot::Row;
use crate::crd::NMStateConfig;
use crate::crd::condition::find_service;
use crate::crd::infra_env::{IMAGE_CREATED, InfraEnv};
use crate::crd::reference::{ClusterRef, FullRef, LocalRef};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use muster_contract::v1::link::InfraEnvLinks;
use muster_contract::v2::infra_env::{ImageType, InfraEnvView, Proxy};
use std::sync::Arc;
use std::time::Duration;

const ID: Uuid = Uuid::from_u128(7);
const CLUSTER: Uuid = Uuid::from_u128(8);
const NOON: i64 = 1_800_000_000;
const SOON: Duration = Duration::from_secs(20);
const LATER: Duration = Duration::from_secs(60);

/// An adopted InfraEnv with a pull secret, which the hub does not have yet.
fn snapshot() -> Snapshot {
    let mut infra_env = InfraEnv::new("lab", Default::default());
    infra_env.metadata.namespace = Some("pool".into());
    infra_env.metadata.uid = Some(ID.to_string());
    infra_env.metadata.finalizers = Some(vec![finalizer::INFRA_ENV.into()]);
    infra_env
        .annotations_mut()
        .insert(annotation::INFRA_ENV_ID.into(), ID.to_string());
    infra_env.spec.pull_secret_ref = LocalRef { name: "pull".into() };
    Snapshot {
        infra_env: Arc::new(infra_env),
        id: ID,
        rival: None,
        cluster: Cluster::NotWanted,
        is_cluster_watched: true,
        pull_secret: Some(found(keys::data::PULL_SECRET, "{}")),
        known: Known::default(),
        mirrors: None,
        ironic: DesiredIronic::NotWanted,
        networks: Vec::new(),
        row: None,
        held_by: None,
        default_ntp: String::new(),
        hosts: Vec::new(),
        failure: None,
        retry: Duration::from_secs(10),
        now: Timestamp::from_second(NOON).unwrap(),
    }
}

fn found(key: &str, value: &str) -> Found {
    Found {
        values: [(key.to_owned(), value.to_owned())].into(),
        missing_labels: BTreeMap::new(),
    }
}

impl Snapshot {
    fn with(mut self, change: impl FnOnce(&mut InfraEnv)) -> Self {
        change(Arc::make_mut(&mut self.infra_env));
        self
    }

    /// The hub has what was wished, and the object shows it.
    fn converged(mut self) -> Self {
        for _ in 0..4 {
            let plan = plan(&self);
            if plan.steps.is_empty() {
                return self;
            }
            plan.steps.into_iter().for_each(|step| self.carry_out(step));
        }
        panic!("it does not converge: {:#?}", plan(&self));
    }

    /// What a step does to the snapshot, as far as plans use it.
    fn carry_out(&mut self, step: Step) {
        match step {
            Step::Create(desired) => {
                self.known = Known {
                    pull_secret: true,
                    version: true,
                    proxy: true,
                };
                self.row = Some(row(&desired));
            }
            Step::Update(update) => {
                let view = &mut self.row.as_mut().unwrap().view;
                self.known.pull_secret |= update.pull_secret.is_some();
                self.known.version |= update.openshift_version.is_some();
                if let Some(proxy) = update.proxy {
                    self.known.proxy = true;
                    view.proxy = Some(proxy);
                }
                if let Some(networks) = update.static_network_config {
                    view.static_network_config = json_text(&networks);
                }
                if let Some(text) = update.ignition_config_override {
                    view.ignition_config_override = text;
                }
                if let Some(text) = update.additional_ntp_sources {
                    view.additional_ntp_sources = text;
                }
            }
            Step::Clear(InfraEnvSetting::SshAuthorizedKey) => {
                self.row.as_mut().unwrap().view.ssh_authorized_key.clear();
            }
            Step::Join(cluster) => self.row.as_mut().unwrap().view.cluster_id = Some(cluster),
            Step::Status(patch) => {
                let infra_env = Arc::make_mut(&mut self.infra_env);
                let mut status = serde_json::to_value(infra_env.status.clone().unwrap_or_default()).unwrap();
                merge_into(&mut status, patch);
                infra_env.status = Some(serde_json::from_value(status).unwrap());
            }
            Step::Patch(patch) => {
                let infra_env = Arc::make_mut(&mut self.infra_env);
                let mut object = serde_json::to_value(&*infra_env).unwrap();
                merge_into(&mut object, patch);
                *infra_env = serde_json::from_value(object).unwrap();
            }
            Step::LabelSecret(_, labels) => {
                assert!(!labels.is_empty());
                self.pull_secret.as_mut().unwrap().missing_labels.clear();
            }
            Step::LabelConfigMap(..) => self.mirrors.as_mut().unwrap().missing_labels.clear(),
            Step::DeleteHost(host) => self.hosts.retain(|other| other.id != host),
            Step::DeleteInfraEnv => self.row = None,
            Step::Tell(_) => {}
        }
    }

    fn status(&self) -> crate::crd::infra_env::InfraEnvStatus {
        self.infra_env.status.clone().unwrap_or_default()
    }
}

fn merge_into(value: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *value = patch;
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let object = value.as_object_mut().unwrap();
    for (key, change) in patch {
        if change.is_null() {
            object.remove(&key);
        } else {
            merge_into(object.entry(key).or_insert(Value::Null), change);
        }
    }
}

fn json_text<T: serde::Serialize>(items: &[T]) -> String {
    if items.is_empty() {
        String::new()
    } else {
        serde_json::to_string(items).unwrap()
    }
}

fn row(desired: &CreateInfraEnv) -> Row {
    Row {
        view: InfraEnvView {
            id: ID,
            name: desired.name.clone(),
            cluster_id: desired.cluster_id,
            r#type: desired.image_type.unwrap().word().into(),
            openshift_version: desired.openshift_version.clone().unwrap_or_default(),
            ssh_authorized_key: desired.ssh_authorized_key.clone().unwrap_or_default(),
            proxy: desired.proxy.clone(),
            additional_ntp_sources: desired.additional_ntp_sources.clone().unwrap_or_default(),
            ntp_sources: desired.ntp_sources.clone().unwrap_or_default(),
            static_network_config: json_text(desired.static_network_config.as_deref().unwrap_or_default()),
            kernel_arguments: desired
                .kernel_arguments
                .as_deref()
                .map(json_text)
                .filter(|text| !text.is_empty()),
            ignition_config_override: desired.ignition_config_override.clone().unwrap_or_default(),
            additional_trust_bundle: desired.additional_trust_bundle.clone().unwrap_or_default(),
            network_discovery_delay_seconds: desired.network_discovery_delay_seconds,
            updated_at: Timestamp::new(NOON, 500).unwrap().into(),
            ..InfraEnvView::default()
        },
        links: InfraEnvLinks {
            iso: "http://hub/iso".into(),
            ipxe_script: "http://hub/ipxe".into(),
            ipxe_boot_order_script: "http://hub/ipxe?order".into(),
            static_network: "http://hub/net".into(),
            ..InfraEnvLinks::default()
        },
    }
}

fn created(snapshot: &Snapshot) -> CreateInfraEnv {
    match plan(snapshot).steps.as_slice() {
        [.., Step::Create(desired)] => (**desired).clone(),
        other => panic!("nothing is made: {other:#?}"),
    }
}

fn updated(snapshot: &Snapshot) -> UpdateInfraEnv {
    match plan(snapshot).steps.as_slice() {
        [.., Step::Update(desired)] => (**desired).clone(),
        other => panic!("nothing is changed: {other:#?}"),
    }
}

/// Status, reason and message of `ImageCreated` after a plan was carried out.
fn said(snapshot: &Snapshot) -> (String, String, String) {
    let mut snapshot = snapshot.clone();
    plan(&snapshot)
        .steps
        .into_iter()
        .for_each(|step| snapshot.carry_out(step));
    let status = snapshot.status();
    let condition = crate::crd::condition::find_service(&status.conditions, IMAGE_CREATED).unwrap();
    (
        condition.status.clone(),
        condition.reason.clone(),
        condition.message.clone(),
    )
}

fn network(name: &str, labels: &[(&str, &str)]) -> Arc<NMStateConfig> {
    let mut config = NMStateConfig::new(name, Default::default());
    config.metadata.namespace = Some("pool".into());
    config.metadata.labels = Some(
        labels
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect(),
    );
    config.spec.config = Some(json!({"interfaces": [{"name": "eth0"}]}));
    config.spec.interfaces = vec![crate::crd::nmstate_config::Interface {
        name: "eth0".into(),
        mac_address: "52:54:00:AA:BB:CC".into(),
    }];
    Arc::new(config)
}

fn selector(pairs: &[(&str, &str)]) -> Option<LabelSelector> {
    Some(LabelSelector {
        match_labels: Some(
            pairs
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
        ),
        match_expressions: None,
    })
}

#[test]
fn a_fresh_object_first_gets_its_id_and_finalizer_in_one_patch() {
    let snapshot = snapshot().with(|infra_env| {
        infra_env.metadata.annotations = None;
        infra_env.metadata.finalizers = Some(vec!["somebody/else".into()]);
    });
    let plan = plan(&snapshot);
    assert_eq!(plan.then, Then::Again);
    assert_eq!(
        plan.steps,
        [Step::Patch(json!({"metadata": {
            "annotations": {annotation::INFRA_ENV_ID: ID.to_string()},
            "finalizers": ["somebody/else", finalizer::INFRA_ENV],
        }}))]
    );
}

#[test]
fn an_unchanged_world_needs_nothing() {
    let converged = snapshot().converged();
    assert_eq!(plan(&converged), Plan::default());
}

#[test]
fn without_a_cluster_the_hub_gets_a_pool_and_the_object_its_links() {
    let desired = created(&snapshot());
    assert_eq!(
        (
            desired.name.as_str(),
            desired.cluster_id,
            desired.openshift_version.clone()
        ),
        ("lab", None, None)
    );
    assert_eq!(desired.image_type, Some(ImageType::MinimalIso));
    let converged = snapshot().converged();
    let status = converged.status();
    assert_eq!(said(&converged).1, reason::AVAILABLE);
    assert_eq!(status.iso_download_url, "http://hub/iso");
    assert_eq!(
        status.created_time,
        Some(Time(Timestamp::from_second(NOON).unwrap()))
    );
    let mut noted = converged.clone();
    let at = Timestamp::from_second(NOON - 60).unwrap();
    noted.row.as_mut().unwrap().links.image_changed_at = at.into();
    assert_eq!(
        noted.converged().status().created_time,
        Some(Time(at)),
        "not everything that is updated is in the image"
    );
    let selector = status.agent_label_selector.unwrap().match_labels.unwrap();
    assert_eq!(
        selector.get(keys::label::INFRA_ENV).map(String::as_str),
        Some("lab")
    );
}

#[test]
fn an_os_image_version_is_passed_on() {
    let snapshot = snapshot().with(|infra_env| infra_env.spec.os_image_version = "4.18".into());
    assert_eq!(created(&snapshot).openshift_version.as_deref(), Some("4.18"));
}

#[test]
fn with_a_cluster_hosts_are_bound_as_they_register_and_boot_its_release() {
    let mut snapshot = snapshot().with(|infra_env| infra_env.spec.cluster_ref = Some(ClusterRef::default()));
    snapshot.cluster = Cluster::Found {
        id: CLUSTER,
        version: "4.18.3".into(),
        installed: false,
    };
    let desired = created(&snapshot);
    assert_eq!(desired.cluster_id, Some(CLUSTER));
    assert_eq!(desired.openshift_version.as_deref(), Some("4.18.3"));
    let mut both = snapshot.with(|infra_env| infra_env.spec.os_image_version = "4.19".into());
    assert_eq!(created(&both).openshift_version.as_deref(), Some("4.18.3"));
    both.cluster = Cluster::Found {
        id: CLUSTER,
        version: "4.18.3".into(),
        installed: true,
    };
    assert_eq!(
        created(&both).openshift_version.as_deref(),
        Some("4.19"),
        "as it comes from a backup"
    );
}

#[test]
fn a_cluster_that_is_not_there_is_waited_for_without_asking_again() {
    for cluster in [Cluster::Absent, Cluster::NotInHub] {
        let mut snapshot =
            snapshot().with(|infra_env| infra_env.spec.cluster_ref = Some(ClusterRef::default()));
        snapshot.cluster = cluster;
        assert_eq!(plan(&snapshot).then, Then::Rest);
        snapshot.is_cluster_watched = false;
        assert_eq!(
            plan(&snapshot).then,
            Then::After(SOON),
            "nobody tells when it comes"
        );
        let (status, reason, _) = said(&snapshot);
        assert_eq!(
            (status.as_str(), reason.as_str()),
            ("Unknown", reason::MISSING_CLUSTER)
        );
    }
}

#[test]
fn another_os_image_is_passed_over_before_the_cluster_is_installed_and_the_image_stays() {
    let mut snapshot = snapshot().with(|infra_env| infra_env.spec.cluster_ref = Some(ClusterRef::default()));
    snapshot.cluster = Cluster::Found {
        id: CLUSTER,
        version: "4.18".into(),
        installed: false,
    };
    let mut snapshot = snapshot
        .converged()
        .with(|infra_env| infra_env.spec.os_image_version = "4.19".into());
    let (_, why, text) = said(&snapshot);
    assert_eq!(why, reason::AVAILABLE);
    assert!(text.contains("osImageVersion"), "{text}");
    let keeps = |step: &Step| !matches!(step, Step::Status(patch) if patch.get("isoDownloadURL").is_some());
    assert!(plan(&snapshot).steps.iter().all(keeps));
    snapshot.cluster = Cluster::Found {
        id: CLUSTER,
        version: "4.18".into(),
        installed: true,
    };
    snapshot.known.version = false;
    assert_eq!(updated(&snapshot).openshift_version.as_deref(), Some("4.19"));
}

#[test]
fn a_missing_pull_secret_is_reported_and_read_again() {
    let mut snapshot = snapshot();
    snapshot.pull_secret = None;
    assert_eq!(plan(&snapshot).then, Then::After(SOON));
    assert_eq!(said(&snapshot).1, reason::FAILED);
    snapshot.pull_secret = Some(found("other", "{}"));
    assert!(said(&snapshot).2.contains(".dockerconfigjson"));
}

#[test]
fn a_used_secret_is_labelled_first() {
    let mut snapshot = snapshot();
    let labels: BTreeMap<_, _> = [(keys::label::WATCH.to_owned(), "true".to_owned())].into();
    snapshot.pull_secret.as_mut().unwrap().missing_labels = labels.clone();
    let plan = plan(&snapshot);
    assert_eq!(plan.steps[0], Step::LabelSecret(Key::new("pool", "pull"), labels));
    assert!(matches!(plan.steps[1], Step::Create(_)));
}

#[test]
fn a_pull_secret_that_changed_is_all_that_is_sent() {
    let mut snapshot = snapshot().converged();
    snapshot.known.pull_secret = false;
    snapshot.pull_secret = Some(found(keys::data::PULL_SECRET, r#"{"new":1}"#));
    let update = updated(&snapshot);
    assert_eq!(
        update,
        UpdateInfraEnv {
            pull_secret: Some(r#"{"new":1}"#.into()),
            ..UpdateInfraEnv::default()
        }
    );
}

#[test]
fn networks_are_chosen_by_labels_within_the_namespace() {
    let mut snapshot = snapshot().with(|infra_env| {
        infra_env.spec.nm_state_config_label_selector = selector(&[("rack", "a")]);
    });
    let mut elsewhere = network("elsewhere", &[("rack", "a")]);
    Arc::make_mut(&mut elsewhere).metadata.namespace = Some("other".into());
    snapshot.networks = vec![
        network("mine", &[("rack", "a")]),
        network("theirs", &[("rack", "b")]),
        elsewhere,
    ];
    let networks = created(&snapshot).static_network_config.unwrap();
    assert_eq!(networks.len(), 1);
    let map = networks[0].mac_interface_map.as_ref().unwrap();
    assert_eq!(map[0].logical_nic_name.as_deref(), Some("eth0"));
    assert!(networks[0].network_yaml.as_ref().unwrap().contains("interfaces:"));
    let mut converged = snapshot.converged();
    assert_eq!(
        converged.status().debug_info.unwrap().static_network_download_url,
        "http://hub/net"
    );
    converged.networks.clear();
    assert_eq!(
        updated(&converged).static_network_config,
        Some(Vec::new()),
        "what went is taken out"
    );
    assert_eq!(plan(&converged.converged()), Plan::default());
}

#[test]
fn an_empty_selector_chooses_no_network() {
    let mut snapshot =
        snapshot().with(|infra_env| infra_env.spec.nm_state_config_label_selector = selector(&[]));
    snapshot.networks = vec![network("a", &[("rack", "a")])];
    assert_eq!(created(&snapshot).static_network_config, Some(Vec::new()));
}

#[test]
fn an_invalid_selector_is_reported() {
    let mut snapshot = snapshot().with(|infra_env| {
        let requirement = json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": []}]});
        infra_env.spec.nm_state_config_label_selector = serde_json::from_value(requirement).unwrap();
    });
    snapshot.networks = vec![network("a", &[("rack", "a")])];
    let (_, reason, message) = said(&snapshot);
    assert_eq!(reason, reason::FAILED);
    assert!(message.starts_with("nmStateConfigLabelSelector"), "{message}");
}

#[test]
fn a_password_that_the_hub_does_not_show_is_sent_until_it_is_known() {
    let mut converged = snapshot()
        .with(|infra_env| {
            infra_env.spec.proxy = Some(crate::crd::infra_env::Proxy {
                http_proxy: "http://u:new@p:1".into(),
                ..Default::default()
            });
        })
        .converged();
    let shown = &mut converged.row.as_mut().unwrap().view.proxy;
    shown.as_mut().unwrap().http_proxy = Some("http://u:***@p:1".into());
    assert_eq!(
        desired::difference(
            &converged.row.as_ref().unwrap().view,
            &desired::desired(&converged).unwrap(),
            converged.known
        ),
        None
    );
    converged.known.proxy = false;
    let known = updated(&converged).proxy.unwrap();
    assert_eq!(known.http_proxy.as_deref(), Some("http://u:new@p:1"));
}

#[test]
fn what_is_taken_out_of_the_object_is_taken_out_of_the_hub() {
    let full = snapshot().with(|infra_env| {
        infra_env.spec.proxy = Some(crate::crd::infra_env::Proxy {
            http_proxy: "http://p:3128".into(),
            ..Default::default()
        });
        infra_env.spec.additional_ntp_sources = vec!["a".into(), "b".into()];
        infra_env.spec.ignition_config_override = "{}".into();
    });
    assert_eq!(created(&full).additional_ntp_sources.as_deref(), Some("a,b"));
    let emptied = full.converged().with(|infra_env| {
        infra_env.spec.proxy = None;
        infra_env.spec.additional_ntp_sources.clear();
        infra_env.spec.ignition_config_override.clear();
    });
    let update = updated(&emptied);
    let nothing = Some(String::new());
    assert_eq!(
        update.proxy,
        Some(Proxy {
            http_proxy: nothing.clone(),
            https_proxy: nothing.clone(),
            no_proxy: nothing.clone(),
        })
    );
    assert_eq!(update.additional_ntp_sources, nothing);
    assert_eq!(update.ignition_config_override, nothing);
    assert_eq!(plan(&emptied.converged()), Plan::default());
}

#[test]
fn a_key_that_was_taken_out_is_taken_from_the_hub() {
    let keyed = snapshot().with(|infra_env| infra_env.spec.ssh_authorized_key = "ssh-rsa A".into());
    let without = keyed
        .converged()
        .with(|infra_env| infra_env.spec.ssh_authorized_key.clear());
    let clear = Step::Clear(InfraEnvSetting::SshAuthorizedKey);
    assert_eq!(plan(&without), Plan::of(vec![clear], Then::Again));
    assert_eq!(plan(&without.converged()), Plan::default());
}

#[test]
fn kernel_arguments_and_words_are_passed_on_or_reported() {
    let with = |operation: &str| {
        snapshot().with(|infra_env| {
            infra_env.spec.kernel_arguments = vec![crate::crd::infra_env::KernelArgument {
                operation: operation.into(),
                value: "console=ttyS0".into(),
            }];
        })
    };
    assert_eq!(created(&with("append")).kernel_arguments.unwrap().len(), 1);
    assert!(said(&with("prepend")).2.starts_with("kernelArguments"));
    let snapshot = snapshot().with(|infra_env| infra_env.spec.image_type = "tiny".into());
    assert!(said(&snapshot).2.starts_with("imageType"));
}

#[test]
fn machines_without_a_minimal_image_get_the_full_one() {
    let snapshot = snapshot().with(|infra_env| infra_env.spec.cpu_architecture = "s390x".into());
    assert_eq!(created(&snapshot).image_type, Some(ImageType::FullIso));
}

#[test]
fn mirrors_become_a_file_and_their_certificate_is_trusted() {
    let mut snapshot = snapshot().with(|infra_env| {
        infra_env.spec.mirror_registry_ref = Some(FullRef {
            namespace: "pool".into(),
            name: "mirrors".into(),
        });
        infra_env.spec.additional_trust_bundle = "own\n".into();
        infra_env.spec.ignition_config_override =
            r#"{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/a"}]}}"#.into();
    });
    assert_eq!(said(&snapshot).1, reason::FAILED, "there is no ConfigMap");
    snapshot.mirrors = Some(Found {
        values: [
            ("registries.conf".to_owned(), "x".to_owned()),
            ("ca-bundle.crt".to_owned(), "theirs".to_owned()),
        ]
        .into(),
        missing_labels: BTreeMap::new(),
    });
    let desired = created(&snapshot);
    let config: Value = serde_json::from_str(&desired.ignition_config_override.unwrap()).unwrap();
    assert_eq!(config["ignition"]["version"], "3.2.0");
    assert_eq!(config["storage"]["files"][0]["path"], "/a");
    assert_eq!(
        config["storage"]["files"][1]["path"],
        "/etc/containers/registries.conf"
    );
    assert_eq!(desired.additional_trust_bundle.as_deref(), Some("own\ntheirs"));
}

#[test]
fn the_boot_script_is_the_one_that_was_asked_for() {
    let snapshot = snapshot().with(|infra_env| infra_env.spec.ipxe_script_type = "BootOrderControl".into());
    let artifacts = snapshot.converged().status().boot_artifacts.unwrap();
    assert_eq!(artifacts.ipxe_script, "http://hub/ipxe?order");
}

#[test]
fn bad_input_clears_the_link_and_is_not_tried_again() {
    let mut snapshot = snapshot().converged();
    snapshot.failure = Some(Refusal::Input("no such version".into()));
    assert_eq!(plan(&snapshot).then, Then::Rest);
    let (status, reason, message) = said(&snapshot);
    assert_eq!((status.as_str(), reason.as_str()), ("False", reason::FAILED));
    assert!(message.contains("no such version"));
    let patch = plan(&snapshot).steps.into_iter().find_map(|step| match step {
        Step::Status(patch) => Some(patch),
        _ => None,
    });
    let patch = patch.unwrap();
    assert!(patch["isoDownloadURL"].is_null() && patch["createdTime"].is_null());
}

#[test]
fn a_hub_that_does_not_answer_does_not_take_back_an_image_that_is_there() {
    let mut snapshot = snapshot().converged();
    snapshot.failure = Some(Refusal::Internal("gone".into()));
    assert_eq!(plan(&snapshot), Plan::of(Vec::new(), Then::After(SOON)));
    let mut fresh = super::tests::snapshot();
    fresh.failure = Some(Refusal::Internal("gone".into()));
    assert_eq!(said(&fresh).1, reason::FAILED);
    assert_eq!(plan(&fresh).then, Then::After(SOON));
}

#[test]
fn a_conflict_means_the_image_is_being_prepared() {
    let mut snapshot = snapshot();
    snapshot.failure = Some(Refusal::Conflict("busy".into()));
    let (status, reason, _) = said(&snapshot);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("True", reason::IN_PREPARATION)
    );
    assert_eq!(plan(&snapshot).then, Then::After(SOON));
}

#[test]
fn one_event_says_when_the_image_comes_or_goes() {
    let news = |snapshot: &Snapshot| {
        let steps = plan(snapshot).steps;
        steps
            .into_iter()
            .filter(|step| matches!(step, Step::Tell(_)))
            .count()
    };
    let mut snapshot = snapshot();
    snapshot.pull_secret = None;
    assert_eq!(news(&snapshot), 1);
    plan(&snapshot)
        .steps
        .into_iter()
        .for_each(|step| snapshot.carry_out(step));
    assert_eq!(news(&snapshot), 0);
}

#[test]
fn deletion_empties_the_hub_first_and_then_lets_the_object_go() {
    let mut snapshot = snapshot().converged().with(|infra_env| {
        infra_env.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(NOON).unwrap()));
    });
    let host = Uuid::from_u128(1);
    snapshot.hosts = vec![member(1, "known-unbound")];
    let first = plan(&snapshot);
    assert_eq!(first.steps, [Step::DeleteHost(host), Step::DeleteInfraEnv]);
    assert_eq!(first.then, Then::Again);
    first.steps.into_iter().for_each(|step| snapshot.carry_out(step));
    assert_eq!(
        plan(&snapshot).steps,
        [Step::Patch(json!({"metadata": {"finalizers": []}}))]
    );
}

fn member(number: u128, status: &str) -> Member {
    Member {
        id: Uuid::from_u128(number),
        name: format!("rack-{number}"),
        status: status.into(),
    }
}

#[test]
fn a_host_that_cannot_be_deleted_delays_the_deletion_and_says_so() {
    let mut snapshot = snapshot().converged().with(|infra_env| {
        infra_env.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(NOON).unwrap()));
    });
    snapshot.failure = Some(Refusal::Conflict("somebody is faster".into()));
    let first = plan(&snapshot);
    assert_eq!(first.then, Then::After(LATER));
    assert!(
        matches!(&first.steps[..], [Step::Status(_), Step::Tell(news)] if news.warning && news.note.contains("faster"))
    );
    first.steps.into_iter().for_each(|step| snapshot.carry_out(step));
    assert_eq!(
        plan(&snapshot),
        Plan::of(Vec::new(), Then::After(LATER)),
        "said once"
    );
}

#[test]
fn nothing_is_deleted_while_a_disk_is_written_and_the_condition_names_the_machine() {
    let mut snapshot = snapshot().converged().with(|infra_env| {
        infra_env.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(NOON).unwrap()));
    });
    snapshot.hosts = vec![
        member(1, "installed"),
        member(2, "installing-in-progress"),
        member(3, "known-unbound"),
    ];
    let first = plan(&snapshot);
    let deletes = |step: &Step| matches!(step, Step::DeleteHost(_) | Step::DeleteInfraEnv);
    assert!(!first.steps.iter().any(deletes), "{first:?}");
    first.steps.into_iter().for_each(|step| snapshot.carry_out(step));
    let conditions = snapshot.status().conditions;
    let said = find_service(&conditions, "Cleanup").unwrap();
    assert_eq!((&*said.status, &*said.reason), ("False", "HostsAreInstalling"));
    assert!(said.message.contains("rack-2") && !said.message.contains("rack-1"));
    snapshot.hosts[1].status = "installed".into();
    assert_eq!(
        plan(&snapshot).steps.iter().filter(|step| deletes(step)).count(),
        4
    );
}

#[test]
fn hosts_that_came_back_meanwhile_are_deleted_too() {
    let mut snapshot = snapshot().converged().with(|infra_env| {
        infra_env.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(NOON).unwrap()));
    });
    snapshot.failure = Some(Refusal::Input("it still has hosts".into()));
    snapshot.hosts = vec![member(2, "discovering-unbound")];
    assert_eq!(plan(&snapshot).steps.len(), 2);
}

#[test]
fn an_object_that_was_copied_with_its_id_touches_nothing_of_the_other() {
    let mut snapshot = snapshot();
    snapshot.rival = Some(Key::new("pool", "original"));
    let (_, reason, message) = said(&snapshot);
    assert_eq!(reason, reason::FAILED);
    assert!(message.contains("pool/original"));
    let copy = snapshot.converged().with(|infra_env| {
        infra_env.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(NOON).unwrap()));
    });
    assert!(
        matches!(&plan(&copy).steps[..], [Step::Patch(_)]),
        "only its finalizer goes"
    );
}

#[test]
fn a_new_image_is_left_alone_for_a_minute() {
    let converged = snapshot().converged();
    let at = |second: i64| Timestamp::from_second(NOON + second).unwrap();
    assert_eq!(
        converged.infra_env.cool_down_left(at(20)),
        Some(Duration::from_secs(40))
    );
    assert_eq!(converged.infra_env.cool_down_left(at(90)), Some(Duration::ZERO));
    assert_eq!(snapshot().infra_env.cool_down_left(at(0)), None);
}

#[test]
fn an_image_that_ironics_agent_is_to_be_in_gets_it_and_loses_it_again() {
    let mut asked = snapshot();
    asked.ironic = DesiredIronic::Known(crate::controller::preprovisioning_image::ironic::Ironic {
        url: "https://ironic:6385".into(),
        inspector: None,
        image: "registry/ipa:1".into(),
    });
    let has = |plan: &Plan| {
        let sent = plan.steps.iter().find_map(|step| match step {
            Step::Create(desired) => desired.ignition_config_override.clone(),
            Step::Update(desired) => desired.ignition_config_override.clone(),
            _ => None,
        });
        sent.map(|text| crate::controller::preprovisioning_image::ironic::is_in(&text))
    };
    assert_eq!(has(&plan(&asked)), Some(true));
    let mut converged = asked.converged();
    assert_eq!(has(&plan(&converged)), None, "nothing is to be done");
    converged.ironic = DesiredIronic::Unknown;
    assert_eq!(
        has(&plan(&converged)),
        None,
        "it stays while nobody knows where Ironic is"
    );
    converged.ironic = DesiredIronic::NotWanted;
    assert_eq!(has(&plan(&converged)), Some(false));
}
