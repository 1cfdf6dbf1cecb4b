//! Why something is in the state it is in, until when, and what to do about it.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{HostSnapshot, Need};
use crate::usecase::plan;
use jiff::Timestamp;
use muster_contract::v1::explain::{Deadline, ExplainView, RoleVerdict};
use muster_contract::v1::plan::{Blocker, PlanRequest, PlanView, Verb};
use muster_contract::v1::row_status::InfraEnvStatus;
use muster_domain::checks::verdict::Verdict;
use muster_domain::checks::{self, CheckId};
use muster_domain::cluster::{self, Cluster, PreparationStatus, checks as cluster_checks, lifecycle};
use muster_domain::host::deadline::{Patience, patience};
use muster_domain::host::machine;
use muster_domain::host::rules::{self, PhaseGroup};
use muster_domain::host::{Host, Media, Phase, Report, Status, returning, words};
use muster_domain::{ClusterId, HostKey, InfraEnvId};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// `for_cluster`: the one a person has in mind; the host's own if absent.
pub async fn host(
    hub: &Hub,
    key: HostKey,
    for_cluster: Option<ClusterId>,
    opctx: &OpContext,
) -> Result<ExplainView, Error> {
    let snapshot = hub.host_snapshot(key, Need::Reports).await?;
    let verdicts = verdicts(hub, &snapshot, for_cluster)?;
    let host = &snapshot.host;
    let status = host.status();
    let subject = format!("host/{}", host.name());
    let stored = snapshot
        .stored
        .get(&Report::Validations)
        .map(String::as_str)
        .unwrap_or_default();
    let open = Open::of(stored, |id| checks::blocks(id, host.cluster.is_some()));
    let blockers: Vec<_> = open
        .in_order()
        .map(|check| {
            let remedy = CheckId::parse(&check.id).map(CheckId::remedy);
            blocker(&subject, check, remedy.unwrap_or("See what the check says."))
        })
        .collect();
    Ok(ExplainView {
        why: why(host, &open, snapshot.now),
        next_action: late(host)
            .or_else(|| host.machine.warning(snapshot.now).map(|_| machine::REMEDY))
            .or_else(|| cause(host))
            .unwrap_or_else(|| next_action(host, &blockers))
            .into(),
        status: status.into(),
        status_info: host.status_info.clone(),
        since: Some(host.status_updated_at),
        deadline: hub.due_at(host).map(|at| Deadline { at, then: then(host) }),
        verdicts: verdicts.into_iter().map(told).collect(),
        verbs: verbs(hub, &snapshot, for_cluster, opctx).await?,
        blockers,
        subject,
    })
}

/// Whether the host fits each role, for the release of the cluster in mind or of its own.
pub async fn host_verdicts(
    hub: &Hub,
    key: HostKey,
    for_cluster: Option<ClusterId>,
) -> Result<Vec<RoleVerdict>, Error> {
    let snapshot = hub.host_snapshot(key, Need::Reports).await?;
    Ok(verdicts(hub, &snapshot, for_cluster)?
        .into_iter()
        .map(told)
        .collect())
}

fn verdicts(
    hub: &Hub,
    snapshot: &HostSnapshot,
    for_cluster: Option<ClusterId>,
) -> Result<Vec<Verdict>, Error> {
    let cluster = match for_cluster {
        Some(id) => Some(
            hub.index
                .cluster(id)
                .ok_or_else(|| Error::missing("cluster", id))?,
        ),
        None => snapshot.cluster.clone(),
    };
    let release = cluster.as_ref().map(|cluster| cluster.openshift_version.as_str());
    Ok(plan::verdicts_of(
        hub,
        snapshot,
        release.filter(|release| !release.is_empty()),
    ))
}

fn told(verdict: Verdict) -> RoleVerdict {
    RoleVerdict {
        role: verdict.profile.as_str().into(),
        fits: verdict.fits,
        reasons: verdict.reasons,
    }
}

fn then(host: &Host) -> String {
    match patience(host.phase) {
        Patience::Limited(text) | Patience::Endless(text) => text.into(),
    }
}

async fn verbs(
    hub: &Hub,
    snapshot: &HostSnapshot,
    for_cluster: Option<ClusterId>,
    opctx: &OpContext,
) -> Result<Vec<PlanView>, Error> {
    let host = &snapshot.host;
    let mut wanted = Vec::new();
    match (host.cluster, for_cluster) {
        (None, Some(to)) if host.phase.is_returning() => wanted.push((Verb::Move, Some(to))),
        (None, Some(to)) => wanted.push((Verb::Bind, Some(to))),
        (None, None) => {}
        (Some(from), Some(to)) if from != to => wanted.extend([(Verb::Move, Some(to)), (Verb::Unbind, None)]),
        (Some(_), _) => wanted.push((Verb::Unbind, None)),
    }
    let adds = snapshot
        .cluster
        .as_ref()
        .is_some_and(|cluster| cluster.adds_hosts());
    match rules::group(host.phase) {
        PhaseGroup::Discovery if adds => wanted.push((Verb::InstallHost, None)),
        PhaseGroup::Installed if adds => wanted.extend([(Verb::ResetHost, None), (Verb::ReclaimHost, None)]),
        PhaseGroup::Stopped if adds => wanted.push((Verb::ResetHost, None)),
        PhaseGroup::Installed => wanted.push((Verb::ReclaimHost, None)),
        PhaseGroup::Discovery
        | PhaseGroup::Binding
        | PhaseGroup::Returning
        | PhaseGroup::Preparing
        | PhaseGroup::Writing
        | PhaseGroup::Stopped => {}
    }
    wanted.push((Verb::DeleteHost, None));
    let mut plans = Vec::new();
    for (verb, to) in wanted {
        let request = PlanRequest {
            verb,
            infra_env_id: Some(host.infra_env.0),
            host_id: Some(host.id.0),
            cluster_id: to.map(|id| id.0),
        };
        plans.push(plan::plan(hub, &request, opctx).await?);
    }
    Ok(plans)
}

fn why(host: &Host, open: &Open, now: Timestamp) -> String {
    let status = host.status();
    // One state, several reasons.
    let mut text = if words::of(host) != words::status_text(status) {
        words::of(host).into()
    } else if status.is_disconnected() {
        format!("The last poll of its agent was at {:.0}.", host.checked_in_at)
    } else if status.is_discovering() {
        "Its agent has registered but has not reported the hardware yet.".into()
    } else if host.status_info.is_empty() {
        words::of(host).into()
    } else {
        // What is said once and kept tells more than a text for the state.
        host.status_info.clone()
    };
    if let Some(to) = host.moving_to {
        text.push_str(&format!(
            " It is moving to cluster {to}; the hub binds it there once it is free and ready."
        ));
    }
    text.push_str(&open.told());
    if let Some(warning) = host.machine.warning(now) {
        text.push_str(&format!(" Warning: {warning}"));
    }
    text
}

/// A cluster that waits instead of failing has hosts somebody should look at.
fn late(host: &Host) -> Option<&'static str> {
    if host.connection_timed_out {
        Some(
            "Check its power and network; if it does not come back, cancel the installation and reset the cluster.",
        )
    } else if host.progress.timed_out && host.phase == Phase::InProgress {
        Some("Look at its console; wait, or cancel the installation and reset the cluster.")
    } else {
        None
    }
}

/// What to do when it is not what the state alone asks for.
fn cause(host: &Host) -> Option<&'static str> {
    let status = host.status();
    if status.is_discovering() && host.installer_may_run {
        Some("Wait for its agent to answer; if it does not, reboot the machine into the discovery image.")
    } else if status.is_disconnected() && host.media == Media::Disconnected {
        Some("Attach the discovery media again and reboot the host.")
    } else {
        None
    }
}

fn next_action<'a>(host: &Host, blockers: &'a [Blocker]) -> &'a str {
    match host.status() {
        Status::KnownUnbound => "Bind it to a cluster.",
        Status::Known => "Nothing; it is ready to be installed.",
        Status::DiscoveringUnbound | Status::Discovering => "Wait for its first inventory report.",
        Status::Disconnected | Status::DisconnectedUnbound => {
            "Check its power and network, or boot it from the discovery image again."
        }
        Status::Insufficient | Status::InsufficientUnbound => match blockers.first() {
            Some(blocker) => &blocker.next_action,
            None => "See its checks for what is missing.",
        },
        Status::PendingForInput => "Complete the settings of its cluster.",
        Status::Binding => "Wait for its agent to register again, within about a minute.",
        Status::ResettingPendingUserAction => "Boot the discovery image.",
        Status::Unbinding
        | Status::UnbindingPendingUserAction
        | Status::Reclaiming
        | Status::ReclaimingRebooting => host
            .route()
            .map_or("Wait.", |route| returning::remedy(host, route)),
        Status::PreparingForInstallation
        | Status::PreparingSuccessful
        | Status::Installing
        | Status::InstallingInProgress
        | Status::Resetting => "Wait.",
        Status::PreparingFailed => "Fix what failed, then install the cluster again.",
        Status::InstallingPendingUserAction => "Set its disk first in the boot order and reboot it.",
        Status::Installed | Status::AddedToExistingCluster => "Nothing; it works for its cluster.",
        Status::Cancelled | Status::Error => "Reset the cluster to try again, or unbind the host.",
        Status::Disabled | Status::DisabledUnbound => "Nothing.",
    }
}

/// A failing check as it was stored.
#[derive(Deserialize)]
struct Stored {
    id: String,
    status: muster_domain::checks::Status,
    message: String,
}

/// Checks that do not pass: those that fail and are in the way, those that are waited for, and failures that are in
/// nobody's way.
#[derive(Default)]
struct Open {
    failing: Vec<Stored>,
    waiting: Vec<Stored>,
    besides: Vec<Stored>,
}

impl Open {
    /// What was stored is ours; what cannot be read counts as no findings.
    fn of(validations: &str, blocks: impl Fn(&str) -> bool) -> Self {
        let all: BTreeMap<String, Vec<Stored>> = serde_json::from_str(validations).unwrap_or_default();
        let mut open = Self::default();
        for check in all.into_values().flatten().filter(|check| !check.status.passes()) {
            match (check.status.complains(), blocks(&check.id)) {
                (true, true) => open.failing.push(check),
                (true, false) => open.besides.push(check),
                (false, true) => open.waiting.push(check),
                (false, false) => {}
            }
        }
        open
    }

    fn in_order(&self) -> impl Iterator<Item = &Stored> {
        self.failing.iter().chain(&self.waiting).chain(&self.besides)
    }

    /// What follows the description of a state, each sentence after a blank.
    fn told(&self) -> String {
        let mut text = match self.failing.len() {
            0 => String::new(),
            1 => " One check fails.".into(),
            count => format!(" {count} checks fail."),
        };
        let names = |checks: &[Stored]| {
            let ids: Vec<&str> = checks.iter().map(|check| check.id.as_str()).collect();
            ids.join(", ")
        };
        if !self.waiting.is_empty() {
            text.push_str(&format!(" Waited for: {}.", names(&self.waiting)));
        }
        if !self.besides.is_empty() {
            text.push_str(&format!(" Failing but not blocking: {}.", names(&self.besides)));
        }
        text
    }
}

/// What is only waited for needs nothing put right.
fn blocker(subject: &str, check: &Stored, remedy: &str) -> Blocker {
    let next_action = match check.status {
        checks::Status::Pending => "Wait for what the check says.",
        checks::Status::Success
        | checks::Status::Failure
        | checks::Status::Error
        | checks::Status::Disabled => remedy,
    };
    Blocker {
        code: Cow::Owned(check.id.clone()),
        subject: subject.into(),
        reason: check.message.clone(),
        next_action: next_action.into(),
    }
}

pub async fn cluster(hub: &Hub, id: ClusterId, opctx: &OpContext) -> Result<ExplainView, Error> {
    let cluster = hub
        .index
        .cluster(id)
        .ok_or_else(|| Error::missing("cluster", id))?;
    let status = cluster.status();
    let subject = format!("cluster/{}", cluster.name);
    let open = Open::of(&cluster.validations, cluster_checks::blocks);
    let mut blockers: Vec<_> = open
        .in_order()
        .map(|check| {
            let remedy = cluster_checks::CheckId::parse(&check.id).map(cluster_checks::CheckId::remedy);
            blocker(&subject, check, remedy.unwrap_or_default())
        })
        .collect();
    let hosts: Vec<_> = hub
        .index
        .hosts_of_cluster(id)
        .iter()
        .map(|slot| slot.host())
        .collect();
    if cluster.accepts_hosts() {
        blockers.extend(hosts.iter().filter_map(waiting));
    }
    blockers.extend(failed_preparation(&cluster));
    Ok(ExplainView {
        subject,
        status: status.into(),
        status_info: cluster.status_info.clone(),
        since: Some(cluster.status_updated_at),
        why: format!(
            "{} {}{}",
            cluster_why(status),
            counted(hosts.iter().map(Host::status)),
            open.told()
        )
        .trim()
        .to_owned(),
        next_action: cluster_next(&cluster, hosts.len(), &blockers),
        blockers,
        deadline: cluster_deadline(hub, &cluster),
        verdicts: Vec::new(),
        verbs: cluster_verbs(hub, &cluster, opctx).await?,
    })
}

/// Why the last attempt to install did not even begin.
fn failed_preparation(cluster: &Cluster) -> Option<Blocker> {
    let preparation = &cluster.install.preparation;
    let failed = cluster.phase == cluster::Phase::Draft && preparation.status == PreparationStatus::Failed;
    failed.then(|| Blocker {
        code: "preparation-failed".into(),
        subject: format!("cluster/{}", cluster.name),
        reason: preparation.reason.clone(),
        next_action: "Fix that, then install the cluster again.".into(),
    })
}

fn cluster_deadline(hub: &Hub, cluster: &Cluster) -> Option<Deadline> {
    let at = cluster::deadline::of(cluster, &hub.settings.cluster_timers)?;
    let then = match cluster::deadline::patience(cluster.phase) {
        Patience::Limited(text) | Patience::Endless(text) => text,
    };
    Some(Deadline {
        at,
        then: then.into(),
    })
}

async fn cluster_verbs(hub: &Hub, cluster: &Cluster, opctx: &OpContext) -> Result<Vec<PlanView>, Error> {
    use cluster::Phase;
    let mut wanted = match cluster.phase {
        Phase::Draft => vec![Verb::InstallCluster],
        Phase::Preparing | Phase::Installing | Phase::Finalizing | Phase::BootFix | Phase::Error => {
            vec![Verb::CancelCluster, Verb::ResetCluster]
        }
        Phase::Cancelled => vec![Verb::ResetCluster],
        Phase::Installed | Phase::AddingHosts | Phase::Unmonitored => Vec::new(),
    };
    wanted.push(Verb::DeleteCluster);
    let mut plans = Vec::new();
    for verb in wanted {
        let request = PlanRequest {
            verb,
            infra_env_id: None,
            host_id: None,
            cluster_id: Some(cluster.id.0),
        };
        plans.push(plan::plan(hub, &request, opctx).await?);
    }
    Ok(plans)
}

/// A host that its cluster waits for.
fn waiting(host: &Host) -> Option<Blocker> {
    let status = host.status();
    (!status.keeps_nobody_waiting()).then(|| Blocker {
        code: "host-not-ready".into(),
        subject: format!("host/{}", host.name()),
        reason: format!("{}: {}", status.word(), host.status_info),
        next_action: next_action(host, &[]).into(),
    })
}

fn cluster_why(status: cluster::Status) -> &'static str {
    use cluster::Status::*;
    match status {
        PendingForInput => "The cluster still needs settings.",
        Insufficient => "The settings are complete; its hosts do not meet the checks yet.",
        Ready => "Every check passes.",
        AddingHosts => "The cluster runs and takes on more hosts.",
        PreparingForInstallation
        | Installing
        | InstallingPendingUserAction
        | Finalizing
        | Installed
        | Error
        | Cancelled
        | Unmonitored => lifecycle::status_text(status),
    }
}

fn cluster_next(cluster: &Cluster, hosts: usize, blockers: &[Blocker]) -> String {
    let missing = usize::try_from(cluster.control_plane_count)
        .unwrap_or(0)
        .saturating_sub(hosts);
    use cluster::Status::*;
    match cluster.status() {
        Ready => "Install it.".into(),
        PendingForInput => "Set what the failing checks name: networks, virtual addresses, domain.".into(),
        Insufficient if missing > 0 => format!("Bind {missing} more host(s)."),
        Insufficient => match blockers.iter().find(|blocker| !blocker.next_action.is_empty()) {
            Some(blocker) => format!("{}: {}", blocker.subject, blocker.next_action),
            None => "See the failing checks.".into(),
        },
        AddingHosts => "Bind the hosts that should join.".into(),
        Error | Cancelled => "Reset it to try again.".into(),
        PreparingForInstallation
        | Installing
        | InstallingPendingUserAction
        | Finalizing
        | Installed
        | Unmonitored => "Wait.".into(),
    }
}

pub async fn infra_env(hub: &Hub, id: InfraEnvId) -> Result<ExplainView, Error> {
    let infra_env = hub
        .index
        .infra_env(id)
        .ok_or_else(|| Error::missing("infra-env", id))?;
    let keys = hub.index.hosts_of_infra_env(id);
    let hosts: Vec<_> = keys.into_iter().filter_map(|key| hub.index.host(key)).collect();
    let free = hosts
        .iter()
        .filter(|host| host.status() == Status::KnownUnbound)
        .count();
    let (status, next) = match (hosts.len(), free) {
        (0, _) => (
            InfraEnvStatus::Empty,
            "Boot machines from its discovery image.".to_owned(),
        ),
        (_, 0) => (
            InfraEnvStatus::NoFreeHosts,
            "Boot more machines from its image, or unbind hosts.".to_owned(),
        ),
        (_, free) => (
            InfraEnvStatus::HasFreeHosts,
            format!("Bind one of its {free} free host(s) to a cluster."),
        ),
    };
    let mut why = counted(hosts.iter().map(Host::status));
    if let Some(cluster) = infra_env.cluster {
        why.push_str(&match hub.index.cluster(cluster) {
            Some(_) => format!(" Its hosts are bound to cluster {cluster} as they register."),
            None => format!(" Its cluster {cluster} does not exist any more, so no host can register."),
        });
    }
    Ok(ExplainView {
        subject: format!("infra-env/{}", infra_env.name),
        status: status.into(),
        status_info: String::new(),
        since: None,
        why,
        next_action: next,
        blockers: Vec::new(),
        deadline: None,
        verdicts: Vec::new(),
        verbs: vec![plan::delete_infra_env(hub, id).await?],
    })
}

fn counted(statuses: impl Iterator<Item = Status>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    statuses.for_each(|status| *counts.entry(status.word()).or_default() += 1);
    let total: usize = counts.values().sum();
    let parts: Vec<_> = counts
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    match total {
        0 => "It has no hosts.".into(),
        _ => format!("{total} host(s): {}.", parts.join(", ")),
    }
}
