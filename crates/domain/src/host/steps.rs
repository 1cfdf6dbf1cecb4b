//! Which work an agent is given at each poll, per state.

use super::{Host, Kind, LogsInfo, Status};

/// An agent that still differs after it was asked so often to replace itself runs an alias of the same image; it is left
/// alone.
pub const UPGRADE_ATTEMPTS: u8 = 3;

macro_rules! kinds {
    ($($name:ident => $word:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Step { $($name),* }

        impl Step {
            pub const ALL: &'static [Step] = &[$(Step::$name),*];

            pub fn word(self) -> &'static str {
                match self { $(Step::$name => $word),* }
            }

            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Step::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    ConnectivityCheck => "connectivity-check",
    Execute => "execute",
    Inventory => "inventory",
    Install => "install",
    FreeAddresses => "free-network-addresses",
    DhcpLease => "dhcp-lease-allocate",
    ApiVip => "api-vip-connectivity-check",
    Tang => "tang-connectivity-check",
    Ntp => "ntp-synchronizer",
    DiskSpeed => "installation-disk-speed-check",
    Images => "container-image-availability",
    Domains => "domain-resolution",
    StopInstallation => "stop-installation",
    LogsGather => "logs-gather",
    NextStepRunner => "next-step-runner",
    UpgradeAgent => "upgrade-agent",
    DownloadBootArtifacts => "download-boot-artifacts",
    RebootForReclaim => "reboot-for-reclaim",
    VerifyVips => "verify-vips",
}

/// What the agent does after it has started the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Continue,
    /// End, and register again: the only way to make it report an unchanged inventory once more.
    Exit,
}

impl After {
    pub fn word(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Exit => "exit",
        }
    }
}

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
        Status::DiscoveringUnbound if host.installer_may_run => go_on(&[StopInstallation, Inventory, Ntp]),
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
        Status::Discovering if day_two => go_on(&[Inventory, Ntp, Domains]),
        Status::Discovering => go_on(&[Inventory]),
        Status::Known if day_two => go_on(&[ConnectivityCheck, ApiVip, Tang, Inventory, Ntp, Domains]),
        Status::Known => go_on(&[
            ConnectivityCheck,
            Tang,
            FreeAddresses,
            DhcpLease,
            Inventory,
            Ntp,
            Domains,
            VerifyVips,
        ]),
        Status::Insufficient if day_two => go_on(&[Inventory, ConnectivityCheck, ApiVip, Tang, Ntp, Domains]),
        Status::PendingForInput if day_two => go_on(&[Inventory, ConnectivityCheck, ApiVip, Tang]),
        Status::Insufficient | Status::PendingForInput => go_on(&[
            Inventory,
            ConnectivityCheck,
            Tang,
            FreeAddresses,
            DhcpLease,
            Ntp,
            Domains,
            VerifyVips,
        ]),
        Status::Disconnected | Status::DisconnectedUnbound => slowly(&[Inventory]),
        Status::PreparingForInstallation => go_on(&[DhcpLease, DiskSpeed, Images]),
        Status::Installing if day_two => go_on(&[Install]),
        Status::Installing => go_on(&[Install, DhcpLease]),
        Status::InstallingInProgress if day_two => go_on(&[]),
        Status::InstallingInProgress => go_on(&[DhcpLease]),
        Status::Error | Status::Cancelled if logs_wanted => slowly(&[LogsGather, StopInstallation]),
        Status::Error | Status::Cancelled => slowly(&[StopInstallation]),
        Status::Disabled | Status::DisabledUnbound | Status::Resetting => slowly(&[]),
        Status::Binding | Status::Unbinding | Status::UnbindingPendingUserAction => START_OVER,
        Status::DiscoveringUnbound | Status::InsufficientUnbound | Status::KnownUnbound => {
            go_on(&[Inventory, Ntp])
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
