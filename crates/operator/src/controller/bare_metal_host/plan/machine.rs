//! A BareMetalHost and a Machine in the cluster that the host joins: with them the cluster knows the machine behind its new
//! node, and approves the node's certificates itself.
//!
//! The copy has no power controller: the machine stays with the bare metal operator here.

use super::{Draft, Go, Step, hardware, has};
use crate::controller::agent::plan::day_two::has_no_machines;
use crate::controller::agent::spoke::METAL_OF_MACHINE;
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::keys::annotation;
use crate::crd::{Agent, BareMetalHost};
use crate::key::Key;
use crate::runtime::merge;
use crate::runtime::reconciler::Then;
use kube::{Resource, ResourceExt};
use muster_vocabulary::HostStatus;
use serde_json::{Value, json};

/// Where clusters keep their machines.
pub const NAMESPACE: &str = "openshift-machine-api";
const ROLE: &str = "machine.openshift.io/cluster-api-machine-role";
pub const TYPE: &str = "machine.openshift.io/cluster-api-machine-type";
const CLUSTER: &str = "machine.openshift.io/cluster-api-cluster";
const MACHINE_API: &str = "machine.openshift.io/v1beta1";

/// What is asked of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its ClusterDeployment.
    pub cluster: Key,
    pub metal: String,
    pub machine: String,
}

/// What the cluster has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// One of its masters, whose image is that of all.
    pub master: Option<Value>,
    /// The two of this machine.
    pub metal: Option<Value>,
    pub machine: Option<Value>,
}

/// One write in the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Deed {
    pub thing: Thing,
    pub name: String,
    pub write: Write,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    Metal,
    Machine,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    Create(Value),
    Change(Value),
}

/// Of the Machine of a BareMetalHost in a cluster.
pub fn name(cluster: &Key, metal: &str) -> String {
    format!("{}-{metal}", cluster.name)
}

/// `None` when there is nothing to do: it is done, the cluster does not run yet or has no machines, or the host is not
/// being installed.
pub fn question(snapshot: &Snapshot) -> Option<Question> {
    let tenant = snapshot.tenant.as_ref()?;
    let agent = snapshot.agent.as_deref()?;
    let has_machines = tenant
        .install
        .as_deref()
        .is_some_and(|install| !has_no_machines(install));
    let joins = agent.state().is(HostStatus::is_writing);
    let due = snapshot.is_managed_here()
        && !has(&snapshot.host, annotation::BMAC_SPOKE_CREATED)
        && tenant.deployment.spec.installed
        && has_machines
        && joins;
    due.then(|| Question {
        cluster: tenant.key.clone(),
        metal: snapshot.key.name.clone(),
        machine: name(&tenant.key, &snapshot.key.name),
    })
}

pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    let Some(agent) = snapshot.agent.as_deref() else {
        return Go::On;
    };
    if agent.state().is(HostStatus::is_unbound) {
        // Whatever way it came back, the next cluster does not know it.
        draft
            .host
            .annotations_mut()
            .remove(annotation::BMAC_SPOKE_CREATED);
    }
    let (Some(question), Some(answer)) = (question(snapshot), &snapshot.machines) else {
        return Go::On;
    };
    match steps(
        snapshot,
        agent,
        &question,
        answer.as_ref().map_err(ToString::to_string),
    ) {
        Ok(Some(steps)) => {
            draft.first.extend(steps);
            draft
                .host
                .annotations_mut()
                .insert(annotation::BMAC_SPOKE_CREATED.into(), snapshot.now.to_string());
        }
        // A cluster without Machines of masters does not manage its machines; they may still come.
        Ok(None) => draft.then = draft.then.or(Then::After(snapshot.later())),
        Err(why) => {
            let cluster = &question.cluster;
            draft.failure(
                snapshot,
                format!("The operator cannot describe the machine to cluster {cluster}: {why}"),
            );
        }
    }
    Go::On
}

/// `None` when the cluster has no masters.
fn steps(
    snapshot: &Snapshot,
    agent: &Agent,
    question: &Question,
    answer: Result<&Known, String>,
) -> Result<Option<Vec<Step>>, String> {
    if let Some(why) = &snapshot.failure {
        return Err(why.clone());
    }
    let known = answer?;
    let Some(master) = &known.master else {
        return Ok(None);
    };
    // This cluster runs the operator itself: without its power controller nobody could fetch the machine any more.
    let uid = known
        .metal
        .as_ref()
        .and_then(|metal| metal.pointer("/metadata/uid")?.as_str());
    if uid.is_some() && uid == snapshot.host.metadata.uid.as_deref() {
        return Err("the cluster's BareMetalHost of this name is this very object".into());
    }
    if let Some(why) = known
        .metal
        .as_ref()
        .and_then(|metal| another(snapshot, question, metal))
    {
        return Err(format!("the cluster's BareMetalHost of this name {why}"));
    }
    let image = &master["spec"]["providerSpec"]["value"]["image"];
    if !image.is_object() {
        return Err("the Machines of its control plane name no image".into());
    }
    let metal = metal(snapshot, agent, question, known.metal.as_ref());
    let machine = machine(agent, question, image, known.machine.as_ref());
    let deeds = [
        deed(Thing::Metal, &question.metal, known.metal.as_ref(), metal),
        deed(Thing::Machine, &question.machine, known.machine.as_ref(), machine),
    ];
    Ok(Some(deeds.into_iter().flatten().map(Step::Join).collect()))
}

/// What shows that a BareMetalHost in the cluster is not the copy of this one. What has no MAC address yet can be any
/// machine's.
fn another(snapshot: &Snapshot, question: &Question, metal: &Value) -> Option<&'static str> {
    let spec = &metal["spec"];
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mac = text("/bootMACAddress");
    if !mac.is_empty() && !mac.eq_ignore_ascii_case(&snapshot.host.spec.boot_mac_address) {
        return Some("is another machine: it boots from another MAC address");
    }
    if !text("/bmc/address").is_empty() {
        return Some("has a power controller of its own");
    }
    let ours = text("/consumerRef/kind") == "Machine"
        && text("/consumerRef/name") == question.machine
        && matches!(text("/consumerRef/namespace"), "" | NAMESPACE);
    (spec["consumerRef"].is_object() && !ours).then_some("belongs to another Machine")
}

fn deed(thing: Thing, name: &str, now: Option<&Value>, wanted: Value) -> Option<Deed> {
    let write = match now {
        None => Write::Create(wanted),
        Some(now) => Write::Change(merge::diff(now, &wanted)?),
    };
    Some(Deed {
        thing,
        name: name.to_owned(),
        write,
    })
}

/// The spec of the BareMetalHost here, without its power controller. What else is written on one that is there stays.
fn metal(snapshot: &Snapshot, agent: &Agent, question: &Question, now: Option<&Value>) -> Value {
    let mut spec = json!(snapshot.host.spec);
    spec["bmc"] = json!({ "address": "", "credentialsName": "" });
    spec["externallyProvisioned"] = json!(true);
    spec["consumerRef"] = json!({
        "apiVersion": MACHINE_API, "kind": "Machine", "name": question.machine, "namespace": NAMESPACE,
    });
    let mut metal = now.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": BareMetalHost::api_version(&()), "kind": BareMetalHost::kind(&()),
            "metadata": { "name": question.metal, "namespace": NAMESPACE },
        })
    });
    metal["spec"] = spec;
    let annotations = &mut metal["metadata"]["annotations"];
    annotations[annotation::METAL3_INSPECT] = json!("disabled");
    // By names and addresses in it the cluster knows whose certificates it may approve. Once it was consumed, the status
    // has it.
    let hostname = now.and_then(|now| now.pointer("/status/hardware/hostname")?.as_str());
    if hostname.is_none_or(str::is_empty)
        && let Some(details) = hardware::details(agent)
    {
        annotations[annotation::METAL3_HARDWARE_DETAILS] = json!(details.to_string());
    }
    metal
}

fn machine(agent: &Agent, question: &Question, image: &Value, now: Option<&Value>) -> Value {
    let text = |name: &str| image[name].as_str().unwrap_or_default();
    let role = agent.status.as_ref().map(|status| status.role.as_str());
    let role = role.unwrap_or_default();
    let mut machine = now.cloned().unwrap_or_else(|| {
        json!({
            "apiVersion": MACHINE_API, "kind": "Machine",
            "metadata": { "name": question.machine, "namespace": NAMESPACE },
        })
    });
    machine["spec"]["providerSpec"]["value"] = json!({
        "apiVersion": "baremetal.cluster.k8s.io/v1alpha1", "kind": "BareMetalMachineProviderSpec",
        "image": { "checksum": text("checksum"), "url": text("url") },
    });
    let metadata = &mut machine["metadata"];
    metadata["annotations"][METAL_OF_MACHINE] = json!(format!("{NAMESPACE}/{}", question.metal));
    metadata["labels"][CLUSTER] = json!(question.cluster.name);
    metadata["labels"][ROLE] = json!(role);
    metadata["labels"][TYPE] = json!(role);
    machine
}
