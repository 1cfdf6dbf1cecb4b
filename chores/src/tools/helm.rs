//! Helm, built from its Go module into the cache.

use std::path::PathBuf;

use anyhow::Result;

use super::go;

const VERSION: &str = "v4.3.1";

pub fn ensure() -> Result<PathBuf> {
    let programs = go::programs(&format!("helm-{VERSION}"), |go, shop| {
        go.install(shop, &format!("helm.sh/helm/v4/cmd/helm@{VERSION}"))
    })?;
    Ok(programs.join("helm"))
}
