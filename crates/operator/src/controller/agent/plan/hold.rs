//! When a free host is not offered to machines: while somebody has claimed it, and for a moment after.
//!
//! The released provider of machines chooses by `Connected`, `Validated` and `Bound` alone, and whoever waits for the
//! release of a host would undo what the next one does with it.

use crate::controller::agent::snapshot::Snapshot;
use crate::crd::Agent;
use crate::crd::agent::{condition, reason};
use crate::crd::condition::{Finding, ServiceCondition, Truth, find_service};
use crate::crd::keys::label;
use jiff::SignedDuration;
use kube::ResourceExt;
use muster_contract::v1::host::HostDetail;
use muster_vocabulary::{HostStatus, Word};
use std::time::Duration;

/// Whoever waits for the release of a host asks every five seconds; a second more because objects keep whole seconds.
const HOLD_TIME: SignedDuration = SignedDuration::from_secs(7);

/// The message about the checks of a host that has just come back.
const JUST_BACK: &str = "The host has just come back.";

/// The message about the checks of a free host that somebody has claimed; failing checks follow it.
const CLAIMED: &str = "Somebody has claimed this host; no other machine can take it.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// For as long as that is so.
    Claimed,
    JustBack {
        /// The status of its checks meanwhile.
        truth: Truth,
        left: Duration,
    },
}

impl Hold {
    /// It counts from when the object said first that the host is back or claimed no more, and by the clock of whoever
    /// wrote that: those who wait for its release read the object, not the hub.
    pub fn of(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Option<Self> {
        if !is_free(&row.host.status) {
            return None;
        }
        if is_claimed(agent) {
            return Some(Self::Claimed);
        }
        let before = agent.status.as_ref()?;
        // Nothing was said yet: it was never anybody's.
        let validated = find_service(&before.conditions, condition::VALIDATED)?;
        if !is_free(&agent.state()) || validated.message.starts_with(CLAIMED) {
            return Self::begin(validated);
        }
        Self::go_on(snapshot, validated)
    }

    /// Another status than before, because only then its time moves.
    fn begin(validated: &ServiceCondition) -> Option<Self> {
        let was_unknown = validated.status == Truth::Unknown.word();
        Some(Self::JustBack {
            truth: if was_unknown { Truth::False } else { Truth::Unknown },
            left: Duration::try_from(HOLD_TIME).ok()?,
        })
    }

    fn go_on(snapshot: &Snapshot, validated: &ServiceCondition) -> Option<Self> {
        let held = validated.message == JUST_BACK;
        let since = validated.last_transition_time.as_ref().filter(|_| held)?.0;
        // At most as long as it takes, should another operator's clock be ahead.
        let left = (since + HOLD_TIME).duration_since(snapshot.now).min(HOLD_TIME);
        let left = Duration::try_from(left).ok().filter(|left| !left.is_zero())?;
        let was_unknown = validated.status == Truth::Unknown.word();
        let truth = if was_unknown { Truth::Unknown } else { Truth::False };
        Some(Self::JustBack { truth, left })
    }

    /// How long until it ends by itself.
    pub fn left(self) -> Option<Duration> {
        match self {
            Self::Claimed => None,
            Self::JustBack { left, .. } => Some(left),
        }
    }

    /// What is said of the checks instead of what they say. What is bad about a claimed host stays to be read: it may be
    /// what keeps it from its cluster.
    pub fn over(self, checks: Finding) -> Finding {
        match self {
            Self::Claimed if checks.status == Truth::False => Finding {
                message: format!("{CLAIMED} {}", checks.message),
                ..checks
            },
            Self::Claimed | Self::JustBack { .. } => self.alone(),
        }
    }

    /// The same, with nothing known of the checks.
    pub fn alone(self) -> Finding {
        match self {
            Self::Claimed => said(Truth::Unknown, CLAIMED),
            Self::JustBack { truth, .. } => said(truth, JUST_BACK),
        }
    }
}

/// Of an Agent that was claimed while nobody can be asked about its host: what was said last would still offer it.
pub fn unasked(agent: &Agent) -> Option<Finding> {
    let before = agent.status.as_ref()?;
    let validated = find_service(&before.conditions, condition::VALIDATED)?;
    let offered = is_free(&agent.state()) && validated.status == Truth::True.word();
    (offered && is_claimed(agent)).then(|| Hold::Claimed.alone())
}

fn said(truth: Truth, message: &str) -> Finding {
    Finding::new(condition::VALIDATED, truth, reason::VALIDATIONS_UNKNOWN, message)
}

fn is_free(state: &Word<HostStatus>) -> bool {
    state.is(HostStatus::is_unbound)
}

/// A machine of Cluster API or a person has claimed it, whether or not that is in effect.
fn is_claimed(agent: &Agent) -> bool {
    agent.spec.cluster_deployment_name.is_some() || agent.labels().contains_key(label::AGENT_MACHINE)
}
