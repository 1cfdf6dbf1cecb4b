//! Who may do what: a world of two organisations, and tables over it.

mod complete;
mod laws;
mod machines;
mod people;

use super::*;
use jiff::Timestamp;
use muster_vocabulary::{AccessRole, ClusterId, Generation, HostId, HostKey, InfraEnvId};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn uuid(last: u8) -> Uuid {
    Uuid::from_bytes([last; 16])
}

const ENV: InfraEnvId = InfraEnvId(Uuid::from_bytes([1; 16]));
const HOST: HostKey = HostKey {
    infra_env: ENV,
    host: HostId(Uuid::from_bytes([2; 16])),
};
const CLUSTER: ClusterId = ClusterId(Uuid::from_bytes([3; 16]));

const INA: Owner<'static> = Owner {
    user: "ina",
    org: "acme",
};
const CLEO: Owner<'static> = Owner {
    user: "cleo",
    org: "acme",
};

/// Ina's InfraEnv, offered to her own organisation.
fn infra_env() -> InfraEnvFacts<'static> {
    InfraEnvFacts {
        id: ENV,
        owner: INA,
        offer: Offer::OwnOrg,
    }
}

/// Cleo's cluster, to which a host is bound.
fn cluster() -> ClusterFacts<'static> {
    ClusterFacts {
        id: CLUSTER,
        owner: CLEO,
        hosts: &[HOST],
    }
}

fn free() -> HostFacts<'static> {
    HostFacts {
        key: HOST,
        infra_env: infra_env(),
        cluster: None,
        has_credential: false,
    }
}

fn bound() -> HostFacts<'static> {
    HostFacts {
        cluster: Some(cluster()),
        ..free()
    }
}

/// What a request for this names, with the host in this state.
fn named(action: Action, host: HostFacts<'static>) -> Facts<'static> {
    let none = Facts::default();
    match action {
        Action::Open
        | Action::Look
        | Action::Watch
        | Action::Report
        | Action::List
        | Action::MakeInfraEnv
        | Action::MakeCluster => none,
        Action::ReadInfraEnv
        | Action::WriteInfraEnv
        | Action::PutInfraEnv
        | Action::ReadImage
        | Action::ListHosts => Facts {
            infra_env: Some(infra_env()),
            ..none
        },
        Action::ReadHistory
        | Action::Plan
        | Action::ReadHost
        | Action::ChangeHost
        | Action::RunHost
        | Action::Return
        | Action::InstallHost
        | Action::ReadHostSecrets => Facts {
            host: Some(host),
            ..none
        },
        Action::Lend | Action::Move => Facts {
            host: Some(host),
            cluster: Some(cluster()),
            ..none
        },
        Action::ReadCluster | Action::WriteCluster | Action::PutCluster | Action::ReadClusterSecrets => {
            Facts {
                cluster: Some(cluster()),
                ..none
            }
        }
    }
}

fn operation(action: Action, machines: Machines) -> Operation {
    Operation {
        id: "test",
        method: Method::Get,
        path: "/",
        action,
        machines,
        carriers: &[],
    }
}

fn sign(verdict: Verdict) -> char {
    match verdict {
        Verdict::Allowed => '+',
        Verdict::NotFound => '-',
        Verdict::Forbidden(Reason::NotKnown) => '?',
        Verdict::Forbidden(Reason::Revoked | Reason::OldCredential) => 'r',
        Verdict::Forbidden(
            Reason::NeedsRole(_)
            | Reason::NotOwner
            | Reason::OwnersOnly
            | Reason::MachinesOnly
            | Reason::PeopleOnly
            | Reason::AnotherMachine,
        ) => 'x',
    }
}

fn people() -> [(&'static str, Caller); 10] {
    use AccessRole::{Admin, ClusterCreator, InfraAdmin, ReadOnly};
    [
        ("root", Caller::person("root", "", [Admin])),
        ("ina", Caller::person("ina", "acme", [InfraAdmin])),
        ("ivo", Caller::person("ivo", "acme", [InfraAdmin])),
        ("cleo", Caller::person("cleo", "acme", [ClusterCreator])),
        ("carl", Caller::person("carl", "acme", [ClusterCreator])),
        ("rita", Caller::person("rita", "acme", [ReadOnly])),
        ("nora", Caller::person("nora", "acme", [])),
        ("gina", Caller::person("gina", "globex", [InfraAdmin])),
        ("gus", Caller::person("gus", "globex", [ClusterCreator, ReadOnly])),
        // Has no organisation, and the name of somebody else's owner.
        (
            "cleo alone",
            Caller::person("cleo", "", [ClusterCreator, InfraAdmin, ReadOnly]),
        ),
    ]
}
