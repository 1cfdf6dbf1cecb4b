//! Emptying the node of a machine that goes with its Agent: what runs on it moves elsewhere before the disk is wiped.
//!
//! It is begun once and noted on the BareMetalHost, where people read how far it is.

use super::{Draft, Step, finalizer, takes_agent_along};
use crate::controller::bare_metal_host::world::World;
use crate::crd::keys::annotation;
use crate::key::Key;
use crate::runtime::looks::Then;
use crate::runtime::spoke::NoSpoke;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::time::Duration;

/// What is looked at.
#[derive(Debug, Clone, Default)]
pub struct Drained {
    /// Absent: the machine is no node.
    pub node: Option<Node>,
    /// Those on the node.
    pub pods: Vec<Pod>,
}

/// What is asked of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Its ClusterDeployment.
    pub cluster: Key,
    pub node: String,
}

/// One write in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Nothing new comes to the node.
    Cordon(String),
    Evict(Key),
}

/// Values that others read, too.
const UNDER_WAY: &str = "draining in progress";
const SUCCEEDED: &str = "drain succeeded";
const TIMED_OUT: &str = "drain timed out";
const NO_CLUSTER: &str = "not drained: there is no kubeconfig of the cluster";

/// Between two looks at the node.
const EVERY: Duration = Duration::from_secs(20);
/// A node that does not answer cannot tell that a pod has ended.
const LOST: SignedDuration = SignedDuration::from_mins(5);

/// `None` when there is nothing to drain, or not any more.
pub fn question(world: &World) -> Option<Question> {
    let leaves = world.host.metadata.deletion_timestamp.is_some() && takes_agent_along(world);
    if !leaves || !finalizer::is_to_be_wiped(world) || is_over(world.host.annotations()) {
        return None;
    }
    let agent = world.agent.as_deref()?;
    let found = agent.status.as_ref().map(|status| &status.inventory.hostname);
    let node = match agent.spec.hostname.as_str() {
        "" => found?.clone(),
        wanted => wanted.to_owned(),
    };
    Some(Question {
        cluster: agent.spec.cluster_deployment_name.as_ref()?.into(),
        node,
    })
}

fn is_over(annotations: &BTreeMap<String, String>) -> bool {
    let status = annotations.get(annotation::BMAC_DRAIN_STATUS);
    status.is_some_and(|status| matches!(status.as_str(), SUCCEEDED | TIMED_OUT | NO_CLUSTER))
}

/// Whether the machine still has to wait.
pub(super) fn goes_on(world: &World, draft: &mut Draft) -> bool {
    if is_over(draft.host.annotations()) {
        return false;
    }
    let wanted = draft
        .host
        .annotations()
        .get(annotation::BMAC_DRAIN_TIMEOUT)
        .cloned();
    let timeout = wanted.as_deref().map(str::parse::<SignedDuration>).transpose();
    let Ok(timeout) = timeout else {
        let text = format!(
            "drain-timeout: {:?} is no duration such as 90s or 1h30m.",
            wanted.unwrap_or_default()
        );
        note(draft, &text);
        draft.flaw(text);
        return true;
    };
    let (status, waits) = match began(world, draft) {
        Some(began) if timeout.is_some_and(|limit| world.now.duration_since(began) >= limit) => {
            (TIMED_OUT.to_owned(), false)
        }
        Some(_) | None => progress(world, draft),
    };
    note(draft, &status);
    if waits {
        draft.then = Then::After(EVERY);
    }
    waits
}

/// When it was begun, which is noted once.
fn began(world: &World, draft: &mut Draft) -> Option<Timestamp> {
    let noted = draft
        .host
        .annotations_mut()
        .entry(annotation::BMAC_DRAIN_STARTED_AT.into());
    noted.or_insert_with(|| world.now.to_string()).parse().ok()
}

fn note(draft: &mut Draft, status: &str) {
    draft
        .host
        .annotations_mut()
        .insert(annotation::BMAC_DRAIN_STATUS.into(), status.to_owned());
}

/// How far it is, and whether it has to be waited for.
fn progress(world: &World, draft: &mut Draft) -> (String, bool) {
    if let Some(why) = &world.trouble {
        return (format!("not drained yet: {why}"), true);
    }
    match &world.node {
        None => (UNDER_WAY.into(), true),
        Some(Err(NoSpoke::NoKubeconfig)) => (NO_CLUSTER.into(), false),
        Some(Err(NoSpoke::Failed(why))) => (format!("not drained yet: {why}"), true),
        Some(Ok(Drained { node: None, .. })) => (SUCCEEDED.into(), false),
        Some(Ok(Drained {
            node: Some(node),
            pods,
        })) => empty(world.now, node, pods, draft),
    }
}

fn empty(now: Timestamp, node: &Node, pods: &[Pod], draft: &mut Draft) -> (String, bool) {
    let left: Vec<&Pod> = pods.iter().filter(|pod| has_to_go(now, node, pod)).collect();
    if node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true) {
        draft.tries.push(Step::Drain(Deed::Cordon(node.name_any())));
    } else if left.is_empty() {
        return (SUCCEEDED.into(), false);
    }
    let asked = left
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    draft
        .tries
        .extend(asked.map(|pod| Step::Drain(Deed::Evict(Key::of(pod)))));
    (UNDER_WAY.into(), true)
}

/// Pods of the node itself, and those that have ended, are no reason to wait.
fn has_to_go(now: Timestamp, node: &Node, pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    let mut of_node = owners.filter(|owner| matches!(owner.kind.as_str(), "DaemonSet" | "Node"));
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    let asked = pod.metadata.deletion_timestamp.as_ref();
    let lost = asked.is_some_and(|asked| now.duration_since(asked.0) > LOST) && !answers(node);
    of_node.next().is_none() && !ended && !lost
}

fn answers(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.and_then(|all| all.iter().find(|one| one.type_ == "Ready"));
    ready.is_none_or(|ready| ready.status != "Unknown")
}
