//! The few phases a cluster can be in, and the status word of the wire derived from them.

use super::{Cluster, Gates, Status};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Being put together; the gates say whether input is missing, hosts are, or nothing is.
    Draft,
    /// Files are made and hosts run their last tests; no disk is written yet.
    Preparing,
    Installing,
    Finalizing,
    Installed,
    /// Runs, and takes on more hosts.
    AddingHosts,
    /// A host did not boot its disk: a person must look.
    BootFix,
    Error,
    Cancelled,
    /// Nobody watches it: a placeholder.
    Unmonitored,
}

impl Phase {
    pub const ALL: [Phase; 10] = [
        Self::Draft,
        Self::Preparing,
        Self::Installing,
        Self::Finalizing,
        Self::Installed,
        Self::AddingHosts,
        Self::BootFix,
        Self::Error,
        Self::Cancelled,
        Self::Unmonitored,
    ];

    pub fn accepts_hosts(self) -> bool {
        match self {
            Self::Draft | Self::AddingHosts => true,
            Self::Preparing
            | Self::Installing
            | Self::Finalizing
            | Self::Installed
            | Self::BootFix
            | Self::Error
            | Self::Cancelled
            | Self::Unmonitored => false,
        }
    }

    /// Whether the count of its hosts moves it on.
    pub fn follows_hosts(self) -> bool {
        match self {
            Self::Preparing | Self::Installing | Self::Finalizing | Self::BootFix => true,
            Self::Draft
            | Self::Installed
            | Self::AddingHosts
            | Self::Error
            | Self::Cancelled
            | Self::Unmonitored => false,
        }
    }

    /// Whether its hosts' findings still change anything: later they are frozen as they were.
    pub fn is_checked(self) -> bool {
        match self {
            Self::Draft | Self::Preparing | Self::AddingHosts => true,
            Self::Installing
            | Self::Finalizing
            | Self::Installed
            | Self::BootFix
            | Self::Error
            | Self::Cancelled
            | Self::Unmonitored => false,
        }
    }

    /// There is an installation that a person can call off, or clean up after.
    pub fn can_be_cancelled(self) -> bool {
        match self {
            Self::Preparing | Self::Installing | Self::BootFix | Self::Finalizing | Self::Error => true,
            Self::Draft | Self::Installed | Self::AddingHosts | Self::Cancelled | Self::Unmonitored => false,
        }
    }

    /// Hosts are being written or have been, and the cluster is not done yet.
    pub fn is_installing(self) -> bool {
        match self {
            Self::Installing | Self::Finalizing | Self::BootFix => true,
            Self::Draft
            | Self::Preparing
            | Self::Installed
            | Self::AddingHosts
            | Self::Error
            | Self::Cancelled
            | Self::Unmonitored => false,
        }
    }
}

/// The status word of the wire, derived from the phase and the gates in this one place.
pub(super) fn status(cluster: &Cluster) -> Status {
    match cluster.phase {
        Phase::Draft => draft_status(cluster.gates, cluster.vip_dhcp_allocation),
        Phase::Preparing => Status::PreparingForInstallation,
        Phase::Installing => Status::Installing,
        Phase::Finalizing => Status::Finalizing,
        Phase::Installed => Status::Installed,
        Phase::AddingHosts => Status::AddingHosts,
        Phase::BootFix => Status::InstallingPendingUserAction,
        Phase::Error => Status::Error,
        Phase::Cancelled => Status::Cancelled,
        Phase::Unmonitored => Status::Unmonitored,
    }
}

fn draft_status(gates: Gates, vip_dhcp: bool) -> Status {
    match (vip_dhcp, gates.vips_defined, gates.inputs, gates.required) {
        (false, false, _, _) | (_, _, false, _) => Status::PendingForInput,
        (true, false, true, _) | (_, true, true, false) => Status::Insufficient,
        (_, true, true, true) => Status::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_asks_for_input_before_it_complains_about_hosts() {
        let gates = |vips_defined, inputs, required| Gates {
            inputs,
            vips_defined,
            required,
        };
        assert_eq!(
            draft_status(gates(false, true, true), false),
            Status::PendingForInput
        );
        assert_eq!(
            draft_status(gates(true, false, true), false),
            Status::PendingForInput
        );
        assert_eq!(
            draft_status(gates(true, true, false), false),
            Status::Insufficient
        );
        assert_eq!(draft_status(gates(true, true, true), false), Status::Ready);
        // Addresses that come by DHCP are waited for, not asked for.
        assert_eq!(draft_status(gates(false, true, true), true), Status::Insufficient);
        assert_eq!(
            draft_status(gates(false, false, true), true),
            Status::PendingForInput
        );
    }

    #[test]
    fn what_clients_read_from_the_word_is_what_the_phase_decides() {
        for phase in Phase::ALL {
            let mut cluster = crate::cluster::diagram::blank(jiff::Timestamp::UNIX_EPOCH);
            cluster.phase = phase;
            let status = cluster.status();
            assert_eq!(status.accepts_hosts(), phase.accepts_hosts(), "{status}");
            let underway = phase == Phase::Preparing || phase.is_installing();
            assert_eq!(status.is_underway(), underway, "{status}");
        }
    }
}
