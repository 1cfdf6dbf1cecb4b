//! What agents are told to do.

crate::words! {
    /// What the hub can tell an agent to do.
    pub enum StepType {
        ConnectivityCheck = "connectivity-check",
        Execute = "execute",
        Inventory = "inventory",
        Install = "install",
        FreeNetworkAddresses = "free-network-addresses",
        DhcpLeaseAllocate = "dhcp-lease-allocate",
        ApiVipConnectivityCheck = "api-vip-connectivity-check",
        TangConnectivityCheck = "tang-connectivity-check",
        NtpSynchronizer = "ntp-synchronizer",
        InstallationDiskSpeedCheck = "installation-disk-speed-check",
        ContainerImageAvailability = "container-image-availability",
        DomainResolution = "domain-resolution",
        StopInstallation = "stop-installation",
        LogsGather = "logs-gather",
        NextStepRunner = "next-step-runner",
        UpgradeAgent = "upgrade-agent",
        DownloadBootArtifacts = "download-boot-artifacts",
        RebootForReclaim = "reboot-for-reclaim",
        VerifyVips = "verify-vips",
    }
}

crate::words! {
    /// Whether the agent's runner goes on or ends.
    #[derive(Default)]
    pub enum PostStepAction {
        // End, and register again: the only way to make it report an unchanged inventory once more.
        Exit = "exit",
        #[default]
        Continue = "continue",
    }
}
