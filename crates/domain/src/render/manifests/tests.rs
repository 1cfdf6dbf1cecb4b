//! Which settings make which manifests, and what is in them.

use super::*;
use crate::{HostId, HostKey, InfraEnvId};
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

/// The config of the only manifest of that name.
fn machine_config_of(all: &[Manifest], name: &str) -> Value {
    let one = all.iter().find(|manifest| manifest.name == name).expect(name);
    serde_norway::from_str(&one.text).unwrap()
}

#[test]
fn disks_are_encrypted_for_the_roles_that_were_named() {
    for (enable_on, count, roles) in [
        ("none", 3, &[][..]),
        ("", 3, &[]),
        ("masters", 3, &["masters"]),
        ("workers", 3, &["workers"]),
        ("arbiters", 2, &["arbiters"]),
        ("arbiters", 3, &[]),
        ("masters,arbiters", 2, &["masters", "arbiters"]),
        ("all", 3, &["masters", "workers"]),
        ("all", 2, &["masters", "workers", "arbiters"]),
    ] {
        let mut cluster = cluster();
        cluster.control_plane_count = count;
        cluster.disk_encryption.enable_on = enable_on.into();
        cluster.disk_encryption.mode = "tpmv2".into();
        let names: Vec<_> = of(&cluster, &[])
            .into_iter()
            .map(|manifest| manifest.name)
            .collect();
        let wanted: Vec<_> = roles
            .iter()
            .map(|many| format!("50-{many}-disk-encryption.yaml"))
            .collect();
        assert_eq!(names, wanted, "{enable_on} of {count}");
    }
}

#[test]
fn an_encrypted_disk_is_opened_by_the_tpm_or_by_tang_servers() {
    let mut cluster = cluster();
    cluster.disk_encryption.enable_on = "masters".into();
    cluster.disk_encryption.mode = "tpmv2".into();
    let name = "50-masters-disk-encryption.yaml";
    let by_tpm = machine_config_of(&of(&cluster, &[]), name);
    assert_eq!(
        by_tpm["metadata"]["labels"]["machineconfiguration.openshift.io/role"],
        "master"
    );
    let disk = &by_tpm["spec"]["config"]["storage"]["luks"][0];
    assert_eq!(disk["clevis"], json!({ "tpm2": true }));
    assert_eq!(disk["device"], "/dev/disk/by-partlabel/root");
    assert_eq!(
        by_tpm["spec"]["config"]["storage"]["filesystems"][0]["device"],
        "/dev/mapper/root"
    );
    assert!(by_tpm["spec"].get("kernelArguments").is_none());

    cluster.disk_encryption.mode = "tang".into();
    cluster.disk_encryption.tang_servers =
        r#"[{"url":"http://a.example.com","thumbprint":"x","note":"ours"},{"url":"http://b.example.com","thumbprint":"y"}]"#.into();
    let by_tang = machine_config_of(&of(&cluster, &[]), name);
    let clevis = &by_tang["spec"]["config"]["storage"]["luks"][0]["clevis"];
    assert_eq!(clevis["threshold"], 1);
    assert_eq!(
        clevis["tang"],
        json!([{ "url": "http://a.example.com", "thumbprint": "x" }, { "url": "http://b.example.com", "thumbprint": "y" }])
    );
    assert_eq!(by_tang["spec"]["kernelArguments"], json!(["rd.neednet=1"]));
}
