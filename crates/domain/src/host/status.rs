//! The 28 status words of the wire, derived from phase and facts in this one place.

use super::{Host, Media, Phase};

pub use muster_vocabulary::HostStatus as Status;

/// How far discovery has come, the same question for free and lent hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Discovery {
    Silent,
    Looking,
    TooSmall,
    NeedsInput,
    Ready,
}

pub fn of(host: &Host) -> Status {
    match host.phase {
        Phase::Discovery => match (host.is_free(), discovery(host)) {
            (true, Discovery::Silent) => Status::DisconnectedUnbound,
            (true, Discovery::Looking) => Status::DiscoveringUnbound,
            (true, Discovery::TooSmall | Discovery::NeedsInput) => Status::InsufficientUnbound,
            (true, Discovery::Ready) => Status::KnownUnbound,
            (false, Discovery::Silent) => Status::Disconnected,
            (false, Discovery::Looking) => Status::Discovering,
            (false, Discovery::TooSmall) => Status::Insufficient,
            (false, Discovery::NeedsInput) => Status::PendingForInput,
            (false, Discovery::Ready) => Status::Known,
        },
        Phase::Binding => Status::Binding,
        Phase::Unbinding => Status::Unbinding,
        Phase::ReturnPending => Status::UnbindingPendingUserAction,
        Phase::Reclaiming => Status::Reclaiming,
        Phase::ReclaimRebooting => Status::ReclaimingRebooting,
        Phase::Preparing => Status::PreparingForInstallation,
        Phase::Prepared => Status::PreparingSuccessful,
        Phase::PrepareFailed => Status::PreparingFailed,
        Phase::Installing => Status::Installing,
        Phase::InProgress => Status::InstallingInProgress,
        Phase::BootFix => Status::InstallingPendingUserAction,
        Phase::Installed => Status::Installed,
        Phase::Added => Status::AddedToExistingCluster,
        Phase::Failed => Status::Error,
        Phase::Cancelled => Status::Cancelled,
        Phase::Resetting => Status::Resetting,
        Phase::ResetPending => Status::ResettingPendingUserAction,
    }
}

fn discovery(host: &Host) -> Discovery {
    let gates = host.gates;
    if !host.connected || host.media == Media::Disconnected {
        return Discovery::Silent;
    }
    if host.installer_may_run {
        // Somebody may still be writing to its disk: it is not offered to anyone before that is stopped.
        return Discovery::Looking;
    }
    if gates.inventory_fully_truncated {
        // Such a host can be read well enough to know that it cannot be judged.
        return Discovery::TooSmall;
    }
    if !gates.inventory {
        return Discovery::Looking;
    }
    if !gates.min_hardware {
        return Discovery::TooSmall;
    }
    if host.is_free() {
        return Discovery::Ready;
    }
    if gates.vsphere_disks && !gates.inputs {
        return Discovery::NeedsInput;
    }
    if !gates.vsphere_disks || !gates.sufficient || gates.disk_speed == super::Outcome::Failed {
        return Discovery::TooSmall;
    }
    Discovery::Ready
}

#[cfg(test)]
mod tests;
