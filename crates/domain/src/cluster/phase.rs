//! The few phases a cluster can be in, and the status word of the wire derived from them.

use super::{Cluster, Gates};
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

/// The status word of the wire.
pub fn status(cluster: &Cluster) -> &'static str {
    match cluster.phase {
        Phase::Draft => draft_status(cluster.gates, cluster.vip_dhcp_allocation),
        Phase::Preparing => "preparing-for-installation",
        Phase::Installing => "installing",
        Phase::Finalizing => "finalizing",
        Phase::Installed => "installed",
        Phase::AddingHosts => "adding-hosts",
        Phase::BootFix => "installing-pending-user-action",
        Phase::Error => "error",
        Phase::Cancelled => "cancelled",
        Phase::Unmonitored => "unmonitored",
    }
}

fn draft_status(gates: Gates, vip_dhcp: bool) -> &'static str {
    match (vip_dhcp, gates.vips_defined, gates.inputs, gates.required) {
        (false, false, _, _) | (_, _, false, _) => "pending-for-input",
        (true, false, true, _) | (_, true, true, false) => "insufficient",
        (_, true, true, true) => "ready",
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
        assert_eq!(draft_status(gates(false, true, true), false), "pending-for-input");
        assert_eq!(draft_status(gates(true, false, true), false), "pending-for-input");
        assert_eq!(draft_status(gates(true, true, false), false), "insufficient");
        assert_eq!(draft_status(gates(true, true, true), false), "ready");
        // Addresses that come by DHCP are waited for, not asked for.
        assert_eq!(draft_status(gates(false, true, true), true), "insufficient");
        assert_eq!(draft_status(gates(false, false, true), true), "pending-for-input");
    }
}
