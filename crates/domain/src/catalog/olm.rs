//! How the add-ons on offer are brought along: the package each is subscribed to, and where it lives.

/// One add-on, by the name of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    pub name: &'static str,
    pub package: &'static str,
    /// The catalogue of packages it is in.
    pub source: &'static str,
    pub home: Home,
}

/// The namespace a package is installed to, and what it watches from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// Watches its own namespace only.
    Own(&'static str),
    /// Has a namespace of its own and watches all.
    Wide(&'static str),
    /// Lives where every cluster keeps operators that watch all namespaces.
    Shared,
}

/// It and its group of operators are part of every cluster.
pub const SHARED_NAMESPACE: &str = "openshift-operators";

impl Home {
    pub fn namespace(self) -> &'static str {
        match self {
            Self::Own(namespace) | Self::Wide(namespace) => namespace,
            Self::Shared => SHARED_NAMESPACE,
        }
    }
}

const REDHAT: &str = "redhat-operators";
const CERTIFIED: &str = "certified-operators";
/// Several operators that keep nodes alive share it.
const AVAILABILITY: &str = "openshift-workload-availability";

use Home::{Own, Shared, Wide};

const fn redhat(name: &'static str, package: &'static str, home: Home) -> Package {
    Package {
        name,
        package,
        source: REDHAT,
        home,
    }
}

/// Of every name in [`super::OPERATORS`], in the same order.
pub const PACKAGES: [Package; 28] = [
    Package {
        name: "amd-gpu",
        package: "amd-gpu-operator",
        source: CERTIFIED,
        home: Wide("kube-amd-gpu"),
    },
    redhat("authorino", "authorino-operator", Shared),
    redhat(
        "cluster-observability",
        "cluster-observability-operator",
        Wide("openshift-cluster-observability-operator"),
    ),
    redhat("cnv", "kubevirt-hyperconverged", Own("openshift-cnv")),
    redhat(
        "fence-agents-remediation",
        "fence-agents-remediation",
        Wide(AVAILABILITY),
    ),
    redhat("kmm", "kernel-module-management", Wide("openshift-kmm")),
    redhat(
        "kube-descheduler",
        "cluster-kube-descheduler-operator",
        Own("openshift-kube-descheduler-operator"),
    ),
    redhat("loki", "loki-operator", Wide("openshift-operators-redhat")),
    redhat("lso", "local-storage-operator", Own("openshift-local-storage")),
    redhat("lvm", "lvms-operator", Own("openshift-storage")),
    redhat("mce", "multicluster-engine", Own("multicluster-engine")),
    redhat("metallb", "metallb-operator", Wide("metallb-system")),
    redhat("mtv", "mtv-operator", Own("openshift-mtv")),
    redhat("nmstate", "kubernetes-nmstate-operator", Own("openshift-nmstate")),
    redhat("node-feature-discovery", "nfd", Own("openshift-nfd")),
    redhat(
        "node-healthcheck",
        "node-healthcheck-operator",
        Wide(AVAILABILITY),
    ),
    redhat(
        "node-maintenance",
        "node-maintenance-operator",
        Wide(AVAILABILITY),
    ),
    redhat(
        "numaresources",
        "numaresources-operator",
        Own("openshift-numaresources"),
    ),
    Package {
        name: "nvidia-gpu",
        package: "gpu-operator-certified",
        source: CERTIFIED,
        home: Own("nvidia-gpu-operator"),
    },
    redhat("oadp", "redhat-oadp-operator", Own("openshift-adp")),
    redhat("odf", "odf-operator", Own("openshift-storage")),
    redhat("openshift-ai", "rhods-operator", Wide("redhat-ods-operator")),
    redhat("openshift-logging", "cluster-logging", Own("openshift-logging")),
    redhat(
        "osc",
        "sandboxed-containers-operator",
        Own("openshift-sandboxed-containers-operator"),
    ),
    redhat("pipelines", "openshift-pipelines-operator-rh", Shared),
    redhat(
        "self-node-remediation",
        "self-node-remediation",
        Wide(AVAILABILITY),
    ),
    redhat("serverless", "serverless-operator", Wide("openshift-serverless")),
    redhat("servicemesh", "servicemeshoperator", Shared),
];

pub fn package(name: &str) -> Option<&'static Package> {
    PACKAGES.iter().find(|package| package.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::OPERATORS;
    use std::collections::BTreeMap;

    #[test]
    fn every_name_on_offer_can_be_brought_along() {
        let names = PACKAGES.map(|package| package.name);
        assert_eq!(names, OPERATORS);
    }

    /// A namespace has one group of operators, so all who live there watch the same.
    #[test]
    fn neighbours_watch_the_same() {
        let mut homes: BTreeMap<&str, Home> = BTreeMap::new();
        for package in PACKAGES {
            let home = *homes.entry(package.home.namespace()).or_insert(package.home);
            assert_eq!(home, package.home, "{}", package.name);
        }
    }
}
