//! Install stages: their order per role, their time limits, and a host's progress through them.

use super::{Host, Kind, Role};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use muster_vocabulary::Stage;

use Stage::*;
const BOOTSTRAP: &[Stage] = &[
    Starting,
    Installing,
    Writing,
    Copying,
    WaitingForControlPlane,
    WaitingForBootkube,
    WaitingForController,
    Rebooting,
    Configuring,
    Joined,
    Done,
];
const MASTER: &[Stage] = &[
    Starting,
    Installing,
    Writing,
    Copying,
    Rebooting,
    Configuring,
    Joined,
    Done,
];
const WORKER: &[Stage] = &[
    Starting,
    Installing,
    Writing,
    WaitingForControlPlane,
    Rebooting,
    WaitingForIgnition,
    Configuring,
    Joined,
    Done,
];
const SINGLE_NODE: &[Stage] = &[
    Starting,
    Installing,
    WaitingForBootkube,
    Writing,
    Copying,
    Rebooting,
    Joined,
    Done,
];
/// A day-2 host that nobody follows reports nothing after its reboot: the list ends there.
const DAY_TWO: &[Stage] = &[Starting, Installing, Writing, WaitingForControlPlane, Rebooting];

/// The stages this host goes through, in order.
pub fn order(host: &Host, single_node: bool) -> &'static [Stage] {
    if host.kind == Kind::AddToExistingClusterHost && !host.followed {
        return DAY_TWO;
    }
    let role = match host.role {
        Role::AutoAssign => host.suggested_role.unwrap_or_default(),
        Role::Master | Role::Arbiter | Role::Worker => host.role,
    };
    match role {
        _ if single_node => SINGLE_NODE,
        _ if host.bootstrap => BOOTSTRAP,
        Role::Master | Role::Arbiter => MASTER,
        Role::Worker | Role::AutoAssign => WORKER,
    }
}

/// What makes a cluster's installation slower than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    pub single_node: bool,
    /// Operators were asked for beside the platform's own; their images are pulled while others wait.
    pub with_operators: bool,
}

/// How long a host may stay in a stage without news.
pub fn limit(stage: Stage, cluster: Pace) -> SignedDuration {
    match stage {
        Starting | Writing => SignedDuration::from_mins(30),
        Copying => SignedDuration::from_mins(90),
        Rebooting if cluster.single_node => SignedDuration::from_mins(80),
        Rebooting => SignedDuration::from_mins(40),
        WaitingForIgnition => SignedDuration::from_hours(24),
        WaitingForControlPlane if cluster.with_operators => SignedDuration::from_mins(90),
        WaitingForControlPlane
        | WaitingForBootkube
        | WaitingForController
        | Installing
        | Configuring
        | Joined
        | Done
        | Failed => SignedDuration::from_mins(60),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub stage: Option<Stage>,
    pub info: String,
    pub percentage: i64,
    pub started_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub timed_out: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Pace = Pace {
        single_node: false,
        with_operators: false,
    };
    const SINGLE: Pace = Pace {
        single_node: true,
        ..USUAL
    };
    const WITH_OPERATORS: Pace = Pace {
        with_operators: true,
        ..USUAL
    };

    #[test]
    fn every_stage_has_the_limit_that_clients_know() {
        let usual = |stage| match stage {
            Starting | Writing => 30,
            Copying => 90,
            Rebooting => 40,
            WaitingForIgnition => 24 * 60,
            WaitingForControlPlane
            | WaitingForBootkube
            | WaitingForController
            | Installing
            | Configuring
            | Joined
            | Done
            | Failed => 60,
        };
        for stage in Stage::ALL.iter().copied() {
            assert_eq!(limit(stage, USUAL).as_mins(), usual(stage), "{stage:?}");
            let single = if stage == Rebooting { 80 } else { usual(stage) };
            assert_eq!(
                limit(stage, SINGLE).as_mins(),
                single,
                "{stage:?} of a single node"
            );
            let slow = if stage == WaitingForControlPlane {
                90
            } else {
                usual(stage)
            };
            assert_eq!(
                limit(stage, WITH_OPERATORS).as_mins(),
                slow,
                "{stage:?} with operators"
            );
        }
    }
}
