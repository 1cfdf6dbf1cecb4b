//! The status words of a cluster, and what they say about it.

use crate::word::questions;

crate::words! {
    /// Where a cluster is.
    pub enum ClusterStatus {
        /// More about it must be said.
        PendingForInput = "pending-for-input",
        /// Its hosts, or its settings, do not pass the checks yet.
        Insufficient = "insufficient",
        Ready = "ready",
        /// Its files are made and its hosts tested for the last time; no disk is written yet.
        PreparingForInstallation = "preparing-for-installation",
        Installing = "installing",
        /// Its hosts are installed; its services start.
        Finalizing = "finalizing",
        Installed = "installed",
        Error = "error",
        /// It runs, and takes on more hosts.
        AddingHosts = "adding-hosts",
        Cancelled = "cancelled",
        /// A host did not boot its disk: a person must look.
        InstallingPendingUserAction = "installing-pending-user-action",
        /// Nobody watches it: a placeholder.
        Unmonitored = "unmonitored",
    }
}

questions! {
    ClusterStatus:
    /// An installation was started and is not over.
    is_underway {
        yes:
            PreparingForInstallation Installing InstallingPendingUserAction Finalizing;
        no:
            PendingForInput Insufficient Ready Installed AddingHosts Error Cancelled Unmonitored;
    }

    /// Hosts may join.
    accepts_hosts {
        yes:
            PendingForInput Insufficient Ready AddingHosts;
        no:
            PreparingForInstallation Installing InstallingPendingUserAction Finalizing Installed Error Cancelled
            Unmonitored;
    }

    /// What was made for its installation is there: from the moment hosts are written until it is gone.
    has_files {
        yes:
            Installing InstallingPendingUserAction Finalizing Installed AddingHosts Error Cancelled;
        no:
            PendingForInput Insufficient Ready PreparingForInstallation Unmonitored;
    }

    /// Its API can be reached with its kubeconfig; before, nobody could use it.
    has_kubeconfig {
        yes:
            Finalizing Installed AddingHosts Error Cancelled;
        no:
            PendingForInput Insufficient Ready PreparingForInstallation Installing InstallingPendingUserAction
            Unmonitored;
    }
}

crate::words! {
    /// What a cluster is to the hub.
    #[derive(Default)]
    pub enum ClusterKind {
        #[default]
        Cluster = "Cluster",
        /// A running cluster that only takes on more hosts.
        AddHostsCluster = "AddHostsCluster",
        /// A placeholder for an image that works without the hub.
        DisconnectedCluster = "DisconnectedCluster",
    }
}

crate::words! {
    /// How the last preparation of an installation ended.
    #[derive(Default)]
    pub enum PreparationStatus {
        #[default]
        NotStarted = "not_started",
        Failed = "failed",
        Success = "success",
    }
}
