//! What an Agent shows of its host.

use super::hold::{self, Hold};
use super::{Step, Sync, Then, conditions, inventory, stage};
use crate::controller::agent::snapshot::Snapshot;
use crate::crd::Agent;
use crate::crd::agent::{
    AgentStatus, DebugInfo, HostProgress, NtpSource, ValidationResult, condition, reason,
};
use crate::crd::condition::{Finding, ServiceCondition, Truth, find_service, set_service};
use crate::crd::rest_names::in_kubernetes;
use crate::runtime::event::News;
use crate::runtime::{clock, merge};
use muster_contract::v1::host::HostDetail;
use muster_contract::v2::host::HostProgressView;
use muster_contract::v2::validation::ValidationsInfo;
use muster_vocabulary::{NtpSourceState, Role, Word};
use std::collections::BTreeMap;
use std::time::Duration;

/// A status in the making.
pub struct Shown {
    pub status: AgentStatus,
    findings: Vec<Finding>,
    /// How long until it would be another, with nothing else changing.
    hold_left: Option<Duration>,
    unreadable: Option<String>,
}

impl Shown {
    pub fn of(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Self {
        let before = agent.status.clone().unwrap_or_default();
        let hold = Hold::of(snapshot, agent, row);
        let (inventory, unreadable) = match inventory::parse(row) {
            Ok(Some(found)) => (inventory::shown(&found), None),
            // While the host is handed over, what was known before still identifies it.
            Ok(None) => (before.inventory.clone(), None),
            Err(unreadable) => (before.inventory.clone(), Some(unreadable)),
        };
        let host = &row.host;
        let named = !agent.spec.hostname.is_empty() || !inventory.hostname.is_empty();
        let status = AgentStatus {
            bootstrap: host.bootstrap,
            role: role(row),
            kind: host.kind.clone(),
            inventory,
            progress: Some(
                host.progress
                    .as_ref()
                    .map(|now| progress(row, now))
                    .unwrap_or_default(),
            ),
            ntp_sources: ntp_sources(row).unwrap_or_default(),
            conditions: before.conditions,
            debug_info: DebugInfo {
                events_url: row.events_url.clone(),
                logs_url: row.logs_url.clone(),
                state: host.status.to_string(),
                state_info: in_kubernetes(&host.status_info),
            },
            validations_info: validations(row),
            installation_disk_id: host.installation_disk_id.clone(),
            deprovision_info: before.deprovision_info,
            csr_status: before.csr_status.filter(|_| host.cluster_id.is_some()),
        };
        Self {
            status,
            findings: conditions::findings(row, agent.spec.approved, named, hold),
            hold_left: hold.and_then(Hold::left),
            unreadable,
        }
    }

    pub fn until_hold_ends(&self) -> Then {
        self.hold_left.map_or(Then::Rest, Then::After)
    }

    /// The steps from the status there is to this one, none when they are the same.
    pub fn steps(mut self, snapshot: &Snapshot, agent: &Agent, sync: &Sync) -> Vec<Step> {
        let unreadable = self
            .unreadable
            .take()
            .map(Sync::Backend)
            .filter(|_| *sync == Sync::Done);
        let mut findings = vec![synced(unreadable.as_ref().unwrap_or(sync))];
        findings.append(&mut self.findings);
        written(snapshot, agent, self.status, findings)
    }
}

/// Of a host that the hub does not know: what people see of its hardware stays.
pub fn lost(snapshot: &Snapshot, agent: &Agent, sync: &Sync) -> Vec<Step> {
    let mut status = agent.status.clone().unwrap_or_default();
    status.debug_info.state.clear();
    status.debug_info.state_info.clear();
    let mut findings = vec![synced(sync)];
    findings.extend(conditions::unavailable());
    written(snapshot, agent, status, findings)
}

/// Of an Agent that is to go: first nobody chooses it any more.
pub fn withdrawn(snapshot: &Snapshot, agent: &Agent, cleanup: Option<&str>) -> Vec<Step> {
    let status = agent.status.clone().unwrap_or_default();
    let text = "The Agent is being deleted.";
    let mut findings = Vec::new();
    for type_ in [condition::CONNECTED, condition::VALIDATED] {
        findings.push(Finding::new(type_, Truth::Unknown, reason::NOT_AVAILABLE, text));
    }
    if let Some(why) = cleanup {
        findings.push(Finding::new(
            condition::CLEANUP,
            Truth::False,
            reason::CLEANUP_FAILED,
            why,
        ));
    }
    written(snapshot, agent, status, findings)
}

/// Of an Agent that was claimed while the hub cannot be asked: nobody else chooses it any more.
pub fn held(snapshot: &Snapshot, agent: &Agent) -> Vec<Step> {
    let findings: Vec<_> = hold::unasked(agent).into_iter().collect();
    written(
        snapshot,
        agent,
        agent.status.clone().unwrap_or_default(),
        findings,
    )
}

/// The state alone, ahead of everything else; and with it that the host has just come back, should it have.
pub fn state_only(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Vec<Step> {
    let before = agent.status.clone().unwrap_or_default();
    let mut status = before.clone();
    status.debug_info.state = row.host.status.to_string();
    status.debug_info.state_info = in_kubernetes(&row.host.status_info);
    status.deprovision_info = None;
    status.csr_status = None;
    if let Some(hold) = Hold::of(snapshot, agent, row) {
        set_service(&mut status.conditions, hold.alone(), snapshot.now);
    }
    merge::diff(&before, &status)
        .map(Step::Status)
        .into_iter()
        .collect()
}

fn written(snapshot: &Snapshot, agent: &Agent, mut status: AgentStatus, findings: Vec<Finding>) -> Vec<Step> {
    let before = agent.status.clone().unwrap_or_default();
    let news: Vec<_> = findings
        .iter()
        .filter_map(|finding| news(&before.conditions, finding))
        .collect();
    for finding in findings {
        set_service(&mut status.conditions, finding, snapshot.now);
    }
    let Some(patch) = merge::diff(&before, &status) else {
        return Vec::new();
    };
    let news = news.into_iter().map(Step::Tell);
    [Step::Status(patch)].into_iter().chain(news).collect()
}

fn synced(sync: &Sync) -> Finding {
    let (truth, reason, message) = match sync {
        Sync::Done => (
            Truth::True,
            reason::SYNC_OK,
            "The host has what this object asks for.".to_owned(),
        ),
        Sync::Moving => (
            Truth::True,
            MOVING,
            "The host is moving to its new cluster.".to_owned(),
        ),
        Sync::Backend(why) => (
            Truth::False,
            reason::BACKEND_ERROR,
            format!("Not in effect yet: {why}"),
        ),
        Sync::Input(why) => (
            Truth::False,
            reason::INPUT_ERROR,
            format!("Cannot take effect: {why}"),
        ),
    };
    Finding::new(condition::SPEC_SYNCED, truth, reason, message)
}

/// Our own: elsewhere a move shows as a failure until it is over.
const MOVING: &str = "Moving";

/// What people must see beside the object: it changed hands, was installed, or cannot have what it asks for.
fn news(before: &[ServiceCondition], finding: &Finding) -> Option<News> {
    let known = find_service(before, finding.type_);
    let was = known.map(|condition| (condition.status.as_str(), condition.reason.as_str()));
    if was == Some((finding.status.word(), finding.reason.as_str())) {
        return None;
    }
    let failed = finding.status == Truth::False;
    let worth_telling = match finding.type_ {
        condition::SPEC_SYNCED | condition::CLEANUP => failed,
        condition::CONNECTED => failed || known.is_some_and(|known| known.status == Truth::False.word()),
        condition::BOUND => known.is_some() && finding.status != Truth::Unknown,
        condition::INSTALLED => matches!(
            finding.reason.as_str(),
            reason::COMPLETED | reason::FAILED | reason::IN_PROGRESS
        ),
        _ => false,
    };
    let bad = [
        reason::FAILED,
        reason::UNBINDING_PENDING_USER_ACTION,
        reason::DISCONNECTED,
    ];
    let is_failure = matches!(finding.type_, condition::SPEC_SYNCED | condition::CLEANUP) && failed;
    worth_telling.then(|| News {
        warning: is_failure || bad.contains(&finding.reason.as_str()),
        reason: finding.reason.clone(),
        note: finding.message.clone(),
    })
}

fn role(row: &HostDetail) -> Word<Role> {
    let (chosen, suggested) = (&row.host.role, &row.host.suggested_role);
    match *chosen == Role::AutoAssign && !suggested.is_empty() {
        true => suggested.clone(),
        false => chosen.clone(),
    }
}

fn progress(row: &HostDetail, now: &HostProgressView) -> HostProgress {
    if stage(row).is_empty() {
        return HostProgress::default();
    }
    HostProgress {
        current_stage: now.current_stage.clone(),
        progress_stages: row.host.progress_stages.clone().unwrap_or_default(),
        progress_info: now.progress_info.clone(),
        installation_percentage: Some(now.installation_percentage),
        stage_start_time: now.stage_started_at.0.map(clock::time),
        stage_update_time: now.stage_updated_at.0.map(clock::time),
    }
}

fn ntp_sources(row: &HostDetail) -> Option<Vec<NtpSource>> {
    #[derive(serde::Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Source {
        source_name: String,
        source_state: Word<NtpSourceState>,
    }
    let sources: Vec<Source> = serde_json::from_str(&row.host.ntp_sources).ok()?;
    let shown = |source: Source| NtpSource {
        source_name: source.source_name,
        source_state: source.source_state,
    };
    Some(sources.into_iter().map(shown).collect())
}

fn validations(row: &HostDetail) -> BTreeMap<String, Vec<ValidationResult>> {
    let found: ValidationsInfo = serde_json::from_str(&row.host.validations_info).unwrap_or_default();
    let shown = |check: &muster_contract::v2::validation::ValidationView| ValidationResult {
        id: check.id.to_string(),
        status: check.status.clone(),
        message: in_kubernetes(&check.message),
    };
    let category = |(name, checks): (std::borrow::Cow<'static, str>, Vec<_>)| {
        (name.into_owned(), checks.iter().map(shown).collect())
    };
    found.into_iter().map(category).collect()
}
