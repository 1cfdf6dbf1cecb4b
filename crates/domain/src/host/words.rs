//! What a person reads as `status_info`: one sentence per state, with the next action where there is one.

use super::{Host, Media, Status};

/// The usual text of a status; where the text depends on the occasion, the lifecycle gives it.
pub fn status_text(status: Status) -> &'static str {
    match status {
        Status::Discovering | Status::DiscoveringUnbound => "Waiting for the host to report its hardware.",
        Status::Known => "Ready to be installed.",
        Status::KnownUnbound => "Free and ready to be bound to a cluster.",
        Status::Disconnected | Status::DisconnectedUnbound => {
            "The host has stopped polling the hub; check its power and network, or boot the discovery image again."
        }
        Status::Insufficient => "Cannot be installed yet.",
        Status::InsufficientUnbound => "Does not meet the minimum for any role.",
        Status::Disabled | Status::DisabledUnbound => "Disabled.",
        Status::PreparingForInstallation => "Running the last tests before the installation.",
        Status::PreparingFailed => "The last tests before the installation failed.",
        Status::PreparingSuccessful => "Prepared; waiting for the cluster to start the installation.",
        Status::PendingForInput => "Waiting for input about the cluster.",
        Status::Installing => "The installation is starting.",
        Status::InstallingInProgress => "Installing.",
        Status::InstallingPendingUserAction => {
            "The host did not boot from its disk; fix the boot order and reboot it."
        }
        Status::ResettingPendingUserAction => "Reset; boot the discovery image to start over.",
        Status::Installed => "Done",
        Status::Cancelled => "The installation was cancelled.",
        Status::Error => "The installation failed.",
        Status::Resetting => "Resetting.",
        Status::AddedToExistingCluster => {
            "Rebooted from its disk; the hub hears nothing more from it. Check the cluster for the node and for requests to approve."
        }
        Status::Binding => "Bound; waiting for the agent to register with its cluster.",
        Status::Unbinding => "Unbound; waiting for the agent to register as a free host.",
        Status::UnbindingPendingUserAction => {
            "Unbound; boot the discovery image to return the host to the free pool."
        }
        Status::Reclaiming => "Fetching the discovery image to return to the free pool.",
        Status::ReclaimingRebooting => "Rebooting into the discovery image.",
    }
}

/// The same for one host, whose state may be what it is for one of several reasons.
pub fn of(host: &Host) -> &'static str {
    match host.status() {
        Status::Discovering | Status::DiscoveringUnbound if host.installer_may_run => INSTALLER_MAY_RUN,
        Status::Disconnected | Status::DisconnectedUnbound if host.media == Media::Disconnected => MEDIA_LOST,
        status => status_text(status),
    }
}

/// Said of a host to whose disk an installer of its last cluster may still be writing.
pub const INSTALLER_MAY_RUN: &str = "Waiting for the agent to answer the step stop-installation: an installer may still be writing to the disk.";

/// Said of a host whose media cannot be read any more.
pub const MEDIA_LOST: &str =
    "The host cannot read its discovery media any more; attach it again and reboot the host.";

pub fn status_changed(name: &str, info: &str, from: Status, to: Status) -> String {
    format!("Host {name}: {} -> {} ({info})", from.word(), to.word())
}
