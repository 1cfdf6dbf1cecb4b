//! The commands of the guides for clusters, as they are written there.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::kube::Cluster;
use crate::project;

const GUIDES: [&str; 3] = [
    "docs/guides/kubernetes.md",
    "docs/guides/gitops.md",
    "deploy/chart/muster/README.md",
];

/// What becomes of a command, by its first words.
enum Fate {
    Run,
    /// The release is there already.
    Try,
    /// It is tested elsewhere, or needs what a test has not: a registry, or nodes.
    Skip,
}

const FATES: &[(&str, Fate)] = &[
    ("helm install ", Fate::Try),
    ("helm upgrade ", Fate::Run),
    ("kubectl apply --server-side -f deploy/crds", Fate::Run),
    ("kubectl --namespace muster create secret ", Fate::Run),
    ("kubectl --namespace argocd patch configmap ", Fate::Run),
    ("kubectl apply -k deploy/manifests", Fate::Skip),
    ("kubectl --namespace muster rollout status ", Fate::Skip),
    ("kubectl get agentserviceconfig ", Fate::Skip),
    (
        "kubectl --namespace baremetal-operator-system create secret ",
        Fate::Skip,
    ),
    ("muster operator run --converged ", Fate::Skip),
    ("cargo xtask image ", Fate::Skip),
    ("cargo build --profile agent ", Fate::Skip),
    ("podman ", Fate::Skip),
];

/// With a release that is installed.
pub fn run(cluster: &Cluster, helm: &Path) -> Result<()> {
    cluster.ask(&["create", "namespace", "argocd"])?;
    cluster.ask(&["create", "configmap", "argocd-cm", "--namespace", "argocd"])?;
    for guide in GUIDES {
        let text = fs::read_to_string(project::root().join(guide)).with_context(|| guide.to_owned())?;
        let commands = commands(&text);
        ensure!(!commands.is_empty(), "{guide} shows no command");
        for command in &commands {
            carry_out(cluster, helm, command).with_context(|| format!("{guide}: {command}"))?;
        }
    }
    has_flags(cluster)
}

/// What the guides set last is what the operator is started with.
fn has_flags(cluster: &Cluster) -> Result<()> {
    let args = "--output=jsonpath={.spec.template.spec.containers[0].args}";
    let args = cluster.ask(&["get", "deployment", "muster", "--namespace", "muster", args])?;
    for flag in ["\"--converged\"", "\"--ironic-config="] {
        ensure!(args.contains(flag), "{flag} is not among {args}");
    }
    Ok(())
}

fn carry_out(cluster: &Cluster, helm: &Path, command: &str) -> Result<()> {
    let fate = FATES.iter().find(|(words, _)| command.starts_with(words));
    let line = match fate {
        None => bail!("nobody knows whether this works: run it here, or say why not"),
        Some((_, Fate::Skip)) => return Ok(()),
        Some((_, Fate::Try)) => format!("{command} --dry-run=client"),
        Some((_, Fate::Run)) => command.to_owned(),
    };
    let here = helm.parent().context("helm is nowhere")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(
        [cluster.bin.clone(), here]
            .into_iter()
            .chain(std::env::split_paths(&path)),
    )?;
    // Helm keeps its own files under these; a test must not touch those of its user.
    let home = project::cache().join("helm-home");
    let mut shell = Command::new("bash");
    let done = project::without_proxy(&mut shell)
        .args(["-e", "-c", &line])
        .current_dir(project::root())
        .env("PATH", path)
        .env("KUBECONFIG", &cluster.admin)
        .env("HELM_CACHE_HOME", home.join("cache"))
        .env("HELM_CONFIG_HOME", home.join("config"))
        .env("HELM_DATA_HOME", home.join("data"))
        .stdin(Stdio::null())
        .output()?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

/// What stands in blocks without a language and begins with the name of a program; lines that go on are joined.
fn commands(guide: &str) -> Vec<String> {
    let plain = guide.replace(" \\\n", " ");
    let mut inside = None;
    let mut found = Vec::new();
    for line in plain.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(language), None) => inside = Some(language),
            (Some(_), Some(_)) => inside = None,
            (None, Some("")) if PROGRAMS.iter().any(|name| line.starts_with(name)) => {
                found.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            (None, _) => {}
        }
    }
    found
}

const PROGRAMS: [&str; 5] = ["helm ", "kubectl ", "cargo ", "podman ", "muster "];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn commands_are_found_in_plain_blocks_and_joined() {
        let guide = "helm no\n```\nhelm install a \\\n  --set b\nkind: X\n```\n```yaml\nkubectl no\n```\n```\nkubectl get\n```\n";
        assert_eq!(commands(guide), ["helm install a --set b", "kubectl get"]);
    }

    #[test]
    fn argo_cd_is_told_to_leave_alone_what_the_operator_writes_into_specs() {
        let guide = fs::read_to_string(project::root().join("docs/guides/gitops.md")).unwrap();
        let mut blocks = guide
            .split("```yaml\n")
            .filter_map(|rest| rest.split("```").next());
        let block = blocks.find(|block| block.contains("ignoreDifferences")).unwrap();
        let told: Value = serde_norway::from_str(block).unwrap();
        for (kind, written) in [
            ("ClusterDeployment", &["installed", "clusterMetadata"][..]),
            (
                "BareMetalHost",
                &["image", "online", "automatedCleaningMode", "customDeploy"],
            ),
        ] {
            let rules = told["spec"]["ignoreDifferences"].as_array().unwrap();
            let rule = rules.iter().find(|rule| rule["kind"] == kind).unwrap();
            let pointers = rule["jsonPointers"].as_array().unwrap().iter();
            let pointers = pointers.filter_map(|one| one.as_str()?.strip_prefix("/spec/"));
            assert_eq!(pointers.collect::<Vec<_>>(), written);
        }
        let options = &told["spec"]["syncPolicy"]["syncOptions"];
        assert_eq!(options[0], "RespectIgnoreDifferences=true");
    }

    #[test]
    fn every_guide_can_be_found() {
        let root = project::root();
        let guides = fs::read_dir(root.join("docs/guides")).unwrap();
        let guides: Vec<_> = guides.map(|guide| guide.unwrap().file_name()).collect();
        for (list, folder) in [("README.md", "docs/guides"), ("docs/README.md", "guides")] {
            let text = fs::read_to_string(root.join(list)).unwrap();
            for guide in &guides {
                let link = format!("]({folder}/{})", guide.to_string_lossy());
                assert!(text.contains(&link), "{list} leaves out {guide:?}");
            }
        }
    }

    #[test]
    fn the_guides_have_no_command_that_nobody_knows() {
        for guide in GUIDES {
            let text = fs::read_to_string(project::root().join(guide)).unwrap();
            for command in commands(&text) {
                assert!(
                    FATES.iter().any(|(words, _)| command.starts_with(words)),
                    "{guide}: {command}"
                );
            }
        }
    }
}
