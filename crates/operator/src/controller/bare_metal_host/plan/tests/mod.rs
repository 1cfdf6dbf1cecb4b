//! Plans for BareMetalHosts in all their states.

mod agents;
mod boots;
mod copies;
mod drains;
mod foreign;
mod hardware;
mod joins;
mod leaves;
mod returns;

use super::*;
use crate::crd::agent::{AgentStatus, Disk, HostInterface, HostProgress, InstallationEligibility, Inventory};
use crate::crd::condition::{Finding, set_service};
use crate::crd::infra_env::InfraEnvStatus;
use crate::crd::keys::{finalizer, label};
use crate::crd::metal3::{BareMetalHostStatus, CustomDeploy, Image};
use crate::crd::{InfraEnv, PreprovisioningImage};
use crate::runtime::clock;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::sync::Arc;

const URL: &str = "http://hub.example.com/image.iso";
const MAC: &str = "52:54:00:00:00:01";
const OURS: &str = "assisted-service-controller";
const START: &str = "start_assisted_install";

/// Every state a machine can be in.
const STATES: [&str; 14] = [
    "",
    "unmanaged",
    "registering",
    "match profile",
    "preparing",
    "ready",
    "available",
    "provisioning",
    "provisioned",
    "externally provisioned",
    "deprovisioning",
    "inspecting",
    "powering off before delete",
    "deleting",
];

fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

/// As somebody made it, and as the bare metal operator has it.
fn host(state: &str) -> BareMetalHost {
    let mut host = BareMetalHost::new("rack-1", Default::default());
    host.metadata.namespace = Some("pool".into());
    host.spec.boot_mac_address = MAC.to_uppercase();
    host.labels_mut().insert(label::INFRA_ENV.into(), "shared".into());
    if !state.is_empty() {
        host.status = Some(status(state, "OK"));
    }
    host
}

fn status(state: &str, operational: &str) -> BareMetalHostStatus {
    BareMetalHostStatus(json!({
        "provisioning": { "state": state, "ID": "x", "inNewerVersions": { "b": [1], "a": null } },
        "operationalStatus": operational, "poweredOn": true,
    }))
}

fn annotated(mut host: BareMetalHost, annotations: &[(&str, &str)]) -> BareMetalHost {
    for (key, value) in annotations {
        host.annotations_mut().insert((*key).into(), (*value).into());
    }
    host
}

fn booted_live(state: &str) -> BareMetalHost {
    let mut host = converged_metadata(host(state));
    host.spec.image = Some(Image {
        url: URL.into(),
        format: Some("live-iso".into()),
        ..Image::default()
    });
    host.spec.online = true;
    host.spec.automated_cleaning_mode = Some("disabled".into());
    annotated(host, &[(annotation::METAL3_INSPECT, "disabled")])
}

fn deployed(state: &str) -> BareMetalHost {
    let mut host = converged_metadata(host(state));
    host.spec.custom_deploy = Some(CustomDeploy {
        method: START.into(),
        ..CustomDeploy::default()
    });
    host
}

/// A way to discovery, and a machine that is on it in a given state.
type Way = (MetalBoot, fn(&str) -> BareMetalHost);

fn ways() -> [Way; 2] {
    [
        (MetalBoot::LiveImage, booted_live),
        (MetalBoot::Converged, deployed),
    ]
}

fn converged_metadata(mut host: BareMetalHost) -> BareMetalHost {
    host.labels_mut().insert(label::BACKUP.into(), "true".into());
    host.metadata.finalizers = Some(vec![finalizer::BARE_METAL_HOST.into()]);
    host
}

/// Detached, let go by the bare metal operator, saved and paused.
fn detached(mut host: BareMetalHost) -> BareMetalHost {
    let status = status(host.state(), "detached");
    let saved = status.0.to_string();
    host.status = Some(status);
    annotated(
        host,
        &[
            (annotation::METAL3_DETACHED, OURS),
            (annotation::METAL3_STATUS, &saved),
            (annotation::METAL3_PAUSED, OURS),
        ],
    )
}

fn infra_env(age: SignedDuration) -> InfraEnv {
    let mut infra_env = InfraEnv::new("shared", Default::default());
    infra_env.status = Some(InfraEnvStatus {
        iso_download_url: URL.into(),
        created_time: Some(clock::time(now() - age)),
        ..InfraEnvStatus::default()
    });
    infra_env
}

fn image(status: &str, reason: &str) -> PreprovisioningImage {
    serde_json::from_value(json!({
        "metadata": { "name": "rack-1" }, "spec": {},
        "status": { "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2023-01-01T00:00:00Z",
        }]},
    }))
    .unwrap()
}

fn disk(id: &str) -> Disk {
    Disk {
        id: id.into(),
        path: format!("/dev/{id}"),
        drive_type: "SSD".into(),
        size_bytes: 500_000_000_000,
        installation_eligibility: InstallationEligibility {
            eligible: true,
            ..InstallationEligibility::default()
        },
        ..Disk::default()
    }
}

/// As it is when its BareMetalHost says nothing special, in a state of the hub and at a stage.
fn agent(state: &str, stage: &str) -> Agent {
    let mut agent = Agent::new("host-1", Default::default());
    agent.metadata.namespace = Some("pool".into());
    agent.spec.approved = true;
    agent
        .labels_mut()
        .insert(label::BARE_METAL_HOST.into(), "rack-1".into());
    let mut status = AgentStatus {
        inventory: Inventory {
            interfaces: vec![HostInterface {
                mac_address: MAC.into(),
                ..HostInterface::default()
            }],
            disks: vec![disk("sda"), disk("sdb")],
            ..Inventory::default()
        },
        progress: Some(HostProgress {
            current_stage: stage.into(),
            ..HostProgress::default()
        }),
        ..AgentStatus::default()
    };
    status.debug_info.state = state.into();
    let bound = match state {
        "unbinding-pending-user-action" => (false, "UnbindingPendingUserAction"),
        state if state.ends_with("-unbound") => (false, "Unbound"),
        _ => (true, "Bound"),
    };
    set_service(
        &mut status.conditions,
        Finding::new("Bound", bound.0, bound.1, ""),
        now(),
    );
    agent.status = Some(status);
    agent
}

/// It waits for somebody to boot its machine.
fn waiting() -> Agent {
    agent("unbinding-pending-user-action", "Done")
}

fn snapshot(boot: MetalBoot, host: BareMetalHost, agent: Option<Agent>) -> Snapshot {
    Snapshot {
        key: Key::new("pool", "rack-1"),
        host: Arc::new(host),
        // The hub says the same as the Agent.
        states_in_hub: agent.as_ref().map(|agent| vec![agent.state().to_string()]),
        agent: agent.map(Arc::new),
        infra_env: Some(Arc::new(infra_env(SignedDuration::from_hours(1)))),
        image: Some(Arc::new(image("True", "InfraEnvAvailable"))),
        deployment: None,
        install: None,
        tenant: None,
        credentials: None,
        fencing: None,
        node: Some(Err(crate::runtime::spoke::NoSpoke::NoKubeconfig)),
        authority: None,
        machines: None,
        failure: None,
        boot,
        pauses: true,
        retry: std::time::Duration::from_secs(10),
        now: now(),
    }
}

fn live(host: BareMetalHost, agent: Option<Agent>) -> Snapshot {
    snapshot(MetalBoot::LiveImage, host, agent)
}

fn converged(host: BareMetalHost, agent: Option<Agent>) -> Snapshot {
    snapshot(MetalBoot::Converged, host, agent)
}

/// Carries out what a plan does to the objects, as the API server would.
fn after(snapshot: &Snapshot, plan: &Plan) -> Snapshot {
    let mut next = snapshot.clone();
    for step in &plan.steps {
        match step {
            Step::PatchHost(patch) => next.host = Arc::new(merged(&*snapshot.host, patch)),
            Step::PatchAgent(patch) => {
                next.agent = Some(Arc::new(merged(&**snapshot.agent.as_ref().unwrap(), patch)));
            }
            Step::DeleteAgent => next.agent = None,
            Step::LabelSecret(..) => {
                let found = next.credentials.iter_mut();
                found.for_each(|found| found.missing_labels.clear());
            }
            Step::PutSecret(_) | Step::Drain(_) | Step::Join(_) | Step::Complain(_) | Step::Report(_) => {}
        }
    }
    next
}

fn merged<K: Serialize + serde::de::DeserializeOwned>(object: &K, patch: &Value) -> K {
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

/// Reconciles until nothing is left to do; the bare metal operator does nothing meanwhile.
fn reconciled(snapshot: &Snapshot) -> Snapshot {
    let mut snapshot = snapshot.clone();
    for _ in 0..4 {
        let plan = plan(&snapshot);
        if plan.then != Then::Again {
            assert!(
                plan.steps
                    .iter()
                    .all(|step| matches!(step, Step::Complain(_) | Step::Report(_))),
                "{plan:?}"
            );
            return snapshot;
        }
        snapshot = after(&snapshot, &plan);
    }
    panic!("it does not converge: {snapshot:?}");
}

/// The bare metal operator has brought the machine into another state.
fn in_state(snapshot: &Snapshot, state: &str) -> Snapshot {
    let mut next = snapshot.clone();
    let mut host = (*snapshot.host).clone();
    host.status = Some(status(state, "OK"));
    next.host = Arc::new(host);
    next
}

fn noted<'a>(snapshot: &'a Snapshot, annotation: &str) -> Option<&'a str> {
    snapshot.host.annotations().get(annotation).map(String::as_str)
}

fn image_url(snapshot: &Snapshot) -> Option<&str> {
    snapshot.host.spec.image.as_ref().map(|image| image.url.as_str())
}

fn method(snapshot: &Snapshot) -> Option<&str> {
    let deploy = snapshot.host.spec.custom_deploy.as_ref();
    deploy.map(|deploy| deploy.method.as_str())
}

fn mistakes(plan: &Plan) -> Vec<String> {
    let found = plan.steps.iter().filter_map(|step| match step {
        Step::Complain(mistakes) => Some(mistakes.clone()),
        _ => None,
    });
    found.flatten().collect()
}

#[test]
fn whatever_the_world_is_like_it_comes_to_rest() {
    let agents = [
        None,
        Some(agent("discovering-unbound", "")),
        Some(agent("known-unbound", "")),
        Some(agent("installing-in-progress", "Writing image to disk")),
        Some(agent("installing-in-progress", "Rebooting")),
        Some(agent("installed", "Done")),
        Some(agent("error", "Failed")),
        Some(agent("cancelled", "Writing image to disk")),
        Some(waiting()),
    ];
    let kinds: [fn(&str) -> BareMetalHost; 4] =
        [host, booted_live, deployed, |state| detached(booted_live(state))];
    for boot in [MetalBoot::LiveImage, MetalBoot::Converged] {
        for state in STATES {
            for kind in kinds {
                for agent in &agents {
                    reconciled(&snapshot(boot, kind(state), agent.clone()));
                }
            }
        }
    }
}

#[test]
fn only_what_differs_is_patched() {
    let plan = plan(&live(host("available"), None));
    let [Step::PatchHost(patch)] = &plan.steps[..] else {
        panic!("{plan:?}");
    };
    assert_eq!(
        *patch,
        json!({
            "metadata": {
                "annotations": { "inspect.metal3.io": "disabled" },
                "finalizers": ["bmac.agent-install.openshift.io/deprovision"],
                "labels": { "cluster.open-cluster-management.io/backup": "true" },
            },
            "spec": {
                "automatedCleaningMode": "disabled", "online": true, "image": { "url": URL, "format": "live-iso" },
            },
        })
    );
}
