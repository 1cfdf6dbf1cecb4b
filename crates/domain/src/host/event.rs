//! What can happen to a host: the only inputs of its lifecycle.

use super::stage::Pace;
use super::{Gates, Role, Stage};
use crate::ClusterId;
use crate::cluster;
use crate::refusal::Refused;
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The agent (re-)registered: the machine runs the discovery image right now.
    Registered {
        agent_version: String,
    },
    /// The same for the first time: nothing is known of the machine yet.
    Arrived {
        agent_version: String,
    },
    /// A person or program lends the host to a cluster.
    Bind {
        to: ClusterId,
    },
    /// A person takes the host back.
    Unbind,
    /// The cluster is being deleted: its hosts go back whatever they are doing.
    Release,
    /// Take it back while it runs the installed system, without a BMC.
    Reclaim,
    /// From one cluster to another in one request.
    Move {
        to: ClusterId,
    },
    /// The last step of a move may be due; `refused` is what its target says against it.
    FinishMove {
        to: ClusterId,
        refused: Option<Refused>,
    },
    /// The target of a move cannot take the host any more.
    MoveAbandoned {
        why: Refused,
    },
    ReclaimReady,
    ReclaimFailed {
        why: String,
    },
    Cancel,
    Reset,
    /// Start installing into a cluster that is already running.
    Install,
    InstallFailed {
        why: String,
    },
    /// The plan of the cluster's installation says what this host becomes.
    Assigned {
        role: Role,
        bootstrap: bool,
    },
    /// The agent stopped the installer, or found none running.
    InstallerStopped,
    MediaLost,
    MediaBack,
    Progressed {
        stage: Stage,
        info: String,
    },
    /// Facts were measured anew: a report arrived, the cluster changed, or somebody asked.
    Measured {
        gates: Gates,
        complaints: String,
    },
    /// The agent asked for work: it is alive.
    CheckedIn,
    /// A deadline passed.
    Due,
}

/// What the lifecycle may know besides the host itself.
#[derive(Debug, Clone)]
pub struct Around<'a> {
    pub now: Timestamp,
    pub timers: &'a Timers,
    /// The cluster the host is lent to (or, for `Bind` and `Move`, the one it goes to).
    pub cluster: Option<ClusterState>,
    /// The hub itself was down a moment ago: silence and restarts in that time are our fault.
    pub hub_was_down: bool,
}

/// The state of the cluster, in the few answers a host's lifecycle needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterState {
    pub phase: cluster::Phase,
    /// Its hosts join a running cluster.
    pub adds_hosts: bool,
    pub single_node: bool,
    /// It brings operators beside the platform's own.
    pub with_operators: bool,
    pub soft_timeouts: bool,
    /// One more worker may fail and the rest is enough; of a control plane host this is never said.
    pub can_do_without: bool,
}

impl ClusterState {
    pub fn pace(&self) -> Pace {
        Pace {
            single_node: self.single_node,
            with_operators: self.with_operators,
        }
    }
}

/// Every limit of the lifecycle, in one place so that a hub can be configured and a test can read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timers {
    /// An agent polls once a minute; three missed polls are silence.
    pub silence: SignedDuration,
    /// The bootstrap host restarts its network in the middle of the installation.
    pub bootstrap_silence: SignedDuration,
    /// An agent that polls but does not register again within this time ignores its orders.
    pub rebind: SignedDuration,
    /// Longest of the preparation tests (image pulls, 16 min) and one minute.
    pub preparation: SignedDuration,
    pub install_start: SignedDuration,
    pub boot_fix: SignedDuration,
    pub reclaim: SignedDuration,
    pub reset: SignedDuration,
    pub log_collection: SignedDuration,
    /// The agent was asked for logs and must begin to collect them.
    pub log_pending: SignedDuration,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            silence: SignedDuration::from_mins(3),
            bootstrap_silence: SignedDuration::from_mins(5),
            rebind: SignedDuration::from_mins(15),
            preparation: SignedDuration::from_mins(17),
            install_start: SignedDuration::from_mins(20),
            boot_fix: SignedDuration::from_mins(60),
            reclaim: SignedDuration::from_mins(60),
            reset: SignedDuration::from_mins(3),
            log_collection: SignedDuration::from_mins(10),
            log_pending: SignedDuration::from_mins(2),
        }
    }
}
