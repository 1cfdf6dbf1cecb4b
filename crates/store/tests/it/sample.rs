//! Rows to write, with honest defaults.

use jiff::Timestamp;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Host, Report};
use muster_domain::id::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_domain::infra_env::InfraEnv;
use muster_domain::journal::{Entry, Severity};
use muster_store::{ClusterWrite, Commit, Committed, HostWrite, InfraEnvWrite, Store, StoreError};
use serde_json::json;
use uuid::Uuid;

pub fn noon() -> Timestamp {
    "2026-03-01T12:00:00.123456Z".parse().unwrap()
}

pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(noon().as_second() + seconds).unwrap()
}

pub fn key() -> HostKey {
    HostKey {
        infra_env: InfraEnvId(Uuid::new_v4()),
        host: HostId(Uuid::new_v4()),
    }
}

pub fn host() -> Host {
    Host::arriving(key(), None, noon())
}

pub fn host_in(infra_env: InfraEnvId) -> Host {
    Host::arriving(
        HostKey {
            infra_env,
            host: HostId(Uuid::new_v4()),
        },
        None,
        noon(),
    )
}

pub fn cluster() -> Cluster {
    let at = noon();
    serde_json::from_value(json!({
        "id": ClusterId(Uuid::new_v4()), "kind": "Cluster", "phase": "draft", "since": at, "status_info": "",
        "status_updated_at": at, "created_at": at, "updated_at": at, "name": "ein Häuschen 'quoted'",
        "openshift_version": "4.20.1", "ocp_release_image": "", "base_dns_domain": "example.org",
        "control_plane_count": 3, "high_availability_mode": "Full", "cluster_networks": [],
        "service_networks": [], "machine_networks": [], "api_vips": [], "ingress_vips": [],
        "vip_dhcp_allocation": false, "user_managed_networking": false, "platform": {}, "network_type": "",
        "pull_secret": "{}", "ssh_public_key": "", "additional_ntp_source": "", "hyperthreading": "all",
        "schedulable_masters": false, "cpu_architecture": "x86_64", "disk_encryption": {},
        "load_balancer": "", "org_soft_timeouts_enabled": false
    }))
    .unwrap()
}

pub fn infra_env() -> InfraEnv {
    let at = noon();
    serde_json::from_value(json!({
        "id": InfraEnvId(Uuid::new_v4()), "name": "pool", "pull_secret": "{}", "openshift_version": "4.20.1",
        "cpu_architecture": "x86_64", "image_type": "full-iso", "image_token_key": "key",
        "created_at": at, "updated_at": at
    }))
    .unwrap()
}

pub fn entry(message: &str) -> Entry {
    Entry::new("test", Severity::Info, message)
}

pub fn put(host: Host) -> HostWrite {
    HostWrite::Put {
        host,
        reports: Vec::new(),
    }
}

pub fn put_with(host: Host, reports: &[(Report, Option<&str>)]) -> HostWrite {
    let reports = reports
        .iter()
        .map(|(report, body)| (*report, body.map(str::to_owned)))
        .collect();
    HostWrite::Put { host, reports }
}

pub fn commit() -> Commit {
    // These tests are about single rows; `references` has its own.
    Commit {
        in_any_order: true,
        ..Commit::new(noon())
    }
}

pub fn of_hosts(hosts: impl IntoIterator<Item = HostWrite>) -> Commit {
    Commit {
        hosts: hosts.into_iter().collect(),
        ..commit()
    }
}

pub fn of_cluster(write: ClusterWrite) -> Commit {
    Commit {
        clusters: vec![write],
        ..commit()
    }
}

pub fn of_infra_env(write: InfraEnvWrite) -> Commit {
    Commit {
        infra_envs: vec![write],
        ..commit()
    }
}

/// Writes the host and gives it back as a reader would see it.
pub async fn saved(store: &Store, mut host: Host) -> Host {
    host.revision = store.commit(of_hosts([put(host.clone())])).await.unwrap().hosts[0];
    host
}

#[track_caller]
pub fn assert_stale(result: Result<Committed, StoreError>, kind: &str) {
    match result {
        Err(StoreError::Stale { kind: told, .. }) => assert_eq!(told, kind),
        other => panic!("expected a stale {kind}, got {other:?}"),
    }
}
