//! Files added to the initrd of a minimal ISO or network boot: what is needed before the system can be fetched.

use super::static_network::{self, HostNetwork};
use super::units::{self, Stage};
use crate::infra_env::Proxy;
use crate::input::proxy;

/// One thing in the archive. Who writes it adds the directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// With or without the leading slash.
    pub path: String,
    pub kind: Kind,
    /// The bytes of a file, or the target of a link.
    pub content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File { mode: u32 },
    Link,
}

/// What decides over the initrd.
#[derive(Clone, Debug)]
pub struct MinimalInitrd<'a> {
    pub static_network: &'a [HostNetwork],
    pub proxy: &'a Proxy,
    pub network_discovery_delay_seconds: u32,
}

/// The files, or `None` when there is nothing to add.
pub fn minimal_initrd(input: &MinimalInitrd<'_>) -> Option<Vec<Entry>> {
    let mut list = Vec::new();
    if !input.static_network.is_empty() {
        let stage = Stage::Initrd {
            delay_seconds: input.network_discovery_delay_seconds,
        };
        let unit = format!("/etc/systemd/system/{}", static_network::UNIT_NAME);
        let wants = format!(
            "/etc/systemd/system/initrd.target.wants/{}",
            static_network::UNIT_NAME
        );
        let files = static_network::files(input.static_network);
        list.extend(
            files
                .into_iter()
                .map(|(path, content)| entry(path, 0o600, content)),
        );
        list.push(entry(static_network::SCRIPT_PATH, 0o755, static_network::SCRIPT));
        list.push(entry(unit.clone(), 0o644, units::static_network(stage)));
        list.push(Entry {
            path: wants,
            kind: Kind::Link,
            content: unit.into_bytes(),
        });
    }
    if proxy::is_set(input.proxy) {
        let path = "/etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf";
        // Proxy addresses may hold a password.
        list.push(entry(
            path,
            0o600,
            format!("[Service]\n{}", units::environment(input.proxy)),
        ));
    }
    (!list.is_empty()).then_some(list)
}

fn entry(path: impl Into<String>, mode: u32, content: impl Into<String>) -> Entry {
    Entry {
        path: path.into(),
        kind: Kind::File { mode },
        content: content.into().into_bytes(),
    }
}
