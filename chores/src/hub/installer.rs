//! A program in the place of `openshift-install`, so that hubs can make the files of clusters without a release.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};

const PROGRAM: &str = include_str!("openshift-install.sh");

/// Writes the program into a directory and gives the arguments with which a hub uses it.
pub fn put(dir: &Path) -> Result<Vec<OsString>> {
    let path = dir.join("openshift-install");
    fs::write(&path, PROGRAM).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(vec!["--openshift-install".into(), path.into()])
}
