//! The plain manifests as people apply them, alone and with the components that the guide names.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::chart::{NAMESPACE, admits_pods};
use crate::kube::Cluster;
use crate::project;

pub fn run(cluster: &Cluster) -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let home = temporary.path();
    for folder in ["manifests", "components/openshift", "components/postgres"] {
        copy(
            &project::root().join("deploy").join(folder),
            &home.join("deploy").join(folder),
        )?;
    }
    apply(cluster, &home.join("deploy/manifests"))?;
    admits_pods(cluster)?;
    super::eviction::is_limited(cluster)?;
    super::rights::run(cluster).context("rights of others")?;
    let group = hub(cluster, "/spec/template/spec/securityContext/fsGroup")?;
    ensure!(group == 65532, "the manifests choose group {group}");

    // As the guide has it.
    let guide = fs::read_to_string(project::root().join("docs/guides/kubernetes.md"))?;
    fs::write(home.join("kustomization.yaml"), overlay(&guide)?)?;
    let rendered = cluster.ask(&["kustomize", path(home)?])?;
    ensure!(
        !rendered.contains("PersistentVolumeClaim"),
        "a volume is claimed that nobody uses"
    );
    apply(cluster, home)?;
    admits_pods(cluster)?;
    let security = hub(cluster, "/spec/template/spec/securityContext")?;
    ensure!(
        security["fsGroup"].is_null(),
        "OpenShift refuses this: {security}"
    );
    let containers = hub(cluster, "/spec/template/spec/containers")?;
    let container = &containers[0];
    ensure!(
        container["image"] == "registry.example.com/muster:0.1.0",
        "{container}"
    );
    let addresses = container["args"].as_array().into_iter().flatten();
    let addresses: Vec<_> = addresses
        .filter_map(Value::as_str)
        .filter_map(|word| word.strip_prefix("--base-url="))
        .collect();
    ensure!(
        addresses == ["http://muster.example.com:8090"],
        "the hub's address is {addresses:?}"
    );
    let database = &container["env"][0]["valueFrom"]["secretKeyRef"]["name"];
    ensure!(
        database == "muster-database",
        "the database's address comes from {database}"
    );
    let volumes = hub(cluster, "/spec/template/spec/volumes")?;
    let data = volumes
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["name"] == "data");
    ensure!(data.is_some_and(|data| data["emptyDir"].is_object()), "{volumes}");
    Ok(())
}

/// The block of the guide that is a kustomization.
fn overlay(guide: &str) -> Result<&str> {
    let mut blocks = guide.split("```\n").skip(1).step_by(2);
    blocks
        .find(|block| block.contains("kind: Kustomization"))
        .context("the guide shows no overlay")
}

fn apply(cluster: &Cluster, folder: &Path) -> Result<()> {
    // Helm was here before, and its words stay with the volume it left.
    cluster.ask(&["apply", "--server-side", "--force-conflicts", "-k", path(folder)?])?;
    Ok(())
}

fn hub(cluster: &Cluster, pointer: &str) -> Result<Value> {
    let words = [
        "get",
        "deployment",
        "muster",
        "--namespace",
        NAMESPACE,
        "--output=json",
    ];
    let deployment: Value = serde_json::from_str(&cluster.ask(&words)?)?;
    Ok(deployment.pointer(pointer).cloned().unwrap_or_default())
}

fn path(folder: &Path) -> Result<&str> {
    folder.to_str().context("a strange path")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overlay_is_the_block_that_says_so() {
        let guide = "a\n```\nkubectl\n```\nb\n```\nkind: Kustomization\n```\n";
        assert_eq!(overlay(guide).unwrap(), "kind: Kustomization\n");
        assert!(overlay("kind: Kustomization").is_err());
    }
}
