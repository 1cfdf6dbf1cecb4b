//! What the AgentClusterInstall says about its cluster.

use super::condition::{self, validations};
use super::tally::Tally;
use super::{Snapshot, Step};
use crate::controller::cluster_deployment::snapshot::Row;
use crate::crd::AgentClusterInstall;
use crate::crd::agent::{DebugInfo, ValidationResult};
use crate::crd::agent_cluster_install::{
    AgentClusterInstallStatus, ClusterProgress, MachineNetworkEntry, condition as type_, reason,
};
use crate::crd::condition::{Finding, InstallCondition, find_install, set_install};
use crate::crd::rest_names::in_kubernetes;
use crate::runtime::event::News;
use crate::runtime::merge;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_setting::PlatformType;
use muster_contract::v2::network::Vip;

/// Everything the hub knows, or that it knows no such cluster.
pub fn of_cluster(snapshot: &Snapshot, install: &AgentClusterInstall, synced: Finding) -> Vec<Step> {
    let Some(row) = &snapshot.row else {
        return without(
            snapshot,
            install,
            synced,
            "The hub does not have the cluster yet.",
        );
    };
    let mut findings = vec![synced];
    findings.extend(condition::findings(
        snapshot,
        row,
        &install.spec.provision_requirements,
    ));
    steps(snapshot, install, projection(snapshot, row), findings)
}

/// Only whether the object is in order; all else stays as it was.
pub fn only(snapshot: &Snapshot, install: &AgentClusterInstall, synced: Finding) -> Vec<Step> {
    let mut findings = vec![synced];
    if install
        .status
        .as_ref()
        .is_none_or(|status| status.conditions.is_empty())
    {
        findings.extend(condition::absent("The hub does not answer."));
    }
    steps(
        snapshot,
        install,
        install.status.clone().unwrap_or_default(),
        findings,
    )
}

/// It is to go and cannot yet; all else stays as it was. The caller records the event.
pub fn delayed(snapshot: &Snapshot, install: &AgentClusterInstall, reason: &str, why: &str) -> Vec<Step> {
    let status = install.status.clone().unwrap_or_default();
    let synced = Finding::new(type_::SPEC_SYNCED, false, reason, why);
    let mut steps = steps(snapshot, install, status, vec![synced]);
    steps.retain(|step| matches!(step, Step::Status(_)));
    steps
}

/// There is no cluster, and `why` says so.
pub fn without(snapshot: &Snapshot, install: &AgentClusterInstall, synced: Finding, why: &str) -> Vec<Step> {
    let status = AgentClusterInstallStatus {
        debug_info: DebugInfo::default(),
        ..install.status.clone().unwrap_or_default()
    };
    let mut findings = vec![synced];
    findings.extend(condition::absent(why));
    steps(snapshot, install, status, findings)
}

fn projection(snapshot: &Snapshot, row: &Row) -> AgentClusterInstallStatus {
    let view = &row.view;
    let Tally { found, ready, .. } = Tally::of(snapshot, row);
    let vips = |vips: &Option<Vec<Vip>>| -> Vec<String> {
        vips.iter()
            .flatten()
            .filter_map(|vip| vip.ip.clone())
            .filter(|ip| !ip.is_empty())
            .collect()
    };
    let (api_vips, ingress_vips) = (vips(&view.api_vips), vips(&view.ingress_vips));
    let networks = view
        .machine_networks
        .iter()
        .flatten()
        .filter_map(|net| net.cidr.clone());
    let has_logs = view.controller_logs_collected_at.0.is_some()
        || row
            .hosts
            .iter()
            .any(|member| member.host.logs_collected_at.0.is_some());
    AgentClusterInstallStatus {
        conditions: Vec::new(),
        progress: view.progress.as_ref().map(|progress| ClusterProgress {
            total_percentage: progress.total_percentage,
        }),
        control_plane_agents_discovered: Some(found.masters),
        control_plane_agents_ready: Some(ready.masters),
        worker_agents_discovered: Some(found.workers),
        worker_agents_ready: Some(ready.workers),
        connectivity_majority_groups: view.connectivity_majority_groups.clone(),
        machine_network: networks.map(|cidr| MachineNetworkEntry { cidr }).collect(),
        api_vip: api_vips.first().cloned().unwrap_or_default(),
        api_vips,
        ingress_vip: ingress_vips.first().cloned().unwrap_or_default(),
        ingress_vips,
        user_managed_networking: view.user_managed_networking,
        platform_type: platform(view).into(),
        validations_info: validations(view)
            .into_iter()
            .map(|(category, checks)| (category.into_owned(), checks.into_iter().map(result).collect()))
            .collect(),
        debug_info: DebugInfo {
            events_url: row.links.events.clone(),
            logs_url: if has_logs {
                row.links.logs.clone()
            } else {
                String::new()
            },
            state: view.status.to_string(),
            state_info: in_kubernetes(&view.status_info),
        },
    }
}

fn result(check: muster_contract::v2::validation::ValidationView) -> ValidationResult {
    ValidationResult {
        id: check.id.into_owned(),
        status: check.status,
        message: in_kubernetes(&check.message),
    }
}

fn platform(view: &ClusterView) -> &'static str {
    match view
        .platform
        .as_ref()
        .and_then(|platform| platform.r#type.known())
    {
        None => "",
        Some(PlatformType::Baremetal) => "BareMetal",
        Some(PlatformType::None) => "None",
        Some(PlatformType::Vsphere) => "VSphere",
        Some(PlatformType::Nutanix) => "Nutanix",
        Some(PlatformType::External) => "External",
    }
}

/// The steps from the status there is to the one there should be, none when they are the same.
fn steps(
    snapshot: &Snapshot,
    install: &AgentClusterInstall,
    mut status: AgentClusterInstallStatus,
    findings: Vec<Finding>,
) -> Vec<Step> {
    let before = install.status.clone().unwrap_or_default();
    status.conditions.clone_from(&before.conditions);
    let news: Vec<News> = findings
        .iter()
        .filter_map(|finding| news(&before.conditions, finding))
        .collect();
    for finding in findings {
        set_install(&mut status.conditions, finding, snapshot.now);
    }
    let patch = merge::diff(&before, &status).map(Step::Status);
    patch
        .into_iter()
        .chain(news.into_iter().map(Step::Tell))
        .collect()
}

/// What people must see: that something is wrong with the object, and how far the installation is.
fn news(before: &[InstallCondition], finding: &Finding) -> Option<News> {
    let was = find_install(before, finding.type_);
    let same_status = was.is_some_and(|was| was.status == finding.status.word());
    let same_reason = was.is_some_and(|was| was.reason == finding.reason);
    let bad = match finding.type_ {
        type_::SPEC_SYNCED if finding.reason != reason::SYNC_OK => !(same_status && same_reason),
        _ => false,
    };
    let is_shown = [
        reason::IN_PROGRESS,
        reason::COMPLETED,
        reason::FAILED,
        reason::ON_HOLD,
    ]
    .contains(&finding.reason.as_str());
    let far = finding.type_ == type_::COMPLETED && is_shown && !same_reason;
    (bad || far).then(|| News {
        warning: bad || finding.reason == reason::FAILED,
        reason: finding.reason.clone(),
        note: finding.message.clone(),
    })
}
