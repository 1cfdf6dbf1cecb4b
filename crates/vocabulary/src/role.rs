//! What a host is to its cluster.

crate::words! {
    /// Roles a person may choose for a host.
    #[cfg_attr(feature = "openapi", schema(as = HostRoleChoice))]
    #[derive(Default)]
    pub enum Role {
        #[default]
        AutoAssign = "auto-assign",
        Master = "master",
        Arbiter = "arbiter",
        Worker = "worker",
    }
}

crate::words! {
    /// What a host is installed as; each of them has an Ignition config of its own.
    pub enum InstallRole {
        /// A master that starts the control plane for the others, then joins it.
        Bootstrap = "bootstrap",
        Master = "master",
        Worker = "worker",
        Arbiter = "arbiter",
    }
}

impl Role {
    /// What a host with this role is installed as; one whose role was never decided becomes a worker.
    pub fn installed_as(self) -> InstallRole {
        match self {
            Self::Master => InstallRole::Master,
            Self::Arbiter => InstallRole::Arbiter,
            Self::Worker | Self::AutoAssign => InstallRole::Worker,
        }
    }
}
