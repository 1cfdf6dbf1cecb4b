//! The agent as discovery images carry it: one small program that needs nothing of the system it runs on.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::Unavailable;
use crate::{process, project};

const GNU: &str = "x86_64-unknown-linux-gnu";

/// Optimised as a whole, from nothing, on two slow cores.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// It is downloaded by every machine at every boot.
const LARGEST_BYTES: u64 = 10_000_000;

/// Builds the static agent (nothing to do when it is fresh) and says where it is.
pub fn build() -> Result<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Unavailable("the agent of test images is built on x86_64 only".into()).into());
    }
    super::ensure_compiler()?;
    let built = match super::ensure_static_target() {
        Ok(target) => compile(&target, ""),
        Err(error) => {
            println!("no musl here ({error:#}); the agent is linked with the system's C library instead");
            compile(GNU, "-C target-feature=+crt-static")
        }
    }?;
    let bytes = fs::metadata(&built)
        .with_context(|| format!("cargo built no {}", built.display()))?
        .len();
    ensure!(
        bytes < LARGEST_BYTES,
        "the agent has grown to {bytes} bytes; discovery images should stay below {LARGEST_BYTES}"
    );
    Ok(built)
}

fn compile(target: &str, flags: &str) -> Result<PathBuf> {
    let mut command = project::cargo();
    command.args(["build", "--profile", "agent", "--package", "muster-agent"]);
    command.args(["--bin", "muster-agent", "--target", target]);
    if !flags.is_empty() {
        command.env("RUSTFLAGS", flags);
    }
    process::run(&mut command, LIMIT)?;
    Ok(project::target().join(target).join("agent/muster-agent"))
}
