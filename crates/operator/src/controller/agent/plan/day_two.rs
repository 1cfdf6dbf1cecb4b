//! Following the node that a host of a running cluster becomes: certificates, labels, and when it is done.

use super::ask::{Purpose, answer};
use super::csr::{self, Wants};
use super::{Call, Deed, Step, Then, is_day_two, node_name, stage};
use crate::controller::agent::snapshot::Snapshot;
use crate::controller::agent::spoke::Spoke;
use crate::crd::agent::{ApprovedCsr, CsrStatus};
use crate::crd::keys::annotation;
use crate::crd::{Agent, AgentClusterInstall};
use crate::key::Key;
use crate::runtime::clock;
use crate::runtime::event::News;
use crate::runtime::joining::NodeWatch;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use muster_contract::v1::host::HostDetail;
use muster_vocabulary::HostStatus::{self, *};
use muster_vocabulary::Stage;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Following {
    pub steps: Vec<Step>,
    pub csr: Option<CsrStatus>,
    pub failed: Option<String>,
    pub then: Then,
}

/// The ClusterDeployment of the cluster to read, from the reboot until the node is done. A node may still come up
/// after its time limit; an installation that ended in any other way reports nothing more to the hub.
pub fn follows(agent: &Agent, row: &HostDetail) -> Option<Key> {
    let cluster = agent.spec.cluster_deployment_name.as_ref()?;
    let stage = stage(row);
    let has_rebooted = stage.is(is_followed);
    let is_on_its_way = match row.host.status.known() {
        Some(InstallingInProgress) => has_rebooted,
        Some(InstallingPendingUserAction) => !stage.is_empty(),
        Some(Installed | AddedToExistingCluster) => !stage.is_empty() && stage != Stage::Done,
        Some(Error) => has_rebooted && timed_out(row),
        Some(
            Discovering
            | Known
            | Disconnected
            | Insufficient
            | Disabled
            | PreparingForInstallation
            | PreparingFailed
            | PreparingSuccessful
            | PendingForInput
            | Installing
            | ResettingPendingUserAction
            | Cancelled
            | Resetting
            | DiscoveringUnbound
            | KnownUnbound
            | DisconnectedUnbound
            | InsufficientUnbound
            | DisabledUnbound
            | Binding
            | Unbinding
            | UnbindingPendingUserAction
            | Reclaiming
            | ReclaimingRebooting,
        )
        | None => false,
    };
    (is_day_two(row) && row.host.cluster_id.is_some() && is_on_its_way).then(|| cluster.into())
}

fn timed_out(row: &HostDetail) -> bool {
    let progress = row.host.progress.as_ref();
    progress.is_some_and(|progress| progress.stage_timed_out)
}

/// Whether the hub takes a stage of the node. One that failed can only recover.
fn takes(row: &HostDetail, reached: Stage) -> bool {
    let status = &row.host.status;
    if status.is(HostStatus::is_failed) {
        return reached == Stage::Done;
    }
    !status.is(HostStatus::is_installed) && stage(row) != reached
}

/// Stages that are told from here on, or follow the reboot at once.
fn is_followed(stage: Stage) -> bool {
    match stage {
        Stage::Rebooting | Stage::Configuring | Stage::Joined => true,
        Stage::Starting
        | Stage::WaitingForControlPlane
        | Stage::WaitingForBootkube
        | Stage::WaitingForController
        | Stage::Installing
        | Stage::Writing
        | Stage::Copying
        | Stage::WaitingForIgnition
        | Stage::Done
        | Stage::Failed => false,
    }
}

/// When the kubelet of a node asks for its certificates.
fn asks_for_certificates(stage: Stage) -> bool {
    match stage {
        Stage::Rebooting | Stage::Joined => true,
        Stage::Starting
        | Stage::WaitingForControlPlane
        | Stage::WaitingForBootkube
        | Stage::WaitingForController
        | Stage::Installing
        | Stage::Writing
        | Stage::Copying
        | Stage::WaitingForIgnition
        | Stage::Configuring
        | Stage::Done
        | Stage::Failed => false,
    }
}

/// A host that somebody made a Machine for has its certificates approved by the cluster itself; nobody does it for all
/// others, whether a power controller stands behind them or not.
pub fn approves(snapshot: &Snapshot, row: &HostDetail) -> bool {
    let in_time = stage(row).is(asks_for_certificates) || row.host.status == InstallingPendingUserAction;
    let alone = snapshot.install.as_deref().is_some_and(has_no_machines);
    in_time && (!snapshot.metal_joined || alone)
}

/// Clusters that know nothing of the machines they run on.
pub fn has_no_machines(install: &AgentClusterInstall) -> bool {
    let (spec, status) = (&install.spec, install.status.as_ref());
    let wanted = &spec.provision_requirements;
    let shown = |word: &str| status.is_some_and(|status| status.platform_type.eq_ignore_ascii_case(word));
    let platform = |word: &str| spec.platform_type.eq_ignore_ascii_case(word) || shown(word);
    spec.networking.user_managed_networking == Some(true)
        || status.is_some_and(|status| status.user_managed_networking == Some(true))
        || platform("None")
        || platform("External")
        || (wanted.control_plane_agents == 1 && wanted.worker_agents == 0)
        || lacks_machine_api(install)
}

/// Bare metal was chosen among the capabilities of the cluster, and the component that manages machines was left out.
fn lacks_machine_api(install: &AgentClusterInstall) -> bool {
    let text = install.annotations().get(annotation::INSTALL_CONFIG_OVERRIDES);
    let config: Value = text
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let chosen = &config["capabilities"];
    let more = chosen["additionalEnabledCapabilities"].as_array();
    let has = |name: &str| more.is_some_and(|more| more.iter().any(|one| one == name));
    chosen["baselineCapabilitySet"] == "None" && has("baremetal") && !has("MachineAPI")
}

pub fn follow(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Following {
    if follows(agent, row).is_none() {
        return Following::default();
    }
    let again = Then::After(snapshot.retry * EVERY);
    match answer(snapshot, Purpose::Follow, &snapshot.spoke) {
        Some(Ok(spoke)) => {
            let mut following = follow_node(snapshot, agent, row, spoke);
            following.then = following.then.or(match snapshot.node_watch {
                NodeWatch::Running => Then::After(snapshot.retry * SELDOM),
                NodeWatch::None | NodeWatch::Refused(_) => again,
            });
            // One event, so it does not wait for what may fail.
            following.steps.splice(0..0, not_watched(snapshot));
            following
        }
        Some(Err(NoSpoke::NoKubeconfig)) => Following {
            failed: Some("The operator cannot follow the node: the cluster has no kubeconfig Secret.".into()),
            then: again,
            ..Following::default()
        },
        Some(Err(NoSpoke::Failed(why))) => Following {
            failed: Some(format!("The operator cannot follow the node: {why}")),
            then: again,
            ..Following::default()
        },
        None => Following::default(),
    }
}

/// Six retries: once a minute by default.
const EVERY: u32 = 6;

/// What is watched is read all the same, in case a watch is stuck.
const SELDOM: u32 = 10 * EVERY;

/// It takes longer than elsewhere, and people can change that.
fn not_watched(snapshot: &Snapshot) -> Option<Step> {
    let NodeWatch::Refused(why) = &snapshot.node_watch else {
        return None;
    };
    Some(Step::Tell(News {
        warning: true,
        reason: "NodeNotWatched".into(),
        note: format!(
            "The kubeconfig of the cluster lacks the right to watch nodes and certificate requests, so the \
             operator reads them once a minute. Give its user the verbs list and watch on nodes and \
             certificatesigningrequests: {why}"
        ),
    }))
}

fn follow_node(snapshot: &Snapshot, agent: &Agent, row: &HostDetail, spoke: &Spoke) -> Following {
    let approves = approves(snapshot, row);
    let mut following = Following::default();
    let now = agent
        .status
        .as_ref()
        .and_then(|status| status.csr_status.clone())
        .unwrap_or_default();
    let mut tracked = now.clone();
    if approves {
        let name = node_name(Some(agent), Some(row));
        let open = certificates(snapshot, spoke, &name, &mut tracked);
        // The next reconcile notes what was approved; what was not is tried again later.
        if !open.is_empty() && snapshot.failure.is_none() {
            following.then = Then::Again;
        }
        let deeds = open.into_iter().map(|name| Step::Spoke(Deed::ApproveCsr(name)));
        following.steps.extend(deeds);
    }
    if tracked != now {
        following.csr = Some(tracked.clone());
    }
    let Some(node) = &spoke.node else { return following };
    let ready = is_ready(node);
    let missing = missing_labels(agent, node);
    if ready && !missing.is_empty() {
        following
            .steps
            .push(Step::Spoke(Deed::LabelNode(node.name_any(), missing)));
    }
    let has = |kind: Wants| tracked.approved_csrs.iter().any(|csr| csr.type_ == kind.word());
    let certified = !approves || (has(Wants::Client) && has(Wants::Serving));
    let reached = if ready && certified {
        Stage::Done
    } else {
        Stage::Joined
    };
    if takes(row, reached) {
        let info = if timed_out(row) {
            "The node came up after its time limit."
        } else {
            ""
        };
        following
            .steps
            .push(Step::Hub(Call::Progress(reached, info.into())));
    }
    following
}

/// Names of requests to approve. Only what is approved is tracked, and nothing that is open is taken for done: it may
/// have been planned and never carried out. Serving certificates wait for the node.
fn certificates(snapshot: &Snapshot, spoke: &Spoke, name: &str, tracked: &mut CsrStatus) -> Vec<String> {
    let mut open = Vec::new();
    for csr in &spoke.csrs {
        let Some(kind) = csr::judge(csr, name, spoke.node.as_ref()) else {
            continue;
        };
        let name = csr.name_any();
        let known = tracked.approved_csrs.iter().any(|known| known.name == name);
        match csr::decision(csr) {
            csr::Decision::Refused => {}
            csr::Decision::Approved(_) if known => {}
            csr::Decision::Approved(at) => {
                let approved_at = at.unwrap_or_else(|| clock::time(snapshot.now));
                let last = tracked.last_approval_attempt.take();
                tracked.last_approval_attempt = last.max(Some(approved_at.clone()));
                tracked.approved_csrs.push(ApprovedCsr {
                    name,
                    type_: kind.word().into(),
                    approved_at,
                });
            }
            csr::Decision::Open => {
                tracked.approved_csrs.retain(|known| known.name != name);
                open.push(name);
            }
        }
    }
    open
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn missing_labels(agent: &Agent, node: &Node) -> BTreeMap<String, String> {
    let wanted = agent.spec.node_labels.iter();
    let missing = wanted.filter(|(key, value)| node.labels().get(*key) != Some(value));
    missing.map(|(key, value)| (key.clone(), value.clone())).collect()
}
