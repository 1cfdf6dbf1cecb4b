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

/// Cuts what `muster operator crds` printed into files of a folder, named after group and kind.
pub fn files(printed: &[u8], folder: &str) -> Result<Vec<Fresh>> {
    let text = std::str::from_utf8(printed)?;
    documents(text).map(|document| file(&document, folder)).collect()
}

/// Only what `--hive` adds.
pub fn added(all: &[u8], own: &[u8], folder: &str) -> Result<Vec<Fresh>> {
    let own = files(own, folder)?;
    let mut added = files(all, folder)?;
    added.retain(|file| !own.iter().any(|known| known.path == file.path));
    Ok(added)
}

fn file(document: &str, folder: &str) -> Result<Fresh> {
    let definition: Definition = serde_norway::from_str(document).context("a CRD that is not one")?;
    if definition.kind != "CustomResourceDefinition" {
        bail!("`muster operator crds` printed a {}", definition.kind);
    }
    let Spec { group, names } = definition.spec;
    Ok(Fresh::new(
        format!("{folder}/{group}_{}.yaml", names.plural),
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
        let both = format!("---\n{one}---\n{two}");
        let paths = |files: Vec<Fresh>| files.into_iter().map(|file| file.path).collect::<Vec<_>>();
        let all = files(both.as_bytes(), "here").unwrap();
        assert_eq!(paths(all), ["here/a.b_cs.yaml", "here/a.b_ds.yaml"]);
        let more = added(both.as_bytes(), one.as_bytes(), "there").unwrap();
        assert_eq!(paths(more), ["there/a.b_ds.yaml"]);
    }
}
