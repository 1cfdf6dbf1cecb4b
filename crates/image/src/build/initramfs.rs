//! The root file system in memory: the agent as init, kernel modules, and the tables to load them by.

use super::modules::Modules;
use crate::cpio::{self, Archive};

/// Where modules are in the image.
pub(super) const MODULES: &str = "lib/modules";
const TABLES: &str = "etc/muster";

/// Packed; the same input gives the same bytes.
pub(super) fn initramfs(agent: &[u8], modules: &Modules) -> Vec<u8> {
    let mut archive = Archive::default();
    for folder in ["dev", "etc", "proc", "run", "sys", "tmp", "var"] {
        archive.directory(folder);
    }
    // The kernel opens it for init before anything is mounted.
    archive.character_device("dev/console", 5, 1);
    archive.program("init", agent);
    archive.file(&format!("{TABLES}/modules"), modules.first().as_bytes());
    archive.file(&format!("{TABLES}/modules.alias"), modules.alias().as_bytes());
    archive.file(&format!("{TABLES}/modules.dep"), modules.dep().as_bytes());
    for module in modules.iter() {
        archive.file(&format!("{MODULES}/{}", module.file), &module.content);
    }
    cpio::packed_quickly(&archive.finished())
}
