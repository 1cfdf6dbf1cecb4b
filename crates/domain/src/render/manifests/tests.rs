//! Which settings make which manifests, and what is in them.

use super::*;
use crate::id::{HostId, HostKey, InfraEnvId};
use jiff::Timestamp;
use uuid::Uuid;

fn cluster() -> Cluster {
    let mut cluster = crate::cluster::diagram::blank(Timestamp::UNIX_EPOCH);
    cluster.control_plane_count = 3;
    cluster
}

fn worker(number: u128) -> Host {
    let key = HostKey {
        infra_env: InfraEnvId(Uuid::from_u128(1)),
        host: HostId(Uuid::from_u128(number)),
    };
    let mut host = Host::arriving(key, None, Timestamp::UNIX_EPOCH);
    host.role = Role::Worker;
    host
}

/// The chrony configuration inside a manifest.
fn config(manifest: &Manifest) -> String {
    let value: Value = serde_norway::from_str(&manifest.text).unwrap();
    let source = value["spec"]["config"]["storage"]["files"][0]["contents"]["source"]
        .as_str()
        .unwrap();
    let (_, encoded) = source.split_once("base64,").unwrap();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

#[test]
fn plain_settings_need_no_manifest() {
    assert_eq!(of(&cluster(), &[worker(1), worker(2)]), []);
}

#[test]
fn additional_time_servers_reach_every_role_beside_the_usual_ones() {
    let mut cluster = cluster();
    cluster.additional_ntp_source = "ntp.example.com, 10.0.0.1".into();
    let all = of(&cluster, &[]);
    let names: Vec<_> = all.iter().map(|manifest| manifest.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "50-masters-chrony-configuration.yaml",
            "50-workers-chrony-configuration.yaml"
        ]
    );
    let config = config(&all[0]);
    for line in ["pool ", "server ntp.example.com iburst", "server 10.0.0.1 iburst"] {
        assert!(config.contains(line), "{line} in {config}");
    }
    let value: Value = serde_norway::from_str(&all[1].text).unwrap();
    assert_eq!(
        value["metadata"]["labels"]["machineconfiguration.openshift.io/role"],
        "worker"
    );
}

#[test]
fn time_servers_that_replace_the_usual_ones_stand_alone_and_reach_an_arbiter_too() {
    let mut cluster = cluster();
    cluster.ntp_sources = "clock.example.com".into();
    cluster.control_plane_count = 2;
    let all = of(&cluster, &[]);
    assert_eq!(all.len(), 3);
    let config = config(&all[2]);
    assert!(
        config.contains("server clock.example.com iburst") && !config.contains("pool "),
        "{config}"
    );
}

#[test]
fn masters_are_made_schedulable_only_where_the_installer_would_not_do_it() {
    let mut cluster = cluster();
    cluster.schedulable_masters = true;
    assert_eq!(of(&cluster, &[worker(1)]), []);
    let all = of(&cluster, &[worker(1), worker(2)]);
    assert_eq!(all[0].name, "cluster-scheduler-02-config.yml.patch");
    assert_eq!(all[0].text, "spec:\n  mastersSchedulable: true\n");
}
