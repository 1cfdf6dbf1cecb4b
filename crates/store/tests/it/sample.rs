//! Rows to write, with honest defaults.

use jiff::Timestamp;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Host, Report};
use muster_domain::id::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_domain::infra_env::InfraEnv;
use muster_domain::journal::{Entry, Severity};
use muster_store::{Commit, Committed, Delete, Record, ReportWrite, RowKey, Store, StoreError};
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

/// A row to write.
#[expect(clippy::large_enum_variant, reason = "tests write a few rows")]
pub enum Write {
    Put(Record, Vec<(Report, Option<String>)>),
    Delete(Delete),
}

pub fn put(row: impl Into<Record>) -> Write {
    Write::Put(row.into(), Vec::new())
}

pub fn put_with(host: Host, reports: &[(Report, Option<&str>)]) -> Write {
    let reports = reports
        .iter()
        .map(|(report, body)| (*report, body.map(str::to_owned)))
        .collect();
    Write::Put(host.into(), reports)
}

pub fn delete(key: impl Into<RowKey>, revision: i64) -> Write {
    Write::Delete(Delete {
        key: key.into(),
        revision,
    })
}

pub fn commit() -> Commit {
    // These tests are about single rows; `references` has its own.
    Commit {
        in_any_order: true,
        ..Commit::new(noon())
    }
}

pub fn of(writes: impl IntoIterator<Item = Write>) -> Commit {
    let mut commit = commit();
    for write in writes {
        match write {
            Write::Put(record, reports) => {
                let writes = reports.into_iter().map(|(report, body)| ReportWrite {
                    host: match record.key() {
                        RowKey::Host(key) => key,
                        RowKey::Cluster(_) | RowKey::InfraEnv(_) => panic!("only hosts report"),
                    },
                    report,
                    body,
                });
                commit.reports.extend(writes);
                commit.puts.push(record);
            }
            Write::Delete(delete) => commit.deletes.push(delete),
        }
    }
    commit
}

/// Writes the host and gives it back as a reader would see it.
pub async fn saved(store: &Store, mut host: Host) -> Host {
    host.revision = store.commit(of([put(host.clone())])).await.unwrap().revisions[0];
    host
}

#[track_caller]
pub fn assert_stale(result: Result<Committed, StoreError>, kind: &str) {
    match result {
        Err(StoreError::Stale(key)) => assert_eq!(key.kind().word(), kind),
        other => panic!("expected a stale {kind}, got {other:?}"),
    }
}
