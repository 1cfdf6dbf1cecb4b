//! What can happen to a cluster: the only inputs of its lifecycle, and the limits it knows.

use super::finalizing::FinalizingStage;
use super::operator::OperatorStatus;
use super::tally::Tally;
use super::{Cluster, Gates};
use crate::host::{Effect, LogsInfo};
use crate::journal::Entry;
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one is alive at a time, and a count is the most common"
)]
pub enum Event {
    /// The checks ran.
    Measured {
        gates: Gates,
        /// What keeps the cluster back, for people.
        complaints: String,
    },
    /// Somebody wants to change its settings.
    Update,
    /// Somebody wants it gone.
    Delete,
    /// It is installed and shall take on more hosts.
    AddHosts,
    /// Somebody wants it installed; [`super::install::start`] sends it together with the plan for its hosts.
    Install,
    /// The files of an attempt are made, or could not be.
    FilesMade {
        attempt: u32,
        outcome: Result<(), String>,
    },
    /// The hosts were counted.
    Counted {
        tally: Tally,
    },
    Cancel,
    Reset,
    /// The cluster's own controller says how far it is.
    FinalizingStage {
        stage: FinalizingStage,
    },
    OperatorReported {
        name: String,
        status: OperatorStatus,
        version: String,
        info: String,
    },
    /// The ingress certificate was merged into the kubeconfig.
    IngressCert,
    LogsProgress {
        state: LogsInfo,
    },
    /// The controller's logs were stored.
    LogsUploaded,
    /// A deadline passed.
    Due,
}

/// What a decision changes and causes.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub cluster: Cluster,
    pub journal: Vec<Entry>,
    pub effects: Vec<Effect>,
    /// One sentence for logs, plans and explanations.
    pub why: &'static str,
}

/// What the lifecycle may know besides the cluster itself. A bare time stands for the usual limits.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    pub now: Timestamp,
    pub timers: &'a Timers,
}

impl From<Timestamp> for Around<'static> {
    fn from(now: Timestamp) -> Self {
        Self {
            now,
            timers: &Timers::USUAL,
        }
    }
}

/// Every limit of the lifecycle, in one place so that a hub can be configured and a test can read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timers {
    /// The hosts' own 17 minutes of tests, and one for the files.
    pub preparation: SignedDuration,
    /// Nothing that takes a day still succeeds.
    pub installation: SignedDuration,
    /// Finalizing, unless the policy is to wait.
    pub finalizing: SignedDuration,
    /// Somebody must fix a boot order within a day.
    pub boot_fix: SignedDuration,
    /// The controller has begun to send logs and must end.
    pub log_collection: SignedDuration,
    /// The controller was asked for logs and must begin.
    pub log_pending: SignedDuration,
}

impl Timers {
    pub const USUAL: Timers = Timers {
        preparation: SignedDuration::from_mins(18),
        installation: SignedDuration::from_hours(24),
        finalizing: SignedDuration::from_hours(5),
        boot_fix: SignedDuration::from_hours(24),
        log_collection: SignedDuration::from_mins(60),
        log_pending: SignedDuration::from_mins(10),
    };
}

impl Default for Timers {
    fn default() -> Self {
        Self::USUAL
    }
}
