//! The health checks of our kinds as Argo CD wants them: keys of one ConfigMap.

use std::fs;

use anyhow::{Context, Result};

use super::Fresh;
use crate::project;

const HEADER: &str = "\
# Written by `cargo xtask gen` from deploy/argocd/health. Put into a running Argo CD with:
#   kubectl --namespace argocd patch configmap argocd-cm --patch-file deploy/argocd/argocd-cm.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels:
    app.kubernetes.io/name: argocd-cm
    app.kubernetes.io/part-of: argocd
data:
";

pub fn files() -> Result<Vec<Fresh>> {
    let folder = project::root().join("deploy/argocd/health");
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut scripts = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let kind = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        scripts.push((kind, fs::read_to_string(&path)?));
    }
    scripts.sort();
    Ok(vec![Fresh::new("deploy/argocd/argocd-cm.yaml", render(&scripts))])
}

fn render(scripts: &[(String, String)]) -> String {
    let mut text = HEADER.to_owned();
    for (kind, script) in scripts {
        text += &format!("  resource.customizations.health.{kind}: |\n");
        for line in script.lines() {
            text += format!("    {line}").trim_end();
            text += "\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_script_comes_back_from_the_config_map_as_it_was() {
        let script = "local a = 1\n\nif a then\n  return a\nend\n";
        let text = render(&[("a.b_C".into(), script.into())]);
        let map: Value = serde_norway::from_str(&text).unwrap();
        assert_eq!(map["data"]["resource.customizations.health.a.b_C"], script);
    }
}
