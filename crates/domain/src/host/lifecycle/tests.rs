//! The lifecycle by tables, by its graph, and by laws over random histories.

mod graph;
mod laws;
mod stopping;
mod tables;

use super::super::event::{Around, ClusterState, Event, Timers};
use super::super::{Decision, Gates, Host, Outcome, Phase, Progress, Stage, Tenant};
use super::{farewell, next};
use crate::cluster;
use crate::refusal::Refused;
use crate::{ClusterId, HostId, HostKey, InfraEnvId};
use jiff::{SignedDuration, Timestamp};
use std::sync::LazyLock;
use uuid::Uuid;

pub(super) static TIMERS: LazyLock<Timers> = LazyLock::new(Timers::default);
pub(super) const ALPHA: ClusterId = ClusterId(Uuid::from_u128(0xA));
pub(super) const BETA: ClusterId = ClusterId(Uuid::from_u128(0xB));

pub(super) fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

pub(super) fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

pub(super) fn at(now: Timestamp) -> Around<'static> {
    Around {
        now,
        timers: &TIMERS,
        cluster: None,
        hub_was_down: false,
    }
}

pub(super) fn cluster_state(phase: cluster::Phase) -> ClusterState {
    ClusterState {
        phase,
        adds_hosts: false,
        single_node: false,
        with_operators: false,
        soft_timeouts: false,
        can_do_without: false,
    }
}

pub(super) fn in_cluster(now: Timestamp, phase: cluster::Phase) -> Around<'static> {
    Around {
        cluster: Some(cluster_state(phase)),
        ..at(now)
    }
}

pub(super) fn good_gates() -> Gates {
    Gates {
        inventory: true,
        inventory_fully_truncated: false,
        min_hardware: true,
        inputs: true,
        vsphere_disks: true,
        sufficient: true,
        disk_speed: Outcome::Passed,
        images: Outcome::Passed,
    }
}

/// A free host that has just become ready.
pub(super) fn free() -> Host {
    let key = HostKey {
        infra_env: InfraEnvId(Uuid::from_u128(1)),
        host: HostId(Uuid::from_u128(2)),
    };
    let mut host = Host::arriving(key, None, noon());
    host.gates = good_gates();
    host.digest.hostname = "node-1".into();
    host
}

pub(super) fn lent(phase: Phase) -> Host {
    let mut host = free();
    host.phase = phase;
    host.cluster = phase_cluster(phase);
    host
}

pub(super) fn phase_cluster(phase: Phase) -> Option<ClusterId> {
    (!phase.is_returning()).then_some(ALPHA)
}

pub(super) fn secretive() -> Tenant {
    Tenant {
        hostname: Some("canary-name".into()),
        installer_args: vec!["canary-arg".into()],
        ignition_overrides: "canary-override".into(),
        ignition_token: "canary-token".into(),
        ignition_headers: vec![("canary-key".into(), "canary-value".into())],
        machine_config_pool: "canary-pool".into(),
        node_labels: vec![("canary".into(), "label".into())],
        skip_formatting: vec!["canary-disk".into()],
        fencing: "canary-fencing".into(),
        installation_disk_id: "canary-disk".into(),
        installation_disk_path: "/dev/canary".into(),
        installation_disk_label: "CANARY 1 (canary)".into(),
        disk_chosen: true,
    }
}

pub(super) fn step(host: &Host, event: Event) -> Result<Decision, Refused> {
    next(host, &event, &in_cluster(noon(), cluster::Phase::Draft))
}

/// What a target says that is not there any more.
pub(super) fn gone() -> Refused {
    Refused::conflict("cluster-not-found", "There is no such cluster.", "Pick another.")
}

pub(super) fn registered() -> Event {
    Event::Registered {
        agent_version: "agent:v1".into(),
    }
}

pub(super) fn progress(stage: Stage) -> Progress {
    Progress {
        stage: Some(stage),
        updated_at: Some(noon()),
        started_at: Some(noon()),
        ..Progress::default()
    }
}
