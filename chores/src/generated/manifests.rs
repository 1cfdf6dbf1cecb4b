//! Plain manifests for people who do not use Helm: the chart with its default values.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Fresh, documents};
use crate::{process, project, tools};

/// Release and namespace of those who do not choose.
const NAME: &str = "muster";

const HEADER: &str = "# Written by `cargo xtask gen` from deploy/chart/muster.\n";

const NAMESPACE: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: muster
  labels:
    pod-security.kubernetes.io/enforce: restricted
";

pub fn files() -> Result<Vec<Fresh>> {
    let mut helm = Command::new(tools::ensure_helm()?);
    helm.args(["template", NAME, "--namespace", NAME])
        .arg(project::root().join("deploy/chart/muster"));
    let rendered = process::output(&mut helm)?;
    let mut files = split(&String::from_utf8_lossy(&rendered))?;
    files.insert("namespace.yaml".into(), NAMESPACE.into());
    let list: String = files.keys().map(|name| format!("  - {name}\n")).collect();
    let kustomization =
        format!("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n{list}");
    files.insert("kustomization.yaml".into(), kustomization);
    let fresh = |(name, text): (String, String)| {
        Fresh::new(format!("deploy/manifests/{name}"), format!("{HEADER}{text}"))
    };
    Ok(files.into_iter().map(fresh).collect())
}

/// Helm's output by the template each document came from, without the label that says Helm looks after it.
fn split(rendered: &str) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::<String, String>::new();
    for document in documents(rendered) {
        let (source, text) = document.split_once('\n').context("half a document")?;
        let Some(path) = source.strip_prefix("# Source: ") else {
            bail!("helm does not say where `{source}` comes from");
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let kept = text
            .lines()
            .filter(|line| line.trim() != "app.kubernetes.io/managed-by: Helm");
        let text: String = kept.map(|line| format!("{line}\n")).collect();
        match files.get_mut(name) {
            Some(before) => *before += &format!("---\n{text}"),
            None => _ = files.insert(name.to_owned(), text),
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_go_to_the_file_of_their_template() {
        let rendered = "---\n# Source: muster/templates/a.yaml\nx: 1\n  app.kubernetes.io/managed-by: Helm\n\
                        ---\n# Source: muster/templates/b.yaml\nx: 2\n---\n# Source: muster/templates/a.yaml\nx: 3\n";
        let files = split(rendered).unwrap();
        assert_eq!(files["a.yaml"], "x: 1\n---\nx: 3\n");
        assert_eq!(files["b.yaml"], "x: 2\n");
        assert!(split("x: 1\ny: 2\n").is_err());
    }
}
