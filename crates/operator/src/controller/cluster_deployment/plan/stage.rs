//! The hub's words for the state of a cluster, as far as this controller distinguishes them.

use muster_vocabulary::{ClusterKind, ClusterStatus, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Insufficient,
    PendingForInput,
    Ready,
    Preparing,
    Installing,
    Finalizing,
    PendingUserAction,
    Installed,
    AddingHosts,
    Error,
    Cancelled,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is to be installed, or is being installed.
    New,
    /// It runs, and hosts are added to it.
    AddsHosts,
    Other,
}

impl Kind {
    pub fn of(word: &Word<ClusterKind>) -> Self {
        match word.known() {
            Some(ClusterKind::Cluster) => Self::New,
            Some(ClusterKind::AddHostsCluster) => Self::AddsHosts,
            Some(ClusterKind::DisconnectedCluster) | None => Self::Other,
        }
    }
}

impl Stage {
    pub fn of(word: &Word<ClusterStatus>) -> Self {
        match word.known() {
            Some(ClusterStatus::Insufficient) => Self::Insufficient,
            Some(ClusterStatus::PendingForInput) => Self::PendingForInput,
            Some(ClusterStatus::Ready) => Self::Ready,
            Some(ClusterStatus::PreparingForInstallation) => Self::Preparing,
            Some(ClusterStatus::Installing) => Self::Installing,
            Some(ClusterStatus::Finalizing) => Self::Finalizing,
            Some(ClusterStatus::InstallingPendingUserAction) => Self::PendingUserAction,
            Some(ClusterStatus::Installed) => Self::Installed,
            Some(ClusterStatus::AddingHosts) => Self::AddingHosts,
            Some(ClusterStatus::Error) => Self::Error,
            Some(ClusterStatus::Cancelled) => Self::Cancelled,
            Some(ClusterStatus::Unmonitored) | None => Self::Other,
        }
    }

    /// The hub takes changes of the cluster's settings.
    pub fn takes_settings(self) -> bool {
        match self {
            Self::Insufficient | Self::PendingForInput | Self::Ready | Self::AddingHosts => true,
            Self::Preparing
            | Self::Installing
            | Self::Finalizing
            | Self::PendingUserAction
            | Self::Installed
            | Self::Error
            | Self::Cancelled
            | Self::Other => false,
        }
    }

    /// There is an installation that has to be cancelled before the cluster can go.
    pub fn can_be_cancelled(self) -> bool {
        match self {
            Self::Preparing | Self::Installing | Self::Finalizing | Self::PendingUserAction | Self::Error => {
                true
            }
            Self::Insufficient
            | Self::PendingForInput
            | Self::Ready
            | Self::Installed
            | Self::AddingHosts
            | Self::Cancelled
            | Self::Other => false,
        }
    }

    pub fn is_completed(self) -> bool {
        match self {
            Self::Installed | Self::AddingHosts => true,
            Self::Insufficient
            | Self::PendingForInput
            | Self::Ready
            | Self::Preparing
            | Self::Installing
            | Self::Finalizing
            | Self::PendingUserAction
            | Self::Error
            | Self::Cancelled
            | Self::Other => false,
        }
    }
}
