//! The MachineConfig that lets a single node answer the cluster's own names, so that nobody has to add DNS records.
//!
//! The node runs a small name server on its address and asks it first. Pods inherit the node's resolver, so it must be
//! the address and cannot be loopback.

use super::manifests::{Manifest, text};
use crate::cluster::Cluster;
use crate::cluster::network::node_address;
use crate::host::{Host, Role};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const NAME: &str = "50-master-single-node-names";
const READABLE: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;

/// `None` where nothing is to be answered: several nodes, no name yet, or no address known.
pub fn of(cluster: &Cluster, hosts: &[Host]) -> Option<Manifest> {
    let host = hosts.iter().find(|host| host.role == Role::Master)?;
    let named = !cluster.name.is_empty() && !cluster.base_dns_domain.is_empty();
    if !cluster.single_node() || !named {
        return None;
    }
    let addresses: Vec<String> = host
        .digest
        .nics
        .iter()
        .flat_map(|nic| nic.addresses.clone())
        .collect();
    let address = node_address(cluster, &addresses)?;
    let zone = format!("{}.{}", cluster.name, cluster.base_dns_domain);
    Some(Manifest {
        folder: "openshift",
        name: format!("{NAME}.yaml"),
        text: text(&machine_config(&zone, &address)),
    })
}

fn machine_config(zone: &str, address: &str) -> Value {
    let files = [
        (
            "/etc/dnsmasq.d/single-node.conf",
            READABLE,
            answers(zone, address),
        ),
        (
            "/etc/NetworkManager/conf.d/single-node.conf",
            READABLE,
            "[main]\nrc-manager=unmanaged\n".to_owned(),
        ),
        (
            "/etc/NetworkManager/dispatcher.d/40-single-node-names",
            EXECUTABLE,
            resolver(zone, address),
        ),
    ];
    let files: Vec<Value> = files
        .iter()
        .map(|(path, mode, content)| {
            json!({ "path": path, "mode": mode, "overwrite": true, "contents": {
                "source": format!("data:text/plain;charset=utf-8;base64,{}", STANDARD.encode(content)) } })
        })
        .collect();
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "name": NAME,
            "labels": { "machineconfiguration.openshift.io/role": "master" },
        },
        "spec": { "config": {
            "ignition": { "version": "3.1.0" },
            "storage": { "files": files },
            "systemd": { "units": [{ "name": "dnsmasq.service", "enabled": true, "contents": UNIT }] },
        } },
    })
}

/// The API for everybody, the API for nodes, and every route of the ingress.
fn answers(zone: &str, address: &str) -> String {
    let names = ["api", "api-int", "apps"];
    let mut config: String = names
        .iter()
        .map(|name| format!("address=/{name}.{zone}/{address}\n"))
        .collect();
    // What others know is asked of whom the network named; our own address in that list is passed over.
    config.push_str("resolv-file=/run/NetworkManager/resolv.conf\nbind-dynamic\n");
    config
}

/// Runs whenever the network changes: our own server comes first, those of the network after it.
fn resolver(zone: &str, address: &str) -> String {
    format!(
        "#!/bin/bash\n\
         set -eu\n\
         theirs=/run/NetworkManager/resolv.conf\n\
         [ -s \"$theirs\" ] || exit 0\n\
         ours=$(mktemp /etc/resolv.conf.XXXXXX)\n\
         {{\n\
         \x20   echo 'search {zone}'\n\
         \x20   echo 'nameserver {address}'\n\
         \x20   grep '^nameserver' \"$theirs\" || true\n\
         }} > \"$ours\"\n\
         chmod 0644 \"$ours\"\n\
         mv -f \"$ours\" /etc/resolv.conf\n"
    )
}

/// Before anything that needs the names.
const UNIT: &str = "\
[Unit]
Description=Answer the names of this single-node cluster
After=network-online.target
Wants=network-online.target
Before=kubelet.service crio.service

[Service]
ExecStart=/usr/sbin/dnsmasq --keep-in-foreground
Restart=always

[Install]
WantedBy=multi-user.target
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Nic;
    use crate::{HostId, HostKey, InfraEnvId};
    use jiff::Timestamp;
    use uuid::Uuid;

    fn single_node() -> (Cluster, Host) {
        let mut cluster = crate::cluster::diagram::blank(Timestamp::UNIX_EPOCH);
        cluster.control_plane_count = 1;
        cluster.name = "edge".into();
        cluster.base_dns_domain = "example.com".into();
        cluster.machine_networks = vec!["192.168.111.0/24".into()];
        let key = HostKey {
            infra_env: InfraEnvId(Uuid::from_u128(1)),
            host: HostId(Uuid::from_u128(2)),
        };
        let mut host = Host::arriving(key, Some(cluster.id), Timestamp::UNIX_EPOCH);
        host.role = Role::Master;
        let nic = |name: &str, address: &str| Nic {
            name: name.into(),
            mac: String::new(),
            addresses: vec![address.into()],
        };
        host.digest.nics = vec![nic("eth0", "10.0.0.5/24"), nic("eth1", "192.168.111.20/24")];
        (cluster, host)
    }

    fn files(manifest: &Manifest) -> String {
        let value: Value = serde_norway::from_str(&manifest.text).unwrap();
        let files = value["spec"]["config"]["storage"]["files"].as_array().unwrap();
        let contents = files.iter().map(|file| {
            let source = file["contents"]["source"].as_str().unwrap();
            let (_, encoded) = source.split_once("base64,").unwrap();
            String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
        });
        contents.collect()
    }

    #[test]
    fn a_single_node_answers_its_names_with_its_address_in_the_machine_network() {
        let (cluster, host) = single_node();
        let manifest = of(&cluster, &[host]).unwrap();
        let files = files(&manifest);
        for name in ["api", "api-int", "apps"] {
            let line = format!("address=/{name}.edge.example.com/192.168.111.20\n");
            assert!(files.contains(&line), "{line} in {files}");
        }
        assert!(files.contains("nameserver 192.168.111.20"), "{files}");
        assert!(!files.contains("10.0.0.5"), "{files}");
    }

    #[test]
    fn other_clusters_and_those_without_name_or_address_answer_nothing() {
        let (cluster, host) = single_node();
        assert_eq!(of(&cluster, &[]), None);
        let several = Cluster {
            control_plane_count: 3,
            ..cluster.clone()
        };
        assert_eq!(of(&several, std::slice::from_ref(&host)), None);
        let nameless = Cluster {
            base_dns_domain: String::new(),
            ..cluster.clone()
        };
        assert_eq!(of(&nameless, std::slice::from_ref(&host)), None);
        let mut silent = host;
        silent.digest.nics.clear();
        assert_eq!(of(&cluster, &[silent]), None);
    }
}
