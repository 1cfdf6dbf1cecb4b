//! Which work an agent is given at each poll, per state.

use super::{Host, Kind, LogsInfo, Status};

/// What the agent does, and whether it goes on afterwards.
pub use muster_vocabulary::{PostStepAction as After, StepType as Step};

/// An agent that still differs after it was asked so often to replace itself runs an alias of the same image; it is left
/// alone.
pub const UPGRADE_ATTEMPTS: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orders {
    pub steps: &'static [Step],
    /// Never 0 together with `Continue`: the agent would poll in a hot loop.
    pub next_poll_seconds: i64,
    pub after: After,
}

const fn go_on(steps: &'static [Step]) -> Orders {
    Orders {
        steps,
        next_poll_seconds: 60,
        after: After::Continue,
    }
}

const fn slowly(steps: &'static [Step]) -> Orders {
    Orders {
        steps,
        next_poll_seconds: 120,
        after: After::Continue,
    }
}

/// The answer to a host that was deleted while its agent runs: it registers anew, or finds its pool gone. Nobody can
/// wait for its answer, so it is given a moment to stop an installer that its cluster may have left behind.
pub const GONE: Orders = Orders {
    steps: &[StopInstallation],
    next_poll_seconds: 5,
    after: After::Exit,
};

/// The answer to an agent that must register again.
const START_OVER: Orders = Orders {
    steps: &[],
    next_poll_seconds: 0,
    after: After::Exit,
};

/// A running installer is stopped first, and its end is waited for.
const STOP_FIRST: Orders = Orders {
    steps: &[StopInstallation],
    next_poll_seconds: 5,
    after: After::Continue,
};

use Step::*;

pub fn orders(host: &Host) -> Orders {
    let day_two = host.kind == Kind::AddToExistingClusterHost;
    let logs_wanted = host.logs.collected_at.is_none() && host.logs.info != LogsInfo::Completed;
    match host.status() {
        Status::Discovering if host.installer_may_run => go_on(&[StopInstallation, Inventory]),
        Status::DiscoveringUnbound if host.installer_may_run => {
            go_on(&[StopInstallation, Inventory, NtpSynchronizer])
        }
        Status::UnbindingPendingUserAction | Status::ResettingPendingUserAction if host.installer_may_run => {
            STOP_FIRST
        }
        // It got lost on its way back, and is not there before it has registered.
        Status::DiscoveringUnbound | Status::InsufficientUnbound | Status::KnownUnbound
            if host.returning.is_some() =>
        {
            START_OVER
        }
        // An agent that still runs from the discovery image needs no person to boot it.
        Status::ResettingPendingUserAction if !host.agent_is_gone() => START_OVER,
        Status::Discovering if day_two => go_on(&[Inventory, NtpSynchronizer, DomainResolution]),
        Status::Discovering => go_on(&[Inventory]),
        Status::Known if day_two => go_on(&[
            ConnectivityCheck,
            ApiVipConnectivityCheck,
            TangConnectivityCheck,
            Inventory,
            NtpSynchronizer,
            DomainResolution,
        ]),
        Status::Known => go_on(&[
            ConnectivityCheck,
            TangConnectivityCheck,
            FreeNetworkAddresses,
            DhcpLeaseAllocate,
            Inventory,
            NtpSynchronizer,
            DomainResolution,
            VerifyVips,
        ]),
        Status::Insufficient if day_two => go_on(&[
            Inventory,
            ConnectivityCheck,
            ApiVipConnectivityCheck,
            TangConnectivityCheck,
            NtpSynchronizer,
            DomainResolution,
        ]),
        Status::PendingForInput if day_two => go_on(&[
            Inventory,
            ConnectivityCheck,
            ApiVipConnectivityCheck,
            TangConnectivityCheck,
        ]),
        Status::Insufficient | Status::PendingForInput => go_on(&[
            Inventory,
            ConnectivityCheck,
            TangConnectivityCheck,
            FreeNetworkAddresses,
            DhcpLeaseAllocate,
            NtpSynchronizer,
            DomainResolution,
            VerifyVips,
        ]),
        Status::Disconnected | Status::DisconnectedUnbound => slowly(&[Inventory]),
        Status::PreparingForInstallation => go_on(&[
            DhcpLeaseAllocate,
            InstallationDiskSpeedCheck,
            ContainerImageAvailability,
        ]),
        Status::Installing if day_two => go_on(&[Install]),
        Status::Installing => go_on(&[Install, DhcpLeaseAllocate]),
        Status::InstallingInProgress if day_two => go_on(&[]),
        Status::InstallingInProgress => go_on(&[DhcpLeaseAllocate]),
        Status::Error | Status::Cancelled if logs_wanted => slowly(&[LogsGather, StopInstallation]),
        Status::Error | Status::Cancelled => slowly(&[StopInstallation]),
        Status::Disabled | Status::DisabledUnbound | Status::Resetting => slowly(&[]),
        Status::Binding | Status::Unbinding | Status::UnbindingPendingUserAction => START_OVER,
        Status::DiscoveringUnbound | Status::InsufficientUnbound | Status::KnownUnbound => {
            go_on(&[Inventory, NtpSynchronizer])
        }
        Status::Reclaiming => go_on(&[DownloadBootArtifacts]),
        Status::ReclaimingRebooting => Orders {
            steps: &[RebootForReclaim],
            next_poll_seconds: 120,
            after: After::Exit,
        },
        Status::PreparingFailed
        | Status::PreparingSuccessful
        | Status::InstallingPendingUserAction
        | Status::ResettingPendingUserAction
        | Status::Installed
        | Status::AddedToExistingCluster => go_on(&[]),
    }
}
