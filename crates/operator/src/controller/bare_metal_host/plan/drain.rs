//! Emptying the node of a machine that goes with its Agent: what runs on it moves elsewhere before the disk is wiped.
//!
//! It is begun once and noted on the BareMetalHost, where people read how far it is.

use super::{Draft, Step, finalizer, takes_agent_along};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::BareMetalHost;
use crate::crd::keys::annotation;
use crate::key::Key;
use crate::runtime::reconciler::Then;
use crate::runtime::spoke::NoSpoke;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use std::fmt::Display;
use std::time::Duration;

/// What was read of the cluster.
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
    /// Each of them is asked to go, whatever becomes of the others.
    Evict(Vec<Key>),
}

/// Values that others read, too.
const UNDER_WAY: &str = "draining in progress";
const SUCCEEDED: &str = "drain succeeded";
const TIMED_OUT: &str = "drain timed out";
const NO_CLUSTER: &str = "not drained: the cluster has no kubeconfig";
/// What keeps it follows.
const HELD_UP: &str = "not drained yet: ";

/// Between two reads of the node.
const EVERY: Duration = Duration::from_secs(20);
/// A node that does not answer cannot report that a pod has ended.
const LOST: SignedDuration = SignedDuration::from_mins(5);

/// `None` when there is nothing to drain, or not any more.
pub fn question(snapshot: &Snapshot) -> Option<Question> {
    let leaves = snapshot.host.metadata.deletion_timestamp.is_some() && takes_agent_along(snapshot);
    if !leaves || !finalizer::is_to_be_wiped(snapshot) || is_over(&snapshot.host) {
        return None;
    }
    let agent = snapshot.agent.as_deref()?;
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

fn is_over(host: &BareMetalHost) -> bool {
    matches!(noted(host), Some(SUCCEEDED | TIMED_OUT | NO_CLUSTER))
}

/// How far it was at the last reconcile.
fn noted(host: &BareMetalHost) -> Option<&str> {
    noted_begin(host)?;
    host.annotations()
        .get(annotation::BMAC_DRAIN_STATUS)
        .map(String::as_str)
}

/// Notes from before this deletion came with an object from a backup or a file, and belong to another drain.
fn noted_begin(host: &BareMetalHost) -> Option<Timestamp> {
    let deleted = host.metadata.deletion_timestamp.as_ref()?;
    let began = host.annotations().get(annotation::BMAC_DRAIN_STARTED_AT)?;
    began.parse().ok().filter(|began| *began >= deleted.0)
}

/// Whether the machine still has to wait.
pub(super) fn goes_on(snapshot: &Snapshot, draft: &mut Draft) -> bool {
    if is_over(&draft.host) {
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
            "drain-timeout: {:?} is not a duration such as 90s or 1h30m.",
            wanted.unwrap_or_default()
        );
        note(draft, &text);
        draft.mistake(text);
        return true;
    };
    let began = noted_begin(&snapshot.host);
    let is_late = |limit| began.is_some_and(|began| snapshot.now.duration_since(began) >= limit);
    let (status, waits) = match timeout.is_some_and(is_late) {
        true => (TIMED_OUT.to_owned(), false),
        false => progress(snapshot, draft),
    };
    if began.is_none() {
        begin(snapshot, draft);
    }
    note(draft, &status);
    if waits {
        draft.then = Then::After(EVERY);
    }
    waits
}

/// Noted once, and never as before the deletion: the clock of the API server may be ahead of this one.
fn begin(snapshot: &Snapshot, draft: &mut Draft) {
    let deleted = snapshot.host.metadata.deletion_timestamp.as_ref();
    let begin = deleted.map_or(snapshot.now, |deleted| deleted.0.max(snapshot.now));
    draft
        .host
        .annotations_mut()
        .insert(annotation::BMAC_DRAIN_STARTED_AT.into(), begin.to_string());
}

fn note(draft: &mut Draft, status: &str) {
    draft
        .host
        .annotations_mut()
        .insert(annotation::BMAC_DRAIN_STATUS.into(), status.to_owned());
}

/// How far it is, and whether it has to be waited for.
fn progress(snapshot: &Snapshot, draft: &mut Draft) -> (String, bool) {
    if let Some(why) = &snapshot.failure {
        return held_up(why);
    }
    match &snapshot.node {
        None => (UNDER_WAY.into(), true),
        Some(Err(NoSpoke::NoKubeconfig)) if !has_running_cluster(snapshot) => (NO_CLUSTER.into(), false),
        Some(Err(why)) => held_up(why),
        Some(Ok(Drained { node: None, .. })) => (SUCCEEDED.into(), false),
        Some(Ok(Drained {
            node: Some(node),
            pods,
        })) => empty(snapshot, node, pods, draft),
    }
}

fn held_up(why: impl Display) -> (String, bool) {
    (format!("{HELD_UP}{why}"), true)
}

/// One whose kubeconfig was lost, then: what runs on the node is somebody's.
fn has_running_cluster(snapshot: &Snapshot) -> bool {
    snapshot.tenant.as_ref().is_some_and(|tenant| {
        let deployment = &tenant.deployment;
        deployment.spec.installed && deployment.metadata.deletion_timestamp.is_none()
    })
}

fn empty(snapshot: &Snapshot, node: &Node, pods: &[Pod], draft: &mut Draft) -> (String, bool) {
    let left = pods.iter().filter(|pod| has_to_go(snapshot.now, node, pod));
    let left: Vec<&Pod> = left.collect();
    let closed = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    if closed && left.is_empty() {
        return (SUCCEEDED.into(), false);
    }
    let unasked = left
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let unasked: Vec<Key> = unasked.map(Key::of).collect();
    let tries = !closed || !unasked.is_empty();
    if !closed {
        draft.tries.push(Step::Drain(Deed::Cordon(node.name_any())));
    }
    if !unasked.is_empty() {
        draft.tries.push(Step::Drain(Deed::Evict(unasked)));
    }
    // What was refused before may be refused again. Until it is known that it was not, the note stays: else the two
    // would take turns, and each wake the next reconciliation.
    let before = noted(&snapshot.host).filter(|noted| tries && noted.starts_with(HELD_UP));
    (before.unwrap_or(UNDER_WAY).to_owned(), true)
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
