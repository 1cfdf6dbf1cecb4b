//! The 28 status words of a host, and what they say about it.

use crate::severity::Severity;
use crate::word::questions;

crate::words! {
    /// Where a host is. Its phase and the facts beside it make the word; who reads the word needs neither.
    pub enum HostStatus {
        Discovering = "discovering",
        Known = "known",
        Disconnected = "disconnected",
        Insufficient = "insufficient",
        Disabled = "disabled",
        PreparingForInstallation = "preparing-for-installation",
        PreparingFailed = "preparing-failed",
        PreparingSuccessful = "preparing-successful",
        PendingForInput = "pending-for-input",
        Installing = "installing",
        InstallingInProgress = "installing-in-progress",
        InstallingPendingUserAction = "installing-pending-user-action",
        ResettingPendingUserAction = "resetting-pending-user-action",
        Installed = "installed",
        Cancelled = "cancelled",
        Error = "error",
        Resetting = "resetting",
        AddedToExistingCluster = "added-to-existing-cluster",
        DiscoveringUnbound = "discovering-unbound",
        KnownUnbound = "known-unbound",
        DisconnectedUnbound = "disconnected-unbound",
        InsufficientUnbound = "insufficient-unbound",
        DisabledUnbound = "disabled-unbound",
        Binding = "binding",
        Unbinding = "unbinding",
        UnbindingPendingUserAction = "unbinding-pending-user-action",
        Reclaiming = "reclaiming",
        ReclaimingRebooting = "reclaiming-rebooting",
    }
}

questions! {
    HostStatus:
    /// In the free pool: discovered, and in no cluster.
    is_unbound {
        yes:
            DiscoveringUnbound KnownUnbound DisconnectedUnbound InsufficientUnbound DisabledUnbound;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Installed Cancelled Error Resetting AddedToExistingCluster Binding
            Unbinding UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }

    /// Given back, and on its way to the free pool.
    is_returning {
        yes:
            Unbinding UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Installed Cancelled Error Resetting AddedToExistingCluster
            DiscoveringUnbound KnownUnbound DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding;
    }

    /// Its agent has registered, and has not told what the machine is; free or lent.
    is_discovering {
        yes:
            Discovering DiscoveringUnbound;
        no:
            Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed PreparingSuccessful
            PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Installed Cancelled Error Resetting AddedToExistingCluster KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding UnbindingPendingUserAction
            Reclaiming ReclaimingRebooting;
    }

    /// Nothing is heard of it; free or lent.
    is_disconnected {
        yes:
            Disconnected DisconnectedUnbound;
        no:
            Discovering Known Insufficient Disabled PreparingForInstallation PreparingFailed PreparingSuccessful
            PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Installed Cancelled Error Resetting AddedToExistingCluster
            DiscoveringUnbound KnownUnbound InsufficientUnbound DisabledUnbound Binding Unbinding
            UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }

    /// What its owner asks of it may still change: its role, disk, name and the like.
    may_be_edited {
        yes:
            Discovering Known Disconnected Insufficient PendingForInput DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound Binding;
        no:
            Disabled PreparingForInstallation PreparingFailed PreparingSuccessful Installing
            InstallingInProgress InstallingPendingUserAction ResettingPendingUserAction Installed Cancelled
            Error Resetting AddedToExistingCluster DisabledUnbound Unbinding UnbindingPendingUserAction
            Reclaiming ReclaimingRebooting;
    }

    /// Lent, and no installer was started on it.
    precedes_installation {
        yes:
            Discovering Known Disconnected Insufficient PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Binding;
        no:
            Disabled Installing InstallingInProgress InstallingPendingUserAction ResettingPendingUserAction
            Installed Cancelled Error Resetting AddedToExistingCluster DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Unbinding UnbindingPendingUserAction
            Reclaiming ReclaimingRebooting;
    }

    /// The hardware and settings are good enough for an installation that has not written anything yet.
    is_ready_to_install {
        yes:
            Known PreparingForInstallation PreparingSuccessful;
        no:
            Discovering Disconnected Insufficient Disabled PreparingFailed PendingForInput Installing
            InstallingInProgress InstallingPendingUserAction ResettingPendingUserAction Installed Cancelled
            Error Resetting AddedToExistingCluster DiscoveringUnbound KnownUnbound DisconnectedUnbound
            InsufficientUnbound DisabledUnbound Binding Unbinding UnbindingPendingUserAction Reclaiming
            ReclaimingRebooting;
    }

    /// The installer runs on it, or is about to: its disk is being written.
    is_writing {
        yes:
            Installing InstallingInProgress;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput InstallingPendingUserAction ResettingPendingUserAction Installed
            Cancelled Error Resetting AddedToExistingCluster DiscoveringUnbound KnownUnbound DisconnectedUnbound
            InsufficientUnbound DisabledUnbound Binding Unbinding UnbindingPendingUserAction Reclaiming
            ReclaimingRebooting;
    }

    /// Being installed; perhaps it waits for a person who mends its boot order.
    is_installing {
        yes:
            Installing InstallingInProgress InstallingPendingUserAction;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput ResettingPendingUserAction Installed Cancelled Error Resetting
            AddedToExistingCluster DiscoveringUnbound KnownUnbound DisconnectedUnbound InsufficientUnbound
            DisabledUnbound Binding Unbinding UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }

    /// Its cluster is being installed, or it joins one: from the last tests on until it is done, failed or cancelled.
    belongs_to_an_installation {
        yes:
            PreparingForInstallation PreparingFailed PreparingSuccessful Installing InstallingInProgress
            InstallingPendingUserAction;
        no:
            Discovering Known Disconnected Insufficient Disabled PendingForInput ResettingPendingUserAction
            Installed Cancelled Error Resetting AddedToExistingCluster DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding UnbindingPendingUserAction
            Reclaiming ReclaimingRebooting;
    }

    /// It runs the installed system, as a node of its cluster.
    is_installed {
        yes:
            Installed AddedToExistingCluster;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Cancelled Error Resetting DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding UnbindingPendingUserAction
            Reclaiming ReclaimingRebooting;
    }

    /// Its installation failed.
    is_failed {
        yes:
            Error;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Installed Cancelled Resetting AddedToExistingCluster DiscoveringUnbound
            KnownUnbound DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding
            UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }

    /// Given back or reset; somebody must boot the discovery image on it.
    awaits_discovery {
        yes:
            ResettingPendingUserAction UnbindingPendingUserAction;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            Installed Cancelled Error Resetting AddedToExistingCluster DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding Reclaiming
            ReclaimingRebooting;
    }

    /// It fetches the discovery image itself, and boots it.
    is_reclaiming {
        yes:
            Reclaiming ReclaimingRebooting;
        no:
            Discovering Known Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Installed Cancelled Error Resetting AddedToExistingCluster
            DiscoveringUnbound KnownUnbound DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding
            Unbinding UnbindingPendingUserAction;
    }

    /// Checks, or settings of its cluster, hold it up; free or lent.
    is_held_up {
        yes:
            Insufficient PendingForInput InsufficientUnbound;
        no:
            Discovering Known Disconnected Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Installed Cancelled Error Resetting AddedToExistingCluster
            DiscoveringUnbound KnownUnbound DisconnectedUnbound DisabledUnbound Binding Unbinding
            UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }

    /// Lent, connected, and what the machine is is known; nothing is written to it.
    is_measured {
        yes:
            Known Insufficient PendingForInput;
        no:
            Discovering Disconnected Disabled PreparingForInstallation PreparingFailed PreparingSuccessful
            Installing InstallingInProgress InstallingPendingUserAction ResettingPendingUserAction Installed
            Cancelled Error Resetting AddedToExistingCluster DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding
            UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }

    /// Lent and heard of, with no check in its way: a reset of its cluster starts it over.
    starts_over_with_cluster {
        yes:
            Discovering Known PendingForInput;
        no:
            Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed PreparingSuccessful
            Installing InstallingInProgress InstallingPendingUserAction ResettingPendingUserAction Installed
            Cancelled Error Resetting AddedToExistingCluster DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding
            UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }

    /// Its cluster waits for nothing more from it.
    keeps_nobody_waiting {
        yes:
            Known Installed AddedToExistingCluster;
        no:
            Discovering Disconnected Insufficient Disabled PreparingForInstallation PreparingFailed
            PreparingSuccessful PendingForInput Installing InstallingInProgress InstallingPendingUserAction
            ResettingPendingUserAction Cancelled Error Resetting DiscoveringUnbound KnownUnbound
            DisconnectedUnbound InsufficientUnbound DisabledUnbound Binding Unbinding
            UnbindingPendingUserAction Reclaiming ReclaimingRebooting;
    }
}

impl HostStatus {
    /// How loudly the history says that a host entered this state.
    pub fn severity(self) -> Severity {
        match self {
            Self::Error => Severity::Error,
            Self::Disconnected
            | Self::DisconnectedUnbound
            | Self::Insufficient
            | Self::InsufficientUnbound
            | Self::InstallingPendingUserAction
            | Self::UnbindingPendingUserAction => Severity::Warning,
            Self::Discovering
            | Self::Known
            | Self::Disabled
            | Self::PreparingForInstallation
            | Self::PreparingFailed
            | Self::PreparingSuccessful
            | Self::PendingForInput
            | Self::Installing
            | Self::InstallingInProgress
            | Self::ResettingPendingUserAction
            | Self::Installed
            | Self::Cancelled
            | Self::Resetting
            | Self::AddedToExistingCluster
            | Self::DiscoveringUnbound
            | Self::KnownUnbound
            | Self::DisabledUnbound
            | Self::Binding
            | Self::Unbinding
            | Self::Reclaiming
            | Self::ReclaimingRebooting => Severity::Info,
        }
    }
}

crate::words! {
    /// Whether a host belongs to the installation of its cluster, or joins a cluster that runs ("day 2").
    #[derive(Default)]
    pub enum HostKind {
        #[default]
        Host = "Host",
        AddToExistingClusterHost = "AddToExistingClusterHost",
    }
}

crate::words! {
    /// Whether the discovery media can be read; there is no word until it was lost once.
    pub enum MediaStatus {
        Connected = "connected",
        Disconnected = "disconnected",
    }
}
