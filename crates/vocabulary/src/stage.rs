//! The stages of an installation: those of a host, and those in which an installed cluster becomes a working one.

use crate::word::questions;

crate::words! {
    /// Stages of a host's installation.
    #[cfg_attr(feature = "openapi", schema(as = HostStage))]
    pub enum Stage {
        Starting = "Starting installation",
        WaitingForControlPlane = "Waiting for control plane",
        WaitingForBootkube = "Waiting for bootkube",
        WaitingForController = "Waiting for controller",
        Installing = "Installing",
        Writing = "Writing image to disk",
        Copying = "Copying registry data to disk",
        Rebooting = "Rebooting",
        WaitingForIgnition = "Waiting for ignition",
        Configuring = "Configuring",
        Joined = "Joined",
        Done = "Done",
        Failed = "Failed",
    }
}

questions! {
    Stage:
    /// From the reboot on, the discovery agent is gone by design and silence means nothing.
    agent_is_gone {
        yes: Rebooting WaitingForIgnition Configuring Joined Done;
        no: Starting WaitingForControlPlane WaitingForBootkube WaitingForController Installing Writing Copying Failed;
    }

    /// It is a node of its cluster.
    has_joined {
        yes: Joined Done;
        no: Starting WaitingForControlPlane WaitingForBootkube WaitingForController Installing Writing Copying
            Rebooting WaitingForIgnition Configuring Failed;
    }

    /// Nothing goes on here before others have come further.
    waits_for_others {
        yes:
            WaitingForControlPlane WaitingForBootkube WaitingForController;
        no:
            Starting Installing Writing Copying Rebooting WaitingForIgnition Configuring Joined Done Failed;
    }

    /// The cluster's own controller takes over from the host that started the control plane.
    has_handed_over {
        yes:
            WaitingForController Rebooting Configuring Joined Done;
        no:
            Starting WaitingForControlPlane WaitingForBootkube Installing Writing Copying WaitingForIgnition
            Failed;
    }
}

// In the order in which the cluster's controller reports them.
crate::words! {
    /// Stages of a cluster's last phase.
    pub enum FinalizingStage {
        ClusterOperators = "Waiting for cluster operators",
        RouterCa = "Adding router ca",
        OlmManifests = "Applying olm manifests",
        OlmCsvInit = "Waiting for olm operators csv initialization",
        OlmCsv = "Waiting for olm operators csv",
        OlmSetupJobs = "Waiting for OLM operator setup jobs",
        Done = "Done",
    }
}
