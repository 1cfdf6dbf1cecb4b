//! Manifests that bring chosen operators along: a namespace, its group of operators, and a subscription.

use super::manifests::{Manifest, text};
use crate::catalog::olm::{self, Home, Package};
use crate::cluster::Cluster;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Everything that the cluster's chosen operators need to be installed. What they manage is for their users to create.
pub fn of(cluster: &Cluster) -> Vec<Manifest> {
    let chosen: Vec<&Package> = cluster.chosen_operators().filter_map(olm::package).collect();
    // Operators that share a namespace share its group, too: a second one would stop them all.
    let homes: BTreeMap<&str, Home> = chosen
        .iter()
        .map(|package| (package.home.namespace(), package.home))
        .collect();
    let mut all: Vec<Manifest> = homes.into_values().flat_map(home).collect();
    all.extend(chosen.into_iter().map(subscription));
    all
}

fn manifest(name: String, value: &Value) -> Manifest {
    Manifest {
        folder: "openshift",
        name: format!("50-{name}.yaml"),
        text: text(value),
    }
}

fn home(home: Home) -> Vec<Manifest> {
    let (namespace, spec) = match home {
        Home::Own(namespace) => (namespace, json!({ "targetNamespaces": [namespace] })),
        Home::Wide(namespace) => (namespace, json!({})),
        Home::Shared => return Vec::new(),
    };
    let place = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let group = json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": { "name": namespace, "namespace": namespace },
        "spec": spec,
    });
    vec![
        manifest(format!("{namespace}-namespace"), &place),
        manifest(format!("{namespace}-operator-group"), &group),
    ]
}

/// Without a channel the package's own default is followed, which suits the release.
fn subscription(package: &Package) -> Manifest {
    let value = json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": { "name": package.package, "namespace": package.home.namespace() },
        "spec": {
            "name": package.package,
            "source": package.source,
            "sourceNamespace": "openshift-marketplace",
            "installPlanApproval": "Automatic",
        },
    });
    manifest(format!("{}-subscription", package.name), &value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Operator;
    use jiff::Timestamp;

    fn made(names: &[&str]) -> Vec<(String, Value)> {
        let mut cluster = crate::cluster::diagram::blank(Timestamp::UNIX_EPOCH);
        cluster.operators = names
            .iter()
            .map(|name| Operator {
                name: (*name).into(),
                builtin: *name == "console",
                ..Operator::default()
            })
            .collect();
        let read = |manifest: Manifest| {
            let value = serde_norway::from_str(&manifest.text).expect("YAML");
            (format!("{}/{}", manifest.folder, manifest.name), value)
        };
        of(&cluster).into_iter().map(read).collect()
    }

    #[test]
    fn a_chosen_operator_is_subscribed_to_in_a_namespace_of_its_own() {
        let all = made(&["console", "lso"]);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "openshift/50-openshift-local-storage-namespace.yaml",
                "openshift/50-openshift-local-storage-operator-group.yaml",
                "openshift/50-lso-subscription.yaml"
            ]
        );
        assert_eq!(all[1].1["spec"]["targetNamespaces"][0], "openshift-local-storage");
        assert_eq!(all[2].1["spec"]["name"], "local-storage-operator");
        assert_eq!(all[2].1["metadata"]["namespace"], "openshift-local-storage");
    }

    #[test]
    fn operators_that_share_a_namespace_share_its_group() {
        let all = made(&["node-healthcheck", "self-node-remediation", "servicemesh"]);
        let count = |kind: &str| all.iter().filter(|(_, value)| value["kind"] == kind).count();
        assert_eq!(
            (count("Namespace"), count("OperatorGroup"), count("Subscription")),
            (1, 1, 3)
        );
    }

    #[test]
    fn a_cluster_without_a_choice_gets_none() {
        assert_eq!(made(&["console"]), []);
    }
}
