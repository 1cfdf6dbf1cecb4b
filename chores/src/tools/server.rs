//! PostgreSQL's server programs, from the Debian package.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::apt;
use crate::process;

/// Debian keeps each major version in a directory of its own, off the PATH.
const HOME: &str = "/usr/lib/postgresql";

/// Read by the package while it is installed: we want the programs, not a server that starts by itself.
const NO_MAIN_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/muster-xtask.conf";

pub fn ensure_postgres() -> Result<PathBuf> {
    if let Some(found) = newest() {
        return Ok(found);
    }
    let script = format!(
        "mkdir -p \"$(dirname {NO_MAIN_CLUSTER})\" && echo 'create_main_cluster = false' > {NO_MAIN_CLUSTER}"
    );
    process::output(&mut apt::as_root(&["sh", "-c", &script])?)?;
    let installed = apt::install(&["postgresql"]);
    process::output(&mut apt::as_root(&["rm", "-f", NO_MAIN_CLUSTER])?)?;
    installed?;
    newest().with_context(|| format!("the package postgresql put no server into {HOME}"))
}

fn newest() -> Option<PathBuf> {
    let versions = fs::read_dir(HOME)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut versions: Vec<(u32, String)> = versions
        .filter_map(|name| Some((name.parse().ok()?, name)))
        .collect();
    versions.sort();
    let bins = versions
        .into_iter()
        .rev()
        .map(|(_, name)| PathBuf::from(HOME).join(name).join("bin"));
    bins.into_iter()
        .find(|bin| bin.join("initdb").exists() && bin.join("psql").exists())
}
