//! Manifests that follow from a cluster's settings and that the installer does not write by itself.

use super::olm;
use crate::cluster::{Cluster, DiskEncryptionMode, RoleSet};
use crate::host::{Host, Role};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A file below the installer's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// `manifests` or `openshift`.
    pub folder: &'static str,
    pub name: String,
    pub text: String,
}

/// Everything the settings ask for; `hosts` have their roles.
pub fn of(cluster: &Cluster, hosts: &[Host]) -> Vec<Manifest> {
    let mut all = time_servers(cluster);
    all.extend(encrypted_disks(cluster));
    all.extend(olm::of(cluster));
    all.extend(schedulable_masters(cluster, hosts));
    all
}

/// Nodes follow the time servers that were good for their installation.
fn time_servers(cluster: &Cluster) -> Vec<Manifest> {
    let Some(config) = chrony(cluster) else {
        return Vec::new();
    };
    let config = json!({
        "ignition": { "version": "3.1.0" },
        "storage": { "files": [{
            "path": "/etc/chrony.conf",
            "mode": 420,
            "overwrite": true,
            "contents": { "source": format!("data:text/plain;charset=utf-8;base64,{}", STANDARD.encode(config)) },
        }] },
    });
    let spec = json!({ "config": config });
    pools(cluster)
        .into_iter()
        .map(|(role, many)| machine_config(role, &format!("50-{many}-chrony-configuration"), &spec))
        .collect()
}

/// The roles whose nodes are configured alike, and how they are called together.
fn pools(cluster: &Cluster) -> Vec<(Role, &'static str)> {
    let mut roles = vec![
        (Role::Master, RoleSet::Masters.word()),
        (Role::Worker, RoleSet::Workers.word()),
    ];
    if cluster.control_plane_count == 2 {
        roles.push((Role::Arbiter, RoleSet::Arbiters.word()));
    }
    roles
}

/// The root disk is opened at boot by the machine's TPM, or with the help of the network's Tang servers.
fn encrypted_disks(cluster: &Cluster) -> Vec<Manifest> {
    let wish = &cluster.disk_encryption;
    if !wish.is_on() {
        return Vec::new();
    }
    let (clevis, kernel_arguments) = match wish.mode.known() {
        Some(DiskEncryptionMode::Tang) => {
            let servers = tang_servers(&wish.tang_servers);
            // Any one of them is enough; the network must be up before the disk can be opened.
            (json!({ "tang": servers, "threshold": 1 }), vec!["rd.neednet=1"])
        }
        Some(DiskEncryptionMode::Tpmv2) | None => (json!({ "tpm2": true }), Vec::new()),
    };
    let config = json!({
        "ignition": { "version": "3.2.0" },
        "storage": {
            "luks": [{
                "name": "root",
                "device": "/dev/disk/by-partlabel/root",
                "clevis": clevis,
                // Allowed on nodes in FIPS mode as well.
                "options": ["--cipher", "aes-cbc-essiv:sha256"],
                "wipeVolume": true,
            }],
            "filesystems": [{
                "device": "/dev/mapper/root",
                "format": "xfs",
                "label": "root",
                "wipeFilesystem": true,
            }],
        },
    });
    let mut spec = json!({ "config": config });
    if !kernel_arguments.is_empty() {
        spec["kernelArguments"] = json!(kernel_arguments);
    }
    let covered = pools(cluster)
        .into_iter()
        .filter(|(role, _)| wish.covers(*role) == Some(true));
    covered
        .map(|(role, many)| machine_config(role, &format!("50-{many}-disk-encryption"), &spec))
        .collect()
}

fn chrony(cluster: &Cluster) -> Option<String> {
    let list = |text: &str| -> Vec<String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    };
    // Sources replace what the system would use; additional ones are used beside it.
    let (servers, with_usual) = match list(&cluster.ntp_sources) {
        own if own.is_empty() => (list(&cluster.additional_ntp_source), true),
        own => (own, false),
    };
    if servers.is_empty() {
        return None;
    }
    let mut config = String::new();
    if with_usual {
        config.push_str("pool 2.rhel.pool.ntp.org iburst\n");
    }
    for server in servers {
        config.push_str(&format!("server {server} iburst\n"));
    }
    config.push_str("driftfile /var/lib/chrony/drift\nmakestep 1.0 3\nrtcsync\nlogdir /var/log/chrony\n");
    Some(config)
}

/// Of what people said about their servers, the part that Ignition reads.
fn tang_servers(text: &str) -> Vec<Value> {
    let servers: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    servers
        .iter()
        .map(|server| json!({ "url": server["url"], "thumbprint": server["thumbprint"] }))
        .collect()
}

fn machine_config(role: Role, name: &str, spec: &Value) -> Manifest {
    let value = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "name": name,
            "labels": { "machineconfiguration.openshift.io/role": role.word() },
        },
        "spec": spec,
    });
    Manifest {
        folder: "openshift",
        name: format!("{name}.yaml"),
        text: text(&value),
    }
}

/// With fewer than two workers the installer makes masters schedulable anyway.
fn schedulable_masters(cluster: &Cluster, hosts: &[Host]) -> Option<Manifest> {
    let workers = hosts.iter().filter(|host| host.role == Role::Worker).count();
    (cluster.schedulable_masters && workers >= 2).then(|| Manifest {
        folder: "manifests",
        name: "cluster-scheduler-02-config.yml.patch".into(),
        text: text(&json!({ "spec": { "mastersSchedulable": true } })),
    })
}

pub(super) fn text(value: &Value) -> String {
    serde_norway::to_string(value).expect("texts, numbers and lists always have a YAML form")
}

#[cfg(test)]
mod tests;
