//! The lifecycle by tables, by its graph, and by laws over random histories.

mod graph;
mod laws;
mod planning;
mod tables;

use super::super::diagram::blank;
use super::super::tally::Tally;
use super::super::*;
use super::next;
use crate::host::{self, Host, Role, Stage};
use crate::{HostId, HostKey, InfraEnvId};
use jiff::SignedDuration;
use uuid::Uuid;

fn noon() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

fn ready() -> Gates {
    Gates {
        inputs: true,
        vips_defined: true,
        required: true,
    }
}

fn cluster(phase: Phase) -> Cluster {
    let mut cluster = blank(noon());
    (cluster.phase, cluster.gates) = (phase, ready());
    cluster.install.attempt = 1;
    cluster.operators = vec![Operator {
        name: "console".into(),
        builtin: true,
        ..Operator::default()
    }];
    cluster
}

fn single_node(phase: Phase) -> Cluster {
    let mut cluster = cluster(phase);
    cluster.control_plane_count = 1;
    cluster
}

fn host(n: u128, role: Role, phase: host::Phase) -> Host {
    let key = HostKey {
        infra_env: InfraEnvId(Uuid::from_u128(1)),
        host: HostId(Uuid::from_u128(n)),
    };
    let mut host = Host::arriving(key, Some(blank(noon()).id), noon());
    (host.role, host.phase) = (role, phase);
    host.gates = host::Gates {
        inventory: true,
        min_hardware: true,
        inputs: true,
        vsphere_disks: true,
        sufficient: true,
        ..host::Gates::default()
    };
    host.digest.hostname = format!("node-{n}");
    host
}

fn at_stage(mut host: Host, stage: Stage) -> Host {
    host.progress.stage = Some(stage);
    host
}

fn masters(phase: host::Phase) -> Vec<Host> {
    (1..=3).map(|n| host(n, Role::Master, phase)).collect()
}

fn tally(hosts: &[Host]) -> Tally {
    Tally::of(&hosts.iter().collect::<Vec<_>>())
}

fn count(cluster: &Cluster, hosts: &[Host]) -> Decision {
    next(cluster, &Event::Counted { tally: tally(hosts) }, noon()).unwrap()
}

fn after(cluster: &Cluster, event: Event) -> Cluster {
    next(cluster, &event, noon()).unwrap().cluster
}

fn names(decision: &Decision) -> Vec<&str> {
    decision.journal.iter().map(|entry| entry.name.as_str()).collect()
}

fn files(attempt: u32, outcome: Result<(), &str>) -> Event {
    Event::FilesMade {
        attempt,
        outcome: outcome.map_err(str::to_owned),
    }
}

fn console(status: OperatorStatus) -> Event {
    Event::OperatorReported {
        name: "console".into(),
        status,
        version: "4.20.1".into(),
        info: String::new(),
    }
}
