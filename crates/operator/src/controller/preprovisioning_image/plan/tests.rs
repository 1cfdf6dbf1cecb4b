//! Plans for PreprovisioningImages.

use super::*;
use crate::controller::infra_env::Row;
use crate::controller::preprovisioning_image::ironic::Ironic;
use crate::controller::preprovisioning_image::snapshot::Network;
use crate::crd::agent::AgentStatus;
use crate::crd::condition::set_service;
use crate::crd::infra_env::{BootArtifacts, InfraEnvStatus, KernelArgument};
use crate::crd::metal3::{BareMetalHostStatus, CustomDeploy, SecretStatus};
use crate::crd::{Agent, PreprovisioningImage};
use crate::runtime::clock;
use jiff::{SignedDuration, Timestamp};
use muster_contract::v1::link::InfraEnvLinks;
use muster_contract::v2::infra_env::InfraEnvView;
use std::sync::Arc;

const URL: &str = "http://hub.example.com/image.iso";
const NEWER: &str = "http://hub.example.com/newer.iso";
const LATER: Duration = Duration::from_secs(60);

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

fn ironic() -> Ironic {
    Ironic {
        url: "https://ironic:6385".into(),
        inspector: None,
        image: "registry/ipa:1".into(),
    }
}

fn infra_env() -> InfraEnv {
    let mut infra_env = InfraEnv::new("lab", Default::default());
    infra_env.metadata.namespace = Some("pool".into());
    infra_env.spec.cpu_architecture = "x86_64".into();
    let mut status = InfraEnvStatus {
        iso_download_url: URL.into(),
        created_time: Some(clock::time(now() - SignedDuration::from_hours(1))),
        boot_artifacts: Some(BootArtifacts {
            initrd: "http://hub/initrd".into(),
            kernel: "http://hub/kernel".into(),
            rootfs: "http://hub/rootfs".into(),
            ..BootArtifacts::default()
        }),
        ..InfraEnvStatus::default()
    };
    let available = Finding::new(IMAGE_CREATED, true, "InfraEnvAvailable", "It can be downloaded.");
    set_service(&mut status.conditions, available, now());
    infra_env.status = Some(status);
    infra_env
}

fn row() -> Row {
    Row {
        view: InfraEnvView {
            ignition_config_override: ironic::add_to("", &ironic(), &infra_env()).unwrap(),
            ..InfraEnvView::default()
        },
        links: InfraEnvLinks::default(),
    }
}

/// A Secret says it, and is watched.
fn whereabouts() -> Whereabouts {
    Whereabouts {
        ironic: Ok(ironic()),
        is_watched: true,
        ..Whereabouts::unknown(&Key::new("metal", "ironic"), String::new())
    }
}

fn agent(state: &str) -> Agent {
    let mut agent = Agent::new("a", Default::default());
    let mut shown = AgentStatus::default();
    shown.debug_info.state = state.into();
    agent.status = Some(shown);
    agent
}

fn host(state: &str) -> BareMetalHost {
    let mut host = BareMetalHost::new("rack-1", Default::default());
    host.metadata.namespace = Some("pool".into());
    host.status = Some(BareMetalHostStatus(json!({ "provisioning": { "state": state } })));
    host
}

fn snapshot() -> Snapshot {
    let mut image = PreprovisioningImage::new("rack-1", Default::default());
    image.metadata.namespace = Some("pool".into());
    image.metadata.generation = Some(3);
    image.metadata.finalizers = Some(vec![finalizer::PREPROVISIONING_IMAGE.into()]);
    image.labels_mut().insert(label::INFRA_ENV.into(), "lab".into());
    image
        .labels_mut()
        .insert(label::NOT_IN_BACKUP.into(), "true".into());
    image.spec.architecture = "x86_64".into();
    image.spec.accept_formats = vec!["iso".into(), "initrd".into()];
    Snapshot {
        key: Key::new("pool", "rack-1"),
        image: Arc::new(image),
        host: Some(Arc::new(host("available"))),
        agent: None,
        infra_env: Some(Arc::new(infra_env())),
        row: Some(row()),
        hub_is_silent: false,
        whereabouts: whereabouts(),
        states_in_hub: None,
        network: None,
        boot: MetalBoot::Converged,
        retry: Duration::from_secs(10),
        now: now(),
    }
}

impl Snapshot {
    fn image(mut self, change: impl FnOnce(&mut PreprovisioningImage)) -> Self {
        change(Arc::make_mut(&mut self.image));
        self
    }

    fn infra_env(mut self, change: impl FnOnce(&mut InfraEnv)) -> Self {
        change(Arc::make_mut(self.infra_env.as_mut().unwrap()));
        self
    }

    fn host(mut self, host: BareMetalHost) -> Self {
        self.host = Some(Arc::new(host));
        self
    }

    /// The image is published.
    fn with_url(self, url: &str) -> Self {
        converged(
            &self.infra_env(|infra_env| infra_env.status.as_mut().unwrap().iso_download_url = url.into()),
        )
    }
}

/// Carries out the steps as the API server would, until there are none.
fn converged(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    for _ in 0..5 {
        let plan = plan(&snapshot);
        if plan.then != Then::Again {
            assert!(plan.steps.is_empty(), "{plan:?}");
            return snapshot;
        }
        for step in &plan.steps {
            match step {
                Step::Patch(patch) => snapshot.image = Arc::new(merged(&*snapshot.image, patch)),
                Step::Status(status) => {
                    snapshot.image = Arc::new(merged(&*snapshot.image, &json!({ "status": status })));
                }
                Step::PatchHost(patch) => {
                    snapshot.host = Some(Arc::new(merged(&**snapshot.host.as_ref().unwrap(), patch)))
                }
                Step::AnnotateInfraEnv(patch) => {
                    snapshot.infra_env =
                        Some(Arc::new(merged(&**snapshot.infra_env.as_ref().unwrap(), patch)));
                }
                Step::LabelSecret(key, _) if *key == snapshot.whereabouts.secret => {
                    snapshot.whereabouts.missing_labels.clear();
                }
                Step::LabelSecret(..) => snapshot.network.as_mut().unwrap().missing_labels.clear(),
                Step::WakeInfraEnv => {}
            }
        }
    }
    panic!("it does not converge: {snapshot:?}");
}

fn merged<K: serde::Serialize + serde::de::DeserializeOwned>(object: &K, patch: &Value) -> K {
    let mut value = serde_json::to_value(object).unwrap();
    merge(&mut value, patch);
    serde_json::from_value(value).unwrap()
}

fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (name, field) in fields {
        if field.is_null() {
            value.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut value[name], field);
        }
    }
}

fn status(snapshot: &Snapshot) -> PreprovisioningImageStatus {
    snapshot.image.status.clone().unwrap_or_default()
}

/// Ready, Error and their reason.
fn says(snapshot: &Snapshot) -> (String, String, String) {
    let status = status(snapshot);
    let find = |type_: &str| {
        status
            .conditions
            .iter()
            .find(|one| one.type_ == type_)
            .cloned()
            .unwrap()
    };
    let (ready, error) = (find("Ready"), find("Error"));
    assert_eq!(
        (ready.observed_generation, &ready.reason),
        (Some(3), &error.reason)
    );
    (ready.status, error.status, ready.reason)
}

fn words(ready: &str, error: &str, reason: &str) -> (String, String, String) {
    (ready.into(), error.into(), reason.into())
}

fn is_rebooted(snapshot: &Snapshot) -> bool {
    let host = snapshot.host.as_deref();
    let noted = host.and_then(|host| host.annotations().get(annotation::METAL3_REBOOT));
    noted.is_some_and(|noted| noted == r#"{"force": true}"#)
}

#[test]
fn an_image_is_kept_out_of_backups_and_published_as_the_bare_metal_operator_wants_it() {
    let fresh = snapshot().image(|image| {
        image.metadata.finalizers = None;
        image.labels_mut().remove(label::NOT_IN_BACKUP);
    });
    let done = converged(&fresh);
    assert_eq!(done.image.finalizers(), [finalizer::PREPROVISIONING_IMAGE]);
    assert_eq!(done.image.labels()[label::NOT_IN_BACKUP], "true");
    assert_eq!(says(&done), words("True", "False", "InfraEnvAvailable"));
    let status = status(&done);
    assert_eq!((status.image_url.as_str(), status.format.as_str()), (URL, "iso"));
    assert!(!is_rebooted(&done), "it is the first");
}

#[test]
fn where_only_a_kernel_can_be_booted_all_its_parts_are_published() {
    let wants = snapshot()
        .image(|image| image.spec.accept_formats = vec!["initrd".into()])
        .infra_env(|infra_env| {
            let argument = |operation: &str, value: &str| KernelArgument {
                operation: operation.into(),
                value: value.into(),
            };
            infra_env.spec.kernel_arguments = vec![argument("append", "p1"), argument("delete", "p2")];
        });
    let status = status(&converged(&wants));
    assert_eq!(
        (status.format.as_str(), status.image_url.as_str()),
        ("initrd", "http://hub/initrd")
    );
    assert_eq!(status.kernel_url, "http://hub/kernel");
    assert_eq!(
        status.extra_kernel_params,
        "coreos.live.rootfs_url=http://hub/rootfs rd.bootif=0 p1"
    );
}

#[test]
fn the_architecture_is_compared_by_meaning_and_answered_word_by_word() {
    for (asked, has, fits) in [
        ("x86_64", "x86_64", true),
        ("x86_64", "", true),
        ("aarch64", "arm64", true),
        ("arm64", "aarch64", true),
        ("aarch64", "x86_64", false),
    ] {
        let done = converged(
            &snapshot()
                .image(|image| image.spec.architecture = asked.into())
                .infra_env(|infra_env| infra_env.spec.cpu_architecture = has.into()),
        );
        let expected = match fits {
            true => words("True", "False", "InfraEnvAvailable"),
            false => words("False", "True", "InfraEnvArchMismatch"),
        };
        assert_eq!(says(&done), expected, "{asked} {has}");
        let answered = status(&done).architecture;
        assert_eq!(answered, if fits { asked } else { "" });
    }
}

#[test]
fn what_is_in_the_way_is_said_and_takes_the_image_back() {
    let mut gone = snapshot().with_url(URL);
    gone.infra_env = None;
    let mut unknown = snapshot().with_url(URL);
    unknown.row = None;
    let cases = [
        (
            snapshot()
                .with_url(URL)
                .image(|image| image.spec.accept_formats = vec!["usb".into()]),
            words("False", "True", "UnsupportedImageFormat"),
        ),
        (gone, words("False", "False", "InfraEnvNotAvailable")),
        (
            snapshot()
                .with_url(URL)
                .infra_env(|infra_env| infra_env.metadata.deletion_timestamp = Some(clock::time(now()))),
            words("False", "False", "InfraEnvNotAvailable"),
        ),
        (
            unknown,
            words("False", "False", "WaitingForInfraEnvImageToBeCreated"),
        ),
        (
            snapshot()
                .with_url(URL)
                .infra_env(|infra_env| infra_env.status.as_mut().unwrap().created_time = None),
            words("False", "False", "WaitingForInfraEnvImageToBeCreated"),
        ),
    ];
    for (snapshot, expected) in cases {
        let held = converged(&snapshot);
        assert_eq!(says(&held), expected);
        let status = status(&held);
        assert!(status.image_url.is_empty() && status.format.is_empty() && status.architecture.is_empty());
    }
}

#[test]
fn an_image_without_ironics_agent_is_never_published() {
    let mut plain = snapshot();
    plain.row.as_mut().unwrap().view.ignition_config_override.clear();
    let asked = converged(&plain);
    assert_eq!(
        says(&asked),
        words("False", "False", "WaitingForInfraEnvImageToBeCreated")
    );
    let infra_env = asked.infra_env.as_ref().unwrap();
    assert_eq!(infra_env.annotations()[annotation::ENABLE_IRONIC_AGENT], "true");
    plain.whereabouts.ironic = Err("There is no Secret.".into());
    let failed = converged(&plain);
    assert_eq!(
        says(&failed),
        words("False", "True", "IronicAgentIgnitionUpdateFailure")
    );
    assert!(status(&failed).conditions[0].message.contains("no Secret"));
    assert!(
        !failed
            .infra_env
            .as_ref()
            .unwrap()
            .annotations()
            .contains_key(annotation::ENABLE_IRONIC_AGENT)
    );
    assert_eq!(plan(&failed).then, Then::After(LATER));
    // Somebody has put it in by himself.
    let mut own = snapshot();
    own.whereabouts.ironic = Err("There is no Secret.".into());
    assert_eq!(says(&converged(&own)).2, "InfraEnvAvailable");
}

#[test]
fn a_new_image_cools_down_is_published_and_machines_that_run_the_old_one_are_rebooted() {
    let old = snapshot().with_url(URL);
    let fresh = old.infra_env(|infra_env| {
        let status = infra_env.status.as_mut().unwrap();
        status.iso_download_url = NEWER.into();
        status.created_time = Some(clock::time(now() - SignedDuration::from_secs(20)));
    });
    let mut cooling = converged(&fresh);
    assert_eq!(
        says(&cooling),
        words("False", "False", "WaitingForInfraEnvImageToCoolDown")
    );
    assert!(status(&cooling).image_url.is_empty() && !is_rebooted(&cooling));
    assert_eq!(plan(&cooling).then, Then::After(Duration::from_secs(40)));
    cooling.now = now() + SignedDuration::from_secs(40);
    let done = converged(&cooling);
    assert_eq!(status(&done).image_url, NEWER);
    assert!(is_rebooted(&done));
    // The bare metal operator has done so.
    let mut rebooted = done.clone();
    rebooted.host = cooling.host.clone();
    assert!(!is_rebooted(&converged(&rebooted)), "once");
}

/// The image before was published, and another one is.
fn with_newer_image(host: BareMetalHost, agent: Option<Agent>) -> Snapshot {
    let mut running = snapshot().host(host).with_url(URL);
    running.states_in_hub = agent.as_ref().map(|agent| {
        let shown = agent.status.as_ref().unwrap();
        vec![shown.debug_info.state.clone()]
    });
    running.agent = agent.map(Arc::new);
    let done = running.with_url(NEWER);
    assert_eq!(status(&done).image_url, NEWER);
    done
}

fn noted(snapshot: &Snapshot) -> &str {
    &snapshot.image.annotations()[annotation::PUBLISHED_IMAGE]
}

#[test]
fn a_machine_that_runs_a_cluster_is_not_rebooted_for_an_image() {
    let with = |key: &str| {
        let mut host = host("available");
        host.annotations_mut().insert(key.into(), "".into());
        host
    };
    let mut leaving = host("available");
    leaving.metadata.deletion_timestamp = Some(clock::time(now()));
    let cases = [
        (host("provisioned"), false),
        (host("externally provisioned"), false),
        (host("powering off before delete"), false),
        (host("deleting"), false),
        (with(annotation::METAL3_DETACHED), false),
        (leaving, false),
        (host("available"), true),
        (host("provisioning"), true),
        (host("inspecting"), true),
    ];
    for (host, expected) in cases {
        let done = with_newer_image(host, None);
        assert_eq!(is_rebooted(&done), expected, "{:?}", done.host);
        assert_eq!(
            (noted(&done), plan(&done).then),
            (NEWER, Then::Rest),
            "and that is all"
        );
    }
}

#[test]
fn a_machine_that_must_not_be_disturbed_is_rebooted_when_that_is_over() {
    for busy in [
        "preparing-for-installation",
        "installing-in-progress",
        "installed",
        "error",
        "binding",
    ] {
        let held = with_newer_image(host("provisioning"), Some(agent(busy)));
        assert!(!is_rebooted(&held), "{busy}");
        assert_eq!(
            (noted(&held), plan(&held).then),
            (URL, Then::After(LATER)),
            "{busy}"
        );
        // Its installation was called off.
        let mut free = held.clone();
        free.agent = Some(Arc::new(agent("known-unbound")));
        free.states_in_hub = Some(vec!["known-unbound".into()]);
        let free = converged(&free);
        assert!(is_rebooted(&free), "{busy}");
        assert_eq!(noted(&free), NEWER);
        // Or it came to its end.
        let done = converged(&held.host(host("provisioned")));
        assert!(!is_rebooted(&done), "{busy}");
        assert_eq!((noted(&done), plan(&done).then), (NEWER, Then::Rest));
    }
    for free in [
        "known-unbound",
        "known",
        "insufficient",
        "unbinding-pending-user-action",
    ] {
        assert!(
            is_rebooted(&with_newer_image(host("provisioning"), Some(agent(free)))),
            "{free}"
        );
    }
    let cleaned = with_newer_image(host("deprovisioning"), None);
    assert!(!is_rebooted(&cleaned) && noted(&cleaned) == URL);
    assert!(is_rebooted(&converged(&cleaned.host(host("available")))));
}

#[test]
fn an_agent_that_lags_behind_its_host_reboots_nothing() {
    for states in [Some(vec!["installing".to_owned()]), Some(Vec::new()), None] {
        let mut running = snapshot().host(host("provisioning")).with_url(URL);
        running.agent = Some(Arc::new(agent("known-unbound")));
        assert!(
            published::question(&running).is_none(),
            "nothing is asked without need"
        );
        running.states_in_hub = states.clone();
        let held = running.with_url(NEWER);
        assert!(published::question(&held).is_some());
        assert!(!is_rebooted(&held), "{states:?}");
        assert_eq!(plan(&held).then, Then::After(LATER));
    }
}

#[test]
fn an_image_that_is_another_and_then_the_same_again_reboots_nobody() {
    let running = snapshot().host(host("provisioning")).with_url(URL);
    let mut cooling = running.infra_env(|infra_env| {
        let status = infra_env.status.as_mut().unwrap();
        status.created_time = Some(clock::time(now() - SignedDuration::from_secs(20)));
    });
    cooling = converged(&cooling);
    assert!(status(&cooling).image_url.is_empty());
    cooling.now = now() + SignedDuration::from_secs(40);
    let done = converged(&cooling);
    assert_eq!(status(&done).image_url, URL);
    assert!(!is_rebooted(&done));
}

#[test]
fn an_image_that_the_hub_has_changed_already_is_not_published_before_it_has_cooled_down() {
    let mut ahead = snapshot();
    let links = &mut ahead.row.as_mut().unwrap().links;
    links.image_changed_at = (now() - SignedDuration::from_secs(20)).into();
    assert_eq!(says(&converged(&ahead)).2, "WaitingForInfraEnvImageToCoolDown");
    // Something was updated that is not in the image.
    let row = ahead.row.as_mut().unwrap();
    row.links.image_changed_at = (now() - SignedDuration::from_hours(1)).into();
    row.view.updated_at = now().into();
    assert_eq!(says(&converged(&ahead)).2, "InfraEnvAvailable");
}

#[test]
fn an_image_stays_until_its_machine_is_clean() {
    let leaving = |host: Option<BareMetalHost>| {
        let mut snapshot =
            snapshot().image(|image| image.metadata.deletion_timestamp = Some(clock::time(now())));
        snapshot.host = host.map(Arc::new);
        converged_or_gone(&snapshot)
    };
    let deleted = |state: &str| {
        let mut host = host(state);
        host.metadata.deletion_timestamp = Some(clock::time(now()));
        host
    };
    let mut dirty = host("provisioned");
    dirty.spec.automated_cleaning_mode = Some("disabled".into());
    for (host, goes) in [
        (Some(host("available")), false),
        (Some(host("deleting")), false),
        (Some(deleted("deprovisioning")), false),
        (Some(deleted("powering off before delete")), true),
        (Some(deleted("deleting")), true),
        (Some(dirty), true),
        (None, true),
    ] {
        let case = format!("{host:?}");
        assert_eq!(leaving(host), goes, "{case}");
    }
}

/// Whether the last reconcile lets the image go.
fn converged_or_gone(snapshot: &Snapshot) -> bool {
    let plan = plan(snapshot);
    assert_eq!(plan.then, Then::Rest, "watches tell the rest");
    matches!(&plan.steps[..], [Step::Patch(patch)] if patch["metadata"]["finalizers"] == json!([]))
}

#[test]
fn images_of_machines_that_boot_live_images_are_somebody_elses() {
    let mut live = snapshot().image(|image| image.metadata.finalizers = None);
    live.boot = MetalBoot::LiveImage;
    assert_eq!(plan(&live), Plan::default());
    let mut preset = host("registering");
    preset.spec.custom_deploy = Some(CustomDeploy {
        method: "start_assisted_install".into(),
        ..CustomDeploy::default()
    });
    assert_eq!(says(&converged(&live.host(preset))).2, "InfraEnvAvailable");
}

#[test]
fn network_data_is_acknowledged_and_where_the_network_comes_from_is_said() {
    let mut named = snapshot().image(|image| image.spec.network_data_name = "net".into());
    let without = converged(&named);
    assert!(status(&without).network_data.is_none());
    assert!(
        status(&without).conditions[0]
            .message
            .contains("Secret net, which does not exist")
    );
    assert_eq!(plan(&without).then, Then::After(LATER), "it may come later");
    let version = SecretStatus {
        name: "net".into(),
        version: "7".into(),
    };
    named.network = Some(Network {
        secret: version.clone(),
        missing_labels: keys::used_labels(&BTreeMap::new()),
    });
    assert!(matches!(&plan(&named).steps[0], Step::LabelSecret(key, _) if *key == Key::new("pool", "net")));
    let done = converged(&named);
    assert_eq!(plan(&done).then, Then::Rest);
    assert_eq!(status(&done).network_data, Some(version));
    assert!(
        status(&done).conditions[0]
            .message
            .contains("NMStateConfigs of InfraEnv lab")
    );
}

#[test]
fn while_the_hub_does_not_answer_what_is_published_stays() {
    let mut silent = snapshot().with_url(URL);
    silent.hub_is_silent = true;
    silent.row = None;
    assert_eq!(
        plan(&silent),
        Plan::of(Vec::new(), Then::After(Duration::from_secs(10)))
    );
}

/// The image was asked to contain Ironic's agent, and does.
fn following() -> Snapshot {
    converged(&snapshot().infra_env(|infra_env| {
        let noted = (annotation::ENABLE_IRONIC_AGENT.to_owned(), "true".to_owned());
        infra_env.annotations_mut().extend([noted]);
    }))
}

#[test]
fn an_image_whose_agent_is_another_or_uses_ironic_elsewhere_is_made_anew() {
    let still = following();
    assert!(plan(&still).steps.is_empty());
    let elsewhere = Ironic {
        url: "https://elsewhere:6385".into(),
        ..ironic()
    };
    let newer = Ironic {
        image: "registry/ipa:2".into(),
        ..ironic()
    };
    for other in [elsewhere, newer] {
        let mut moved = still.clone();
        moved.whereabouts.ironic = Ok(other);
        assert_eq!(plan(&moved), Plan::of(vec![Step::WakeInfraEnv], Then::Rest));
        let mut own = moved.infra_env(|infra_env| infra_env.annotations_mut().clear());
        assert!(plan(&own).steps.is_empty(), "people brought it themselves");
        own.whereabouts.ironic = Err("nobody knows".into());
        assert!(plan(&own).steps.is_empty());
    }
}

#[test]
fn where_ironic_is_is_watched_or_asked_for_again() {
    let mut followed = following();
    assert_eq!(plan(&followed).then, Then::Rest, "the Secret is watched");
    let watch: BTreeMap<_, _> = [(label::WATCH.to_owned(), "true".to_owned())].into();
    followed.whereabouts.missing_labels = watch.clone();
    let key = followed.whereabouts.secret.clone();
    assert_eq!(plan(&followed).steps, [Step::LabelSecret(key, watch)]);
    let own = followed
        .clone()
        .infra_env(|infra_env| infra_env.annotations_mut().clear());
    assert!(plan(&own).steps.is_empty(), "it is not used for this image");
    let mut by_pod = following();
    by_pod.whereabouts.is_watched = false;
    assert_eq!(plan(&by_pod), Plan::of(Vec::new(), Then::After(5 * LATER)));
    let own = by_pod.infra_env(|infra_env| infra_env.annotations_mut().clear());
    assert_eq!(plan(&own), Plan::default());
}

#[test]
fn a_missing_right_is_named_where_the_image_stays_as_it_is() {
    let mut blind = following();
    blind.whereabouts.ironic = Err("nobody knows".into());
    blind.whereabouts.is_watched = false;
    blind.whereabouts.hidden = Some("the operator has no right to list pods in namespace metal".into());
    let shown = converged(&blind);
    assert_eq!(says(&shown), words("True", "False", "InfraEnvAvailable"));
    let message = &status(&shown).conditions[0].message;
    assert!(
        message.ends_with("when Ironic moves: the operator has no right to list pods in namespace metal.")
    );
}
