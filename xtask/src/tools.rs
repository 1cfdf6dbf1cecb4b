//! What the chores need beyond cargo: found, or installed by package name when it is missing.

mod apt;
mod python;
mod server;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, project};

pub use python::Python;

/// This machine cannot provide something, and nothing we may do would change that. Suites that need it are skipped.
#[derive(Debug)]
pub struct Unavailable(pub String);

impl std::fmt::Display for Unavailable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// A C compiler, for the parts of our dependencies written in C.
pub fn ensure_compiler() -> Result<()> {
    if process::succeeds(Command::new("cc").arg("--version")) {
        return Ok(());
    }
    apt::install(&["build-essential"])
}

/// The formatter and the linter of the toolchain in use.
pub fn ensure_rust_components() -> Result<()> {
    for component in ["fmt", "clippy"] {
        if process::succeeds(project::cargo().args([component, "--version"])) {
            continue;
        }
        let name = if component == "fmt" { "rustfmt" } else { component };
        println!("installing {name} with rustup");
        let mut rustup = Command::new("rustup");
        process::output(
            rustup
                .current_dir(project::root())
                .args(["component", "add", name]),
        )
        .with_context(|| format!("cargo {component} is missing"))?;
    }
    Ok(())
}

/// The directory with `initdb`, `postgres` and `psql`.
pub fn ensure_postgres() -> Result<PathBuf> {
    server::ensure_postgres()
}

/// A Python environment with the clients of the test suites.
pub fn ensure_python() -> Result<Python> {
    python::ensure()
}
