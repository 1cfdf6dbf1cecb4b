//! `cargo xtask gen`: the files that are printed by the binary itself, so that they cannot lag behind the code.

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

pub fn command(args: &Gen) -> Result<()> {
    tools::ensure_compiler()?;
    let binary = project::build(Profile::Dev)?;
    let mut stale = Vec::new();
    for file in FILES {
        let fresh = process::output(
            Command::new(&binary)
                .arg("gen")
                .args(file.topic)
                .env("NO_COLOR", "1"),
        )?;
        let path = project::root().join(file.path);
        if fs::read(&path).is_ok_and(|now| now == fresh) {
            continue;
        }
        stale.push(file.path);
        if !args.check {
            write(&path, &fresh)?;
            println!("wrote {}", file.path);
        }
    }
    if args.check && !stale.is_empty() {
        bail!(
            "stale: {}; run `cargo xtask gen` and commit the result",
            stale.join(", ")
        );
    }
    Ok(())
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
