//! The plan of an installation: what every host becomes, who starts the control plane, where ignition comes from.

use super::event::{Around, Decision, Event};
use super::tally::Tally;
use super::{Cluster, IgnitionSource, lifecycle};
use crate::checks::facts::effective_role;
use crate::host::{self, Host, Role, Status};
use crate::refusal::{Class, Refused};
use crate::{HostId, HostKey};
use muster_vocabulary::InstallRole;
use std::cmp::Reverse;

/// Everything that one commit writes when an installation starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    pub decision: Decision,
    pub hosts: Vec<host::Decision>,
}

/// What ignition could be made of when the installation starts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// The roles that people brought ignition for.
    pub uploaded: &'a [InstallRole],
    /// The hub has an `openshift-install`.
    pub installer: bool,
}

/// Decides the whole start at once.
pub fn start(
    cluster: &Cluster,
    hosts: &[Host],
    sources: Sources<'_>,
    around: Around<'_>,
    host_timers: &host::event::Timers,
) -> Result<Start, Refused> {
    let mut cluster = cluster.clone();
    cluster.ignition_source = source(&cluster, sources);
    let plan = plan_with(&cluster, hosts, has_bootstrap(&cluster, sources.uploaded))?;
    must_be_honoured(&cluster)?;
    let decision = lifecycle::next(&cluster, &Event::Install, around)?;
    let around_host = host::event::Around {
        now: around.now,
        timers: host_timers,
        cluster: Some(cluster.state()),
        hub_was_down: false,
    };
    let assign = |(key, role, bootstrap): &(HostKey, Role, bool)| {
        let event = host::Event::Assigned {
            role: *role,
            bootstrap: *bootstrap,
        };
        let host = hosts.iter().find(|host| host.key() == *key);
        host.map(|host| host::lifecycle::next(host, &event, &around_host))
    };
    let hosts: Result<Vec<_>, Refused> = plan.iter().filter_map(assign).collect();
    Ok(Start {
        decision,
        hosts: hosts?,
    })
}

/// Role and bootstrap flag of every host; refuses by name what stands in the way.
pub fn plan(cluster: &Cluster, hosts: &[Host]) -> Result<Vec<(HostKey, Role, bool)>, Refused> {
    plan_with(
        cluster,
        hosts,
        cluster.ignition_source == IgnitionSource::Installer,
    )
}

fn plan_with(
    cluster: &Cluster,
    hosts: &[Host],
    with_bootstrap: bool,
) -> Result<Vec<(HostKey, Role, bool)>, Refused> {
    lifecycle::must_be_ready(cluster)?;
    for host in hosts {
        must_be_ready(cluster, host)?;
    }
    let masters = || hosts.iter().filter(|host| role_of(host) == Role::Master);
    let Some(best) = masters().min_by_key(|host| fitness(host)) else {
        return Err(Refused::conflict(
            "no-control-plane",
            format!("Cluster {} has no host for its control plane.", cluster.name),
            "Bind a host that is large enough, or give one the role master.",
        ));
    };
    let mut plan: Vec<_> = hosts
        .iter()
        .map(|host| {
            (
                host.key(),
                role_of(host),
                with_bootstrap && host.key() == best.key(),
            )
        })
        .collect();
    plan.sort();
    Ok(plan)
}

fn must_be_ready(cluster: &Cluster, host: &Host) -> Result<(), Refused> {
    if host.status() != Status::Known {
        return Err(Refused::conflict(
            "host-not-ready",
            format!(
                "{} is {}, so the hub cannot install cluster {}.",
                host.name(),
                host.status().word(),
                cluster.name
            ),
            "See the host's validations, or unbind it.",
        ));
    }
    if role_of(host) == Role::AutoAssign {
        return Err(Refused::conflict(
            "role-not-decided",
            format!("The hub has found no role for {} yet.", host.name()),
            "Wait until all hosts have reported their hardware, or give it a role.",
        ));
    }
    Ok(())
}

/// Settings that only manifests of our own making carry out are not dropped in silence.
fn must_be_honoured(cluster: &Cluster) -> Result<(), Refused> {
    let elsewhere = match cluster.ignition_source {
        IgnitionSource::Installer => return Ok(()),
        IgnitionSource::Uploaded => "installed with uploaded ignition, which the hub uses as it is",
        IgnitionSource::Endpoint => "configured by its ignition endpoint",
    };
    let operators: Vec<&str> = cluster.chosen_operators().collect();
    let (what, next_action) = if cluster.disk_encryption.is_on() {
        (
            "`disk_encryption` is on".to_owned(),
            "Set `disk_encryption.enable_on` to none, and have that ignition encrypt the disks.",
        )
    } else if !operators.is_empty() {
        (
            format!("`olm_operators` names {}", operators.join(", ")),
            "Set `olm_operators` to an empty list, and install them once the cluster runs.",
        )
    } else {
        return Ok(());
    };
    Err(Refused::new(
        Class::Invalid,
        "setting-not-honoured",
        format!("{what}, but cluster {} is {elsewhere}.", cluster.name),
        next_action,
    ))
}

fn role_of(host: &Host) -> Role {
    effective_role(host.role, host.suggested_role)
}

/// Least first: the most memory, then the most cores, then the smallest id.
fn fitness(host: &Host) -> (Reverse<i64>, Reverse<i64>, HostId) {
    (
        Reverse(host.digest.memory_mib),
        Reverse(host.digest.cpus),
        host.id,
    )
}

/// Where the nodes' ignition comes from: what people brought wins; a cluster that runs already serves its own. An
/// endpoint may be named long before hosts are added, so it does not keep a hub's installer from making the cluster.
pub fn source(cluster: &Cluster, sources: Sources<'_>) -> IgnitionSource {
    let brought = [Role::Master, Role::Arbiter, Role::Worker]
        .into_iter()
        .any(|role| sources.uploaded.contains(&role.installed_as()));
    let served = !sources.installer && !cluster.ignition_endpoint.url.is_empty();
    if brought {
        IgnitionSource::Uploaded
    } else if cluster.adds_hosts() || served {
        IgnitionSource::Endpoint
    } else {
        IgnitionSource::Installer
    }
}

/// The files that must still be uploaded for these hosts, by role.
pub fn missing_uploads(hosts: &[Host], uploaded: &[InstallRole]) -> Vec<&'static str> {
    let mut roles: Vec<Role> = hosts.iter().map(role_of).collect();
    roles.sort();
    roles.dedup();
    let missing = roles
        .into_iter()
        .filter(|role| *role != Role::AutoAssign && !uploaded.contains(&role.installed_as()));
    missing.map(Role::word).collect()
}

/// An uploaded control plane starts itself unless a bootstrap config came with it; one elsewhere runs already.
fn has_bootstrap(cluster: &Cluster, uploaded: &[InstallRole]) -> bool {
    match cluster.ignition_source {
        IgnitionSource::Installer => true,
        IgnitionSource::Uploaded => uploaded.contains(&InstallRole::Bootstrap),
        IgnitionSource::Endpoint => false,
    }
}

/// Whether the installation succeeds without this one host.
pub fn can_do_without(tally: &Tally, host: &Host) -> bool {
    host.is_spare() && tally.can_lose_worker()
}
