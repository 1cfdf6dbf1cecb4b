//! The words that settings of clusters and hosts are chosen from.

use crate::Role;
use crate::word::questions;

crate::words! {
    /// Whether the control plane is more than one host.
    #[derive(Default)]
    pub enum HighAvailabilityMode {
        #[default]
        Full = "Full",
        None = "None",
    }
}

crate::words! {
    /// A choice of roles.
    pub enum RoleSet {
        None = "none",
        Masters = "masters",
        Arbiters = "arbiters",
        Workers = "workers",
        MastersArbiters = "masters,arbiters",
        MastersWorkers = "masters,workers",
        ArbitersWorkers = "arbiters,workers",
        MastersArbitersWorkers = "masters,arbiters,workers",
        All = "all",
    }
}

questions! {
    RoleSet:
    has_masters {
        yes: Masters MastersArbiters MastersWorkers MastersArbitersWorkers All;
        no: None Arbiters Workers ArbitersWorkers;
    }

    has_arbiters {
        yes: Arbiters MastersArbiters ArbitersWorkers MastersArbitersWorkers All;
        no: None Masters Workers MastersWorkers;
    }

    has_workers {
        yes: Workers MastersWorkers ArbitersWorkers MastersArbitersWorkers All;
        no: None Masters Arbiters MastersArbiters;
    }
}

impl RoleSet {
    /// `None`: the role decides, and is not known yet.
    pub fn covers(self, role: Role) -> Option<bool> {
        match role {
            Role::AutoAssign => (self == Self::All).then_some(true),
            Role::Master => Some(self.has_masters()),
            Role::Arbiter => Some(self.has_arbiters()),
            Role::Worker => Some(self.has_workers()),
        }
    }
}

crate::words! {
    /// The network plug-in.
    pub enum NetworkType {
        OpenShiftSDN = "OpenShiftSDN",
        OVNKubernetes = "OVNKubernetes",
        CiscoACI = "CiscoACI",
        Cilium = "Cilium",
        Calico = "Calico",
        None = "None",
    }
}

questions! {
    NetworkType:
    /// OpenShift does not bring it: somebody uploads the manifests that install it.
    comes_from_elsewhere {
        yes: CiscoACI Cilium Calico None;
        no: OpenShiftSDN OVNKubernetes;
    }
}

crate::words! {
    /// Whether the platform brings its own cloud controller.
    #[derive(Default)]
    pub enum CloudControllerManager {
        #[default]
        Unset = "",
        External = "External",
    }
}

crate::words! {
    /// Where the keys of encrypted disks come from.
    #[derive(Default)]
    pub enum DiskEncryptionMode {
        #[default]
        Tpmv2 = "tpmv2",
        Tang = "tang",
    }
}

crate::words! {
    /// Who balances traffic to the control plane.
    #[derive(Default)]
    pub enum LoadBalancerType {
        #[default]
        ClusterManaged = "cluster-managed",
        UserManaged = "user-managed",
    }
}

crate::words! {
    /// Whether the certificate of a host's power controller is checked.
    #[derive(Default)]
    pub enum CertificateVerification {
        #[default]
        Enabled = "Enabled",
        Disabled = "Disabled",
    }
}

crate::words! {
    /// What a disk is for.
    #[derive(Default)]
    pub enum DiskRole {
        #[default]
        None = "none",
        Install = "install",
    }
}

#[cfg(test)]
mod tests {
    use super::RoleSet;
    use crate::Role;

    #[test]
    fn a_set_of_roles_covers_those_that_its_word_names() {
        for set in RoleSet::ALL {
            for (role, plural) in [
                (Role::Master, "masters"),
                (Role::Arbiter, "arbiters"),
                (Role::Worker, "workers"),
            ] {
                let named = set.word().split(',').any(|part| part == plural || part == "all");
                assert_eq!(set.covers(role), Some(named), "{set} {role}");
            }
            assert_eq!(
                set.covers(Role::AutoAssign).is_some(),
                set.word() == "all",
                "{set}"
            );
        }
    }
}
