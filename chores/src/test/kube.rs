//! The operator's tests, with an API server that knows our kinds and gives the operator the rights it ships with.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::house::House;
use crate::kube::{Cluster, OPERATOR};
use crate::project;

const PACKAGE: &str = "muster-operator";

/// Where the tests find a server they may use as they like.
const ADMIN: &str = "MUSTER_TEST_KUBECONFIG";

/// The same server for a user who has the operator's shipped rights only.
const AS_OPERATOR: &str = "MUSTER_TEST_KUBECONFIG_OPERATOR";

/// The program itself, for tests of hub and operator in one process.
const PROGRAM: &str = "MUSTER_TEST_PROGRAM";

/// The programs, for tests that stop and start a server of their own.
const PROGRAMS: &str = "MUSTER_TEST_KUBE_BIN";

/// These tests wait for servers most of their time: more of them at once than there are cores.
const THREADS: &str = "6";

pub fn run(house: &mut House) -> Result<()> {
    // A server given by whoever runs us is used as it is.
    if env::var_os(ADMIN).is_some() {
        return house.tests(PACKAGE, &[]);
    }
    let program = house.binary()?.display().to_string();
    let cluster = house.kube()?;
    prepare(cluster)?;
    let text = |path: &Path| path.display().to_string();
    let (admin, operator, bin) = (text(&cluster.admin), text(&cluster.operator), text(&cluster.bin));
    let environment = [
        (ADMIN, admin.as_str()),
        (AS_OPERATOR, &operator),
        (PROGRAMS, &bin),
        ("RUST_TEST_THREADS", THREADS),
        (PROGRAM, &program),
    ];
    house.tests(PACKAGE, &environment)
}

/// Our kinds, those of others that ours refer to, and the rights of the operator.
pub fn prepare(cluster: &Cluster) -> Result<()> {
    let root = project::root();
    cluster.apply(&root.join("deploy/crds"))?;
    cluster.apply(&root.join("deploy/crds-hive"))?;
    cluster.apply(&root.join("crates/operator/tests/crds"))?;
    cluster.await_kinds()?;
    let home = tempfile::tempdir()?;
    let file = home.path().join("rights.json");
    fs::write(&file, rights(&root.join("deploy/manifests"))?.to_string())?;
    cluster.apply(&file)
}

/// The shipped roles, bound to the test's user. The right to hold a Lease ships for one namespace; tests make their
/// own namespaces, so here it holds in all.
fn rights(manifests: &Path) -> Result<Value> {
    let mut items = Vec::new();
    for (file, name) in [
        ("clusterrole.yaml", "muster-operator"),
        ("role.yaml", "muster-operator-leases"),
    ] {
        let path = manifests.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let shipped: Value = serde_norway::from_str(&text)?;
        let rules = shipped["rules"].clone();
        let api = "rbac.authorization.k8s.io/v1";
        items.push(
            json!({"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
        );
        items.push(json!({
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": OPERATOR}],
        }));
    }
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operators_user_gets_the_shipped_rights_and_no_others() {
        let rights = rights(&project::root().join("deploy/manifests")).unwrap();
        let items = rights["items"].as_array().unwrap();
        assert_eq!(items.len(), 4);
        for item in items {
            assert!(item["kind"] == "ClusterRole" || item["subjects"][0]["name"] == OPERATOR);
            let wildcard = item["rules"].to_string().contains("\"*\"");
            assert!(!wildcard, "a rule that allows everything: {item}");
        }
    }
}
