//! Static network settings as files: one directory per host, picked on the machine by MAC address.

use crate::input::static_network::{MacInterface, StaticNetwork};

pub const SCRIPT_PATH: &str = "/usr/local/bin/pre-network-manager-config.sh";
pub const SCRIPT: &str = include_str!("scripts/pre-network-manager-config.sh");
pub const UNIT_NAME: &str = "pre-network-manager-config.service";
/// Where NetworkManager of a running system looks.
pub const SYSTEM_CONNECTIONS: &str = "/etc/NetworkManager/system-connections";
/// What CoreOS copies for NetworkManager in the initrd, and later into the system that was fetched.
pub const INITRD_CONNECTIONS: &str = "/etc/coreos-firstboot-network";

/// The settings of one host: which MACs it has, and its files (keyfiles `*.nmconnection` or descriptions `*.yml`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNetwork {
    pub macs: Vec<MacInterface>,
    pub files: Vec<(String, String)>,
}

impl HostNetwork {
    /// The description as given; the host turns it into keyfiles itself.
    pub fn from_yaml(network: &StaticNetwork, index: usize) -> HostNetwork {
        let file = (format!("ymlFile{index}.yml"), network.network_yaml.clone());
        HostNetwork {
            macs: network.mac_interface_map.clone(),
            files: vec![file],
        }
    }
}

/// From the stored JSON text; an empty or unreadable one means none. `keyfiles` turns a description into files; where it
/// gives none, the description itself goes to the host.
pub fn from_json(text: &str, keyfiles: impl Fn(&str) -> Option<Vec<(String, String)>>) -> Vec<HostNetwork> {
    let items: Vec<StaticNetwork> = serde_json::from_str(text).unwrap_or_default();
    items
        .iter()
        .enumerate()
        .map(|(index, item)| match keyfiles(&item.network_yaml) {
            Some(files) => HostNetwork {
                macs: item.mac_interface_map.clone(),
                files,
            },
            None => HostNetwork::from_yaml(item, index),
        })
        .collect()
}

/// Path and content of every file; all are for root's eyes only, since they may hold Wi-Fi or 802.1X secrets.
pub fn files(hosts: &[HostNetwork]) -> Vec<(String, String)> {
    let mut list = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        let folder = format!("/etc/assisted/network/host{index}");
        let ini: String = host
            .macs
            .iter()
            .map(|mac| format!("{}={}\n", mac.mac_address, mac.logical_nic_name))
            .collect();
        list.push((format!("{folder}/mac_interface.ini"), ini));
        list.extend(
            host.files
                .iter()
                .map(|(name, content)| (format!("{folder}/{name}"), content.clone())),
        );
    }
    list
}

/// The text of the download `static-network-config`: every file under its path.
pub fn listing(hosts: &[HostNetwork]) -> String {
    files(hosts)
        .iter()
        .map(|(path, content)| format!("# {path}\n{}\n", content.trim_end()))
        .collect()
}
