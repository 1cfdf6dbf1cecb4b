//! The few phases a host can be in; being bound, connected and ready are facts beside them.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Runs the discovery image, free or lent; nothing has been written to its disk.
    Discovery,
    /// Lent a moment ago; the hub tells its agent to register again under the cluster.
    Binding,
    /// Returned a moment ago; the hub tells its agent to register again as a free host.
    Unbinding,
    /// Returned, but its disk may hold an installed system: somebody must boot the discovery image.
    ReturnPending,
    /// Returned while running the installed system, which now fetches the discovery image.
    Reclaiming,
    ReclaimRebooting,
    /// Last tests before the installation.
    Preparing,
    Prepared,
    PrepareFailed,
    /// The install step is handed out.
    Installing,
    /// The installer has reported at least once.
    InProgress,
    /// It should have booted its disk and did not.
    BootFix,
    Installed,
    /// Installed into a cluster that was already running.
    Added,
    Failed,
    Cancelled,
    Resetting,
    /// Reset; somebody must boot the discovery image.
    ResetPending,
}

impl Phase {
    pub const ALL: [Phase; 18] = [
        Self::Discovery,
        Self::Binding,
        Self::Unbinding,
        Self::ReturnPending,
        Self::Reclaiming,
        Self::ReclaimRebooting,
        Self::Preparing,
        Self::Prepared,
        Self::PrepareFailed,
        Self::Installing,
        Self::InProgress,
        Self::BootFix,
        Self::Installed,
        Self::Added,
        Self::Failed,
        Self::Cancelled,
        Self::Resetting,
        Self::ResetPending,
    ];

    /// Phases of a host that is on its way back: they exist only without a cluster.
    pub fn is_returning(self) -> bool {
        match self {
            Self::Unbinding | Self::ReturnPending | Self::Reclaiming | Self::ReclaimRebooting => true,
            Self::Discovery
            | Self::Binding
            | Self::Preparing
            | Self::Prepared
            | Self::PrepareFailed
            | Self::Installing
            | Self::InProgress
            | Self::BootFix
            | Self::Installed
            | Self::Added
            | Self::Failed
            | Self::Cancelled
            | Self::Resetting
            | Self::ResetPending => false,
        }
    }

    /// Whether the machine tells of its own accord when it is done: while nobody could hear it, its time did not pass.
    pub fn comes_back_by_itself(self) -> bool {
        match self {
            Self::Installing | Self::InProgress | Self::Reclaiming | Self::ReclaimRebooting => true,
            Self::Discovery
            | Self::Binding
            | Self::Unbinding
            | Self::ReturnPending
            | Self::Preparing
            | Self::Prepared
            | Self::PrepareFailed
            | Self::BootFix
            | Self::Installed
            | Self::Added
            | Self::Failed
            | Self::Cancelled
            | Self::Resetting
            | Self::ResetPending => false,
        }
    }

    /// Phases that only a lent host can be in.
    pub fn needs_cluster(self) -> bool {
        !self.is_returning() && self != Self::Discovery
    }
}
