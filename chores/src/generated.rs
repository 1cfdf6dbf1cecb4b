//! `cargo xtask gen`: the files that are printed by the binary itself or rendered from others, so that they cannot lag
//! behind the code.

mod argocd;
mod crds;
mod manifests;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::project::{self, Profile};
use crate::{process, tools};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask gen            write the files
  cargo xtask gen --check    change nothing, fail when a file is stale (what CI runs)")]
pub struct Gen {
    /// Compare only; name the stale files and fail
    #[arg(long)]
    check: bool,
}

/// A file and the words after `muster gen` that print it.
struct Generated {
    topic: &'static [&'static str],
    path: &'static str,
}

const FILES: &[Generated] = &[
    Generated {
        topic: &["openapi"],
        path: "docs/openapi.json",
    },
    Generated {
        topic: &["cli"],
        path: "docs/cli.md",
    },
    Generated {
        topic: &["states", "host"],
        path: "docs/states/host.md",
    },
    Generated {
        topic: &["states", "cluster"],
        path: "docs/states/cluster.md",
    },
];

/// Folders in which nothing else may be: what is no longer generated goes.
const FOLDERS: &[&str] = &[CRDS, HIVE_CRDS, CHART_CRDS, "deploy/manifests"];

const CRDS: &str = "deploy/crds";

/// Apart, because Hive brings its own where it runs.
const HIVE_CRDS: &str = "deploy/crds-hive";

/// Helm takes definitions from the chart's own folder only, and a link does not survive every way of copying a clone.
const CHART_CRDS: &str = "deploy/chart/muster/crds";

/// A file as it should be; the path is seen from the top of the clone.
pub struct Fresh {
    path: String,
    text: Vec<u8>,
}

impl Fresh {
    fn new(path: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }
}

pub fn command(args: &Gen) -> Result<()> {
    tools::ensure_compiler()?;
    let binary = project::build(Profile::Dev)?;
    let root = project::root();
    let files = fresh(&binary)?;
    let mut stale = Vec::new();
    for Fresh { path, text } in &files {
        let file = root.join(path);
        if fs::read(&file).is_ok_and(|now| now == *text) {
            continue;
        }
        stale.push(path.clone());
        if !args.check {
            write(&file, text)?;
            println!("wrote {path}");
        }
    }
    for path in leftover(&root, &files)? {
        if !args.check {
            fs::remove_file(root.join(&path))?;
            println!("removed {path}");
        }
        stale.push(path);
    }
    if args.check && !stale.is_empty() {
        bail!(
            "stale: {}; run `cargo xtask gen` and commit the result",
            stale.join(", ")
        );
    }
    Ok(())
}

fn fresh(binary: &Path) -> Result<Vec<Fresh>> {
    let mut files = Vec::new();
    for file in FILES {
        files.push(Fresh::new(
            file.path,
            printed(binary, &[&["gen"], file.topic].concat())?,
        ));
    }
    let own = printed(binary, &["operator", "crds"])?;
    let all = printed(binary, &["operator", "crds", "--hive"])?;
    let definitions = crds::files(&own, CRDS)?;
    files.extend(crds::added(&all, &own, HIVE_CRDS)?);
    for Fresh { path, text } in &definitions {
        files.push(Fresh::new(path.replacen(CRDS, CHART_CRDS, 1), text.clone()));
    }
    files.extend(definitions);
    files.extend(argocd::files()?);
    files.extend(manifests::files()?);
    Ok(files)
}

fn printed(binary: &Path, words: &[&str]) -> Result<Vec<u8>> {
    process::output(Command::new(binary).args(words).env("NO_COLOR", "1"))
}

/// The documents of a YAML stream, each with its last newline.
fn documents(stream: &str) -> impl Iterator<Item = String> {
    let stream = stream.strip_prefix("---\n").unwrap_or(stream);
    let documents = stream
        .split("\n---\n")
        .map(|text| format!("{}\n", text.trim_end()));
    documents.filter(|text| !text.trim().is_empty())
}

/// What lies in our folders and is not generated.
fn leftover(root: &Path, files: &[Fresh]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
            if !files.iter().any(|file| file.path == path) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn write(path: &Path, fresh: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, fresh).with_context(|| format!("writing {}", path.display()))
}

/// What CI runs.
pub fn check() -> Result<()> {
    command(&Gen { check: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_longer_generated_is_found() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("deploy/crds")).unwrap();
        for name in ["kept.yaml", "old.yaml"] {
            fs::write(root.path().join("deploy/crds").join(name), "").unwrap();
        }
        let files = [Fresh::new("deploy/crds/kept.yaml", "")];
        assert_eq!(leftover(root.path(), &files).unwrap(), ["deploy/crds/old.yaml"]);
    }
}
