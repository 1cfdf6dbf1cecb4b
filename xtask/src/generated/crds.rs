//! The definitions of our Kubernetes kinds, a file each.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Fresh, documents};

#[derive(Deserialize)]
struct Definition {
    kind: String,
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
}

#[derive(Deserialize)]
struct Names {
    plural: String,
}

/// Cuts what `muster operator crds` printed into files named after group and kind.
pub fn files(printed: &[u8]) -> Result<Vec<Fresh>> {
    let text = std::str::from_utf8(printed)?;
    documents(text).map(|document| file(&document)).collect()
}

fn file(document: &str) -> Result<Fresh> {
    let definition: Definition = serde_norway::from_str(document).context("a CRD that is not one")?;
    if definition.kind != "CustomResourceDefinition" {
        bail!("`muster operator crds` printed a {}", definition.kind);
    }
    let Spec { group, names } = definition.spec;
    Ok(Fresh::new(
        format!("deploy/crds/{group}_{}.yaml", names.plural),
        format!("# Written by `cargo xtask gen`.\n{document}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_definition_gets_a_file_of_its_own() {
        let one = "apiVersion: v1\nkind: CustomResourceDefinition\nspec: {group: a.b, names: {plural: cs}}\n";
        let two = one.replace("cs", "ds");
        let files = files(format!("---\n{one}---\n{two}").as_bytes()).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["deploy/crds/a.b_cs.yaml", "deploy/crds/a.b_ds.yaml"]);
    }
}
