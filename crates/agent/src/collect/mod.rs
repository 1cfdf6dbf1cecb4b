//! What is in this machine: everything is read from /sys, /proc and /dev, no other program is needed.

mod bmc;
mod boot;
mod cpu;
mod disk;
mod gpu;
mod interface;
mod memory;
pub mod partition;
mod route;
mod vendor;

pub use disk::find as find_disk;

use crate::sys::{self, IfAddress};
use muster_contract::v2::agent::inventory::Inventory;
use std::path::{Path, PathBuf};

/// A machine as seen below a directory: `/` for this one, a captured tree for tests.
#[derive(Debug, Clone)]
pub struct Machine {
    pub root: PathBuf,
}

impl Machine {
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Whether this is the machine we run on, so that devices and the kernel can be asked too.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A small file without blanks at its ends; empty when it is not there.
    pub fn text(&self, path: &str) -> String {
        let bytes = std::fs::read(self.path(path)).unwrap_or_default();
        String::from_utf8_lossy(&bytes)
            .trim_matches(|c: char| c.is_whitespace() || c == '\0')
            .to_owned()
    }

    pub fn number(&self, path: &str) -> i64 {
        self.text(path).parse().unwrap_or_default()
    }

    pub fn is_set(&self, path: &str) -> bool {
        self.text(path) == "1"
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// Names in a directory, sorted.
    pub fn list(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The last part of what a link points to.
    pub fn link_name(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.path(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// The IPv4 addresses with their interfaces. No file tells them, so a captured tree has its own: `addresses`, lines
    /// such as `eth0 192.0.2.5/24`.
    pub fn addresses(&self) -> Vec<IfAddress> {
        if self.is_live() {
            return sys::interface_addresses();
        }
        let text = self.text("addresses");
        text.lines()
            .filter_map(|line| {
                let (interface, address) = line.split_once(' ')?;
                let (address, prefix) = address.split_once('/')?;
                Some(IfAddress {
                    interface: interface.to_owned(),
                    address: address.parse().ok()?,
                    prefix: prefix.parse().ok()?,
                })
            })
            .collect()
    }

    /// The MAC a card was made with, in small letters: in a bond it shows another one.
    pub fn card_mac(&self, card: &str) -> String {
        let own = self.text(&format!("sys/class/net/{card}/bonding_slave/perm_hwaddr"));
        let mac = if own.is_empty() {
            self.text(&format!("sys/class/net/{card}/address"))
        } else {
            own
        };
        mac.to_ascii_lowercase()
    }

    pub fn hostname(&self) -> String {
        self.text("proc/sys/kernel/hostname")
    }
}

/// Everything at once.
pub fn inventory(machine: &Machine, disk_min_bytes: i64) -> Inventory {
    let (bmc_address, bmc_v6address) = bmc::addresses(machine);
    Inventory {
        hostname: machine.hostname(),
        bmc_address,
        bmc_v6address,
        tpm_version: boot::tpm_version(machine).into(),
        boot: Some(boot::boot(machine)),
        cpu: Some(cpu::cpu(machine)),
        memory: Some(memory::memory(machine)),
        system_vendor: Some(vendor::vendor(machine)),
        disks: disk::disks(machine, disk_min_bytes),
        interfaces: interface::interfaces(machine),
        gpus: gpu::gpus(machine),
        routes: route::routes(machine),
        truncation: None,
    }
}

#[cfg(test)]
mod tests;
