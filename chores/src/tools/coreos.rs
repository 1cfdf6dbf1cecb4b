//! The tool CoreOS itself uses on its images, built from its published source: what it reads in ours must be right.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{apt, turn};
use crate::{process, project};

/// The one whose images are our fixtures.
const VERSION: &str = "0.27.0";
/// About 280 packages: four minutes of CPU time.
const LIMIT: Duration = Duration::from_secs(20 * 60);

/// The program; once for each version.
pub fn ensure() -> Result<PathBuf> {
    let home = project::cache()
        .join("tools")
        .join(format!("coreos-installer-{VERSION}"));
    let program = home.join("bin/coreos-installer");
    let _turn = turn::take("coreos-installer")?;
    if program.exists() {
        return Ok(program);
    }
    ensure_libraries()?;
    println!("building coreos-installer {VERSION}, once");
    let work = home.join("build");
    let mut install = project::cargo();
    install
        // Not optimised: it looks at files of a megabyte.
        .args(["install", "--quiet", "--locked", "--debug", "--no-track"])
        .args(["--version", VERSION, "coreos-installer", "--root"])
        .arg(&home)
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_TARGET_DIR", &work);
    process::run(&mut install, LIMIT).context("building coreos-installer")?;
    fs::remove_dir_all(&work).context("removing what building left behind")?;
    Ok(program)
}

fn ensure_libraries() -> Result<()> {
    let has = |library: &str| process::succeeds(Command::new("pkg-config").args(["--exists", library]));
    if has("openssl") && has("libzstd") {
        return Ok(());
    }
    apt::install(&["pkg-config", "libssl-dev", "libzstd-dev"])
}
