//! The only place a host changes phase: total over (event, phase), refusals spelled out.

mod due;
mod facts;
mod farewell;
mod install;
mod lending;
mod register;
#[cfg(test)]
mod tests;

pub use farewell::farewell;

use super::event::{Around, Event};
use super::{Decision, Host, Logs, LogsInfo, Phase, Report, Status, install_order, words};
use crate::journal::{Severity, cut};
use crate::refusal::Refused;

/// Longest `status_info` the wire promises to carry.
const STATUS_INFO_LIMIT: usize = 2040;

pub fn next(host: &Host, event: &Event, around: &Around<'_>) -> Result<Decision, Refused> {
    match event {
        Event::Registered { agent_version } => register::registered(host, agent_version, around),
        Event::Arrived { agent_version } => register::arrived(host, agent_version, around),
        Event::Bind { to } => lending::bind(host, *to, around),
        Event::Unbind => lending::unbind(host, around),
        Event::Release => lending::release(host, around),
        Event::Reclaim => lending::reclaim(host, around),
        Event::Move { to } => lending::move_to(host, *to, around),
        Event::FinishMove { to, refused } => lending::finish_move(host, *to, refused.as_ref(), around),
        Event::MoveAbandoned { why } => Ok(lending::move_abandoned(host, why, around)),
        Event::ReclaimReady => Ok(lending::reclaim_ready(host, around)),
        Event::ReclaimFailed { why } => Ok(lending::reclaim_failed(host, why, around)),
        Event::Cancel => install::cancel(host, around),
        Event::Reset => install::reset(host, around),
        Event::Install => install::install(host, around),
        Event::Assigned { role, bootstrap } => install::assigned(host, *role, *bootstrap, around),
        Event::InstallerStopped => Ok(facts::installer_stopped(host, around)),
        Event::InstallFailed { why } => Ok(install::failed(host, why, around)),
        Event::Progressed { stage, info } => install::progressed(host, *stage, info, around),
        Event::MediaLost => Ok(facts::media_lost(host, around)),
        Event::MediaBack => Ok(facts::media_back(host, around)),
        Event::Measured { gates, complaints } => Ok(facts::measured(host, *gates, complaints, around)),
        Event::CheckedIn => Ok(facts::checked_in(host, around)),
        Event::Due => Ok(due::due(host, around)),
    }
}

/// A decision in the making: the new row beside the old one.
struct Draft<'a> {
    before: &'a Host,
    host: Host,
    info: Option<String>,
    forget: Vec<Report>,
    journal: Vec<crate::journal::Entry>,
    effects: Vec<super::Effect>,
}

impl<'a> Draft<'a> {
    fn of(before: &'a Host) -> Self {
        Self {
            before,
            host: before.clone(),
            info: None,
            forget: Vec::new(),
            journal: Vec::new(),
            effects: Vec::new(),
        }
    }

    fn enter(mut self, phase: Phase, around: &Around<'_>) -> Self {
        if self.host.phase == phase {
            return self;
        }
        let over = |phase| matches!(phase, Phase::Failed | Phase::Cancelled);
        if over(phase) && !over(self.host.phase) {
            self.host.logs = Logs {
                info: LogsInfo::Requested,
                ..Logs::default()
            };
        }
        if phase == Phase::Installing {
            self.host.installer_may_run = true;
            self.journal.extend(formatting(&self.host));
        }
        self.host.phase = phase;
        self.host.since = around.now;
        self
    }

    fn saying(mut self, info: impl Into<String>) -> Self {
        self.info = Some(info.into());
        self
    }

    /// Completes status text and history, and stamps times; every decision ends here.
    fn because(mut self, why: &'static str, around: &Around<'_>) -> Decision {
        for report in &self.forget {
            self.host.report_hashes.remove(report);
        }
        let (from, to) = (self.before.status(), self.host.status());
        let moved = from != to || self.before.status_info.is_empty();
        let reason_changed = words::of(self.before) != words::of(&self.host);
        match self.info.take() {
            Some(info) => self.host.status_info = info,
            None if moved || reason_changed => self.host.status_info = words::of(&self.host).into(),
            None => {}
        }
        cut(&mut self.host.status_info, STATUS_INFO_LIMIT);
        if moved {
            self.host.status_updated_at = around.now;
        }
        if from != to {
            // A host that registers again is known by the name it reported before, until its inventory arrives.
            let told = &self.before.digest.hostname;
            let name = match self.host.given_name().is_none() && self.host.digest.hostname.is_empty() {
                true if !told.is_empty() => told.clone(),
                _ => self.host.name(),
            };
            let text = words::status_changed(&name, &self.host.status_info, from, to);
            let mut entry = self.host.entry("host_status_updated", to.severity(), text);
            // A host that leaves is still the old cluster's news.
            entry.cluster = self.host.cluster.or(self.before.cluster);
            self.journal.push(entry);
        }
        let mut compare = self.host.clone();
        compare.checked_in_at = self.before.checked_in_at;
        compare.clock = self.before.clock;
        if &compare != self.before {
            self.host.updated_at = around.now;
        }
        finish_move(&mut self, to);
        Decision {
            host: self.host,
            journal: self.journal,
            effects: self.effects,
            forget: self.forget,
            why,
        }
    }
}

/// One event per installation: which disks lose their boot sectors, and which were spared.
fn formatting(host: &Host) -> Vec<crate::journal::Entry> {
    let (wiped, spared) = install_order::wiped_and_spared(host);
    let entry = |event: &str, text: String| host.entry(event, Severity::Info, text);
    let mut told = Vec::new();
    if !wiped.is_empty() {
        let text = format!(
            "Host {}: boot sectors are wiped on {}.",
            host.name(),
            wiped.join(", ")
        );
        told.push(entry("quick_disk_format_performed", text));
    }
    if !spared.is_empty() {
        let text = format!(
            "Host {}: not formatted, as wished: {}.",
            host.name(),
            spared.join(", ")
        );
        told.push(entry("quick_disk_format_skipped", text));
    }
    told
}

/// A host on its way to another cluster is lent again as soon as it is free and ready.
fn finish_move(draft: &mut Draft<'_>, now_is: Status) {
    if let (Some(to), Status::KnownUnbound) = (draft.host.moving_to, now_is)
        && draft.before.status() != Status::KnownUnbound
    {
        draft.effects.push(super::Effect::FinishMove {
            host: draft.host.key(),
            to,
        });
    }
}

/// Nothing to do, and that is the answer.
fn stay(host: &Host, why: &'static str) -> Decision {
    Decision {
        host: host.clone(),
        journal: Vec::new(),
        effects: Vec::new(),
        forget: Vec::new(),
        why,
    }
}
