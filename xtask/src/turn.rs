//! One at a time: suites that fetch ahead, tests of this tool and other runs share the cache and the package manager.

use std::fs::{self, File};

use anyhow::{Context, Result};

use crate::project;

/// Waits for whoever is busy with the thing of this name, in this process or another; dropping it lets the next one.
pub fn take(name: &str) -> Result<File> {
    let folder = project::cache().join("turns");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let path = folder.join(name);
    let file = File::create(&path).with_context(|| format!("opening {}", path.display()))?;
    file.lock()
        .with_context(|| format!("waiting for {}", path.display()))?;
    Ok(file)
}
