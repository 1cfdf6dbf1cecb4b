//! The rights that a release gives to others than itself: to people of a namespace, and to Cluster API.

use anyhow::{Result, ensure};
use serde_json::json;

use super::chart::{RIGHTS_LIMIT, feed};
use crate::kube::Cluster;
use crate::{process, wait};

const VIEW: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["create", "update", "patch", "delete", "deletecollection"];
/// What Cluster API's contract asks for.
const CAPI: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

const OF_NAMESPACES: &[&str] = &[
    "agents.agent-install.openshift.io",
    "infraenvs.agent-install.openshift.io",
    "nmstateconfigs.agent-install.openshift.io",
    "agentclassifications.agent-install.openshift.io",
    "agentclusterinstalls.extensions.hive.openshift.io",
    "clusterdeployments.hive.openshift.io",
];

const OF_PROVIDER: &[&str] = &[
    "agentclusters.capi-provider.agent-install.openshift.io",
    "agentmachines.capi-provider.agent-install.openshift.io",
    "agentmachinetemplates.capi-provider.agent-install.openshift.io",
];

/// The label by which Cluster API's own role takes others in.
const AGGREGATED: &str = "cluster.x-k8s.io/aggregate-to-manager=true";

/// With a release that has an operator, and with Hive's kinds.
pub fn run(cluster: &Cluster) -> Result<()> {
    for role in ["view", "edit", "cluster-api"] {
        bind(cluster, role)?;
    }
    for kind in [OF_NAMESPACES, OF_PROVIDER].concat() {
        granted(cluster, "view", VIEW, &[kind])?;
        granted(cluster, "edit", EDIT, &[kind])?;
        refused(cluster, "view", EDIT, &[kind])?;
    }
    for kind in OF_PROVIDER {
        granted(cluster, "cluster-api", CAPI, &[kind])?;
    }
    for kind in &OF_PROVIDER[..2] {
        granted(
            cluster,
            "cluster-api",
            &["get", "patch", "update"],
            &[kind, "--subresource=status"],
        )?;
    }
    for kind in OF_NAMESPACES {
        refused(cluster, "cluster-api", CAPI, &[kind])?;
    }
    // It belongs to no namespace: an admin's.
    refused(cluster, "edit", EDIT, &["clusterimagesets.hive.openshift.io"])?;
    takes_part(cluster, true)
}

/// Whether Cluster API finds a role of ours.
pub fn takes_part(cluster: &Cluster, wanted: bool) -> Result<()> {
    let selector = format!("--selector={AGGREGATED}");
    let found = cluster.ask(&["get", "clusterroles", &selector, "--output=name"])?;
    let expected = if wanted {
        "clusterrole.rbac.authorization.k8s.io/muster-cluster-api"
    } else {
        ""
    };
    ensure!(found.trim() == expected, "Cluster API takes in {found:?}");
    Ok(())
}

/// A user who is called like the role and has nothing else.
fn bind(cluster: &Cluster, role: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("test-of-{role}")},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": format!("muster-{role}")},
        "subjects": [{"apiGroup": group, "kind": "User", "name": role}],
    });
    feed(cluster, &["apply", "-f", "-"], &binding.to_string())
}

fn granted(cluster: &Cluster, user: &str, verbs: &[&str], what: &[&str]) -> Result<()> {
    for verb in verbs {
        let right = format!("the right of {user} to {verb} {}", what.join(" "));
        wait::until(&right, RIGHTS_LIMIT, || {
            Ok(may(cluster, user, verb, what).then_some(()))
        })?;
    }
    Ok(())
}

fn refused(cluster: &Cluster, user: &str, verbs: &[&str], what: &[&str]) -> Result<()> {
    for verb in verbs {
        ensure!(
            !may(cluster, user, verb, what),
            "{user} may {verb} {}",
            what.join(" ")
        );
    }
    Ok(())
}

fn may(cluster: &Cluster, user: &str, verb: &str, what: &[&str]) -> bool {
    let user = format!("--as={user}");
    let mut asked = cluster.kubectl();
    asked.args(["auth", "can-i", "--quiet", "--namespace=rack", &user, verb]);
    process::succeeds(asked.args(what))
}
