//! Manifests that follow from a cluster's settings and that the installer does not write by itself.

use crate::cluster::Cluster;
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
    all.extend(schedulable_masters(cluster, hosts));
    all
}

/// Nodes follow the time servers that were good for their installation.
fn time_servers(cluster: &Cluster) -> Vec<Manifest> {
    let Some(config) = chrony(cluster) else {
        return Vec::new();
    };
    let mut roles = vec![(Role::Master, "masters"), (Role::Worker, "workers")];
    if cluster.control_plane_count == 2 {
        roles.push((Role::Arbiter, "arbiters"));
    }
    roles
        .into_iter()
        .map(|(role, many)| Manifest {
            folder: "openshift",
            name: format!("50-{many}-chrony-configuration.yaml"),
            text: text(&machine_config(role.word(), many, &config)),
        })
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

fn machine_config(role: &str, many: &str, chrony: &str) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "name": format!("50-{many}-chrony-configuration"),
            "labels": { "machineconfiguration.openshift.io/role": role },
        },
        "spec": { "config": {
            "ignition": { "version": "3.1.0" },
            "storage": { "files": [{
                "path": "/etc/chrony.conf",
                "mode": 420,
                "overwrite": true,
                "contents": { "source": format!("data:text/plain;charset=utf-8;base64,{}", STANDARD.encode(chrony)) },
            }] },
        } },
    })
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
