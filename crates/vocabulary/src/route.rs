//! How a host comes back to the free pool, and what its status says about that.

use crate::host::HostStatus;

crate::words! {
    /// The way back of a host that was taken from its cluster.
    pub enum Route {
        /// Its agent still runs and registers again.
        AgentRestart = "agent-restart",
        /// Somebody, or a BMC, boots the discovery image.
        Boot = "boot",
        /// The installed system fetches the discovery image and reboots into it.
        Reclaim = "reclaim",
    }
}

impl HostStatus {
    /// The way back as it concerns whoever looks after the machine. One that shall be booted may have an agent that registers
    /// before anybody comes; a boot does no harm then.
    pub fn way_back(self) -> Option<Route> {
        match self {
            Self::Unbinding => Some(Route::AgentRestart),
            Self::UnbindingPendingUserAction => Some(Route::Boot),
            Self::Reclaiming | Self::ReclaimingRebooting => Some(Route::Reclaim),
            Self::Discovering
            | Self::Known
            | Self::Disconnected
            | Self::Insufficient
            | Self::Disabled
            | Self::PreparingForInstallation
            | Self::PreparingFailed
            | Self::PreparingSuccessful
            | Self::PendingForInput
            | Self::Installing
            | Self::InstallingInProgress
            | Self::InstallingPendingUserAction
            | Self::ResettingPendingUserAction
            | Self::Installed
            | Self::Cancelled
            | Self::Error
            | Self::Resetting
            | Self::AddedToExistingCluster
            | Self::DiscoveringUnbound
            | Self::KnownUnbound
            | Self::DisconnectedUnbound
            | Self::InsufficientUnbound
            | Self::DisabledUnbound
            | Self::Binding => None,
        }
    }

    /// A system runs on it that can bring it back by itself when it is asked to.
    pub fn can_reclaim(self) -> bool {
        self.is_installed()
    }

    /// Whoever looks after the machine is to boot the discovery image on it, so that it comes back.
    pub fn is_to_be_fetched(self) -> bool {
        self.way_back() == Some(Route::Boot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_on_its_way_has_a_way_and_no_other_has_one() {
        for status in HostStatus::ALL {
            assert_eq!(status.way_back().is_some(), status.is_returning(), "{status}");
            assert!(
                !status.is_to_be_fetched() || status.awaits_discovery(),
                "{status}"
            );
        }
    }
}
