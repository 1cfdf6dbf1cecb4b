//! The hub's words for the state of a cluster, as far as they are told apart here.

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
    pub fn of(word: &str) -> Self {
        match word {
            "Cluster" => Self::New,
            "AddHostsCluster" => Self::AddsHosts,
            _ => Self::Other,
        }
    }
}

impl Stage {
    pub fn of(word: &str) -> Self {
        match word {
            "insufficient" => Self::Insufficient,
            "pending-for-input" => Self::PendingForInput,
            "ready" => Self::Ready,
            "preparing-for-installation" => Self::Preparing,
            "installing" => Self::Installing,
            "finalizing" => Self::Finalizing,
            "installing-pending-user-action" => Self::PendingUserAction,
            "installed" => Self::Installed,
            "adding-hosts" => Self::AddingHosts,
            "error" => Self::Error,
            "cancelled" => Self::Cancelled,
            _ => Self::Other,
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
