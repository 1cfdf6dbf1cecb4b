//! The only place a cluster changes phase: total over (event, phase), refusals spelled out.

mod counted;
mod draft;
mod due;
mod finish;
mod prepare;
mod stop;
#[cfg(test)]
mod tests;
mod words;

pub use super::event::{Around, Decision, Event};
pub use super::phase::Phase;
pub use prepare::must_be_ready;
pub use words::status_text;

use super::Cluster;
use crate::host::Effect;
use crate::journal::{Entry, Severity, cut};
use crate::refusal::Refused;

/// Longest `status_info` the wire promises to carry.
const STATUS_INFO_LIMIT: usize = 2040;

pub fn next<'a>(
    cluster: &Cluster,
    event: &Event,
    around: impl Into<Around<'a>>,
) -> Result<Decision, Refused> {
    let around = &around.into();
    match event {
        Event::Measured { gates, complaints } => Ok(draft::measured(cluster, *gates, complaints, around)),
        Event::Update => draft::update(cluster),
        Event::Delete => draft::delete(cluster),
        Event::AddHosts => draft::add_hosts(cluster, around),
        Event::Install => prepare::install(cluster, around),
        Event::FilesMade { attempt, outcome } => Ok(prepare::files_made(cluster, *attempt, outcome, around)),
        Event::Counted { tally } => Ok(counted::counted(cluster, tally, around)),
        Event::Cancel => stop::cancel(cluster, around),
        Event::Reset => stop::reset(cluster, around),
        Event::FinalizingStage { stage } => finish::stage(cluster, *stage, around),
        Event::OperatorReported {
            name,
            status,
            version,
            info,
        } => finish::operator(cluster, name, *status, version, info, around),
        Event::IngressCert => finish::ingress_cert(cluster, around),
        Event::LogsProgress { state } => Ok(finish::logs(cluster, *state, around)),
        Event::LogsUploaded => Ok(finish::logs_uploaded(cluster, around)),
        Event::Due => Ok(due::due(cluster, around)),
    }
}

/// A decision in the making: the new row beside the old one.
struct Draft<'a> {
    before: &'a Cluster,
    cluster: Cluster,
    info: Option<String>,
    journal: Vec<Entry>,
    effects: Vec<Effect>,
}

impl<'a> Draft<'a> {
    fn of(before: &'a Cluster) -> Self {
        Self {
            before,
            cluster: before.clone(),
            info: None,
            journal: Vec::new(),
            effects: Vec::new(),
        }
    }

    fn enter(mut self, phase: Phase, around: &Around<'_>) -> Self {
        if self.cluster.phase != phase {
            self.cluster.phase = phase;
            self.cluster.since = around.now;
        }
        self
    }

    fn saying(mut self, info: impl Into<String>) -> Self {
        self.info = Some(info.into());
        self
    }

    fn telling(mut self, name: &str, severity: Severity, message: impl Into<String>) -> Self {
        self.journal.push(self.cluster.entry(name, severity, message));
        self
    }

    /// Completes status text and history, and stamps times; every decision ends here.
    fn because(mut self, why: &'static str, around: &Around<'_>) -> Decision {
        let (from, to) = (self.before.status(), self.cluster.status());
        match self.info.take() {
            Some(info) => self.cluster.status_info = info,
            None if from != to => self.cluster.status_info = words::of(&self.cluster),
            None => {}
        }
        cut(&mut self.cluster.status_info, STATUS_INFO_LIMIT);
        if from != to {
            self.cluster.status_updated_at = around.now;
            let text = format!(
                "Cluster {}: {from} -> {to} ({})",
                self.cluster.name, self.cluster.status_info
            );
            self.journal
                .push(self.cluster.entry("cluster_status_updated", Severity::Info, text));
        }
        if &self.cluster != self.before {
            self.cluster.updated_at = around.now;
        }
        Decision {
            cluster: self.cluster,
            journal: self.journal,
            effects: self.effects,
            why,
        }
    }
}

/// Nothing to do, and that is the answer.
fn stay(cluster: &Cluster, why: &'static str) -> Decision {
    Decision {
        cluster: cluster.clone(),
        journal: Vec::new(),
        effects: Vec::new(),
        why,
    }
}
