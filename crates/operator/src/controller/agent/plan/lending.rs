//! Where the host should be and where it is: lent, moved, taken back.

use super::ask::{Purpose, answer};
use super::{
    Call, Step, Sync, Then, begins_with_metal, doubt, is_day_two, is_installing, is_returning, node_name,
    reclaim, stage,
};
use crate::controller::agent::snapshot::{Failure, Snapshot, Target};
use crate::crd::Agent;
use crate::crd::agent::DeprovisionInfo;
use crate::key::Key;
use muster_contract::v1::host::{ChangeHost, HostDetail, HostSetting};
use muster_domain::cluster::joining;
use muster_vocabulary::{ClusterStatus, HostStatus};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

pub enum Lending {
    /// The host is where it should be.
    InPlace,
    Do(Vec<Step>),
    /// To this cluster, after it got what the object asks for.
    Bind(Uuid),
    /// It cannot be done now; meanwhile the host is given what it lacks.
    Prepare(Sync),
    /// It cannot be done now.
    Wait(Sync, Then),
}

/// The operator watches for what is missing where it can, and polls for it elsewhere.
const LATER: Duration = Duration::from_secs(60);

pub fn decide(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Lending {
    match (&snapshot.target, row.host.cluster_id) {
        (Target::NotWanted, None) if row.moving_to.is_some() => Lending::Do(vec![stay()]),
        (Target::NotWanted, None) => Lending::InPlace,
        (Target::NotWanted, Some(_)) => take_back(snapshot, agent, row),
        (Target::Absent, _) => missing("There is no such ClusterDeployment"),
        (Target::NotInHub, _) => missing("The hub does not have the cluster of the ClusterDeployment"),
        (Target::Found { id, .. }, Some(bound)) if bound == *id => Lending::InPlace,
        (Target::Found { id, .. }, Some(_)) => pass_on(snapshot, agent, row, *id),
        (Target::Found { .. }, None) if doubt::may_run(agent, row) => input(doubt::EXPLAINED.into()),
        (Target::Found { id, .. }, None) => lend(snapshot, row, *id),
    }
}

fn missing(what: &str) -> Lending {
    Lending::Wait(Sync::Backend(format!("{what} yet.")), Then::After(LATER))
}

fn input(why: String) -> Lending {
    Lending::Wait(Sync::Input(why), Then::Rest)
}

/// A move that nobody wants any more.
fn stay() -> Step {
    Step::Hub(Call::Change(ChangeHost {
        clear: vec![HostSetting::Move],
        ..ChangeHost::default()
    }))
}

fn lend(snapshot: &Snapshot, row: &HostDetail, to: Uuid) -> Lending {
    if row.moving_to == Some(to) {
        return Lending::Wait(Sync::Moving, Then::Rest);
    }
    if let Some(why) = refuses(snapshot) {
        return input(why);
    }
    let status = &row.host.status;
    if *status != HostStatus::KnownUnbound {
        let why = format!("The host is {status}. The operator binds it as soon as it is known-unbound.");
        return match row.moving_to {
            Some(_) => Lending::Do(vec![Step::Hub(Call::Move(to))]),
            None => Lending::Prepare(Sync::Backend(why)),
        };
    }
    Lending::Bind(to)
}

/// One request: the hub takes the host back, waits for it, and lends it again.
fn pass_on(snapshot: &Snapshot, agent: &Agent, row: &HostDetail, to: Uuid) -> Lending {
    if let Some(why) = stays(snapshot, row) {
        return input(why);
    }
    if let Some(why) = refuses(snapshot) {
        return input(why);
    }
    if is_installing(&row.host.status) {
        return input(installing(row));
    }
    // It is being fetched back already, and is lent again as soon as it is there.
    if is_returning(&row.host.status) {
        return Lending::Wait(Sync::Moving, Then::Rest);
    }
    let mut steps = note(snapshot, agent, row);
    match fetch(snapshot, row) {
        // The hub lends it again once it is back; the next reconciliation asks for that.
        Some(deeds) => steps.extend(deeds),
        None => steps.push(Step::Hub(Call::Move(to))),
    }
    go(snapshot, steps)
}

fn take_back(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Lending {
    if let Some(why) = stays(snapshot, row) {
        return input(why);
    }
    let mut steps = note(snapshot, agent, row);
    match fetch(snapshot, row) {
        Some(deeds) => steps.extend(deeds),
        None if is_installing(&row.host.status) => {
            steps.extend([Step::Hub(Call::Reset), Step::Hub(Call::Unbind)]);
        }
        None => steps.push(Step::Hub(Call::Unbind)),
    }
    go(snapshot, steps)
}

/// What the hub refused is not sent again in the same reconcile.
fn go(snapshot: &Snapshot, steps: Vec<Step>) -> Lending {
    match &snapshot.failure {
        Some(failure @ Failure::Hub(_)) => {
            let sync = Sync::after(failure);
            let then = sync.then(snapshot);
            Lending::Wait(sync, then)
        }
        Some(Failure::Spoke(_)) | None => Lending::Do(steps),
    }
}

/// Why the host cannot leave the cluster it is in.
fn stays(snapshot: &Snapshot, row: &HostDetail) -> Option<String> {
    if snapshot.is_early_bound() {
        return Some(
            "The InfraEnv of this host belongs to a cluster, so you cannot unbind the host. Delete the \
            Agent instead."
                .into(),
        );
    }
    (is_installing(&row.host.status) && !is_day_two(row)).then(|| installing(row))
}

fn installing(row: &HostDetail) -> String {
    format!(
        "The host is being installed ({}). Until that ends, you can unbind only a host that joins a running \
         cluster.",
        row.host.status
    )
}

/// Why the cluster does not take the host.
fn refuses(snapshot: &Snapshot) -> Option<String> {
    let Target::Found {
        status, architecture, ..
    } = &snapshot.target
    else {
        return None;
    };
    if !status.is(ClusterStatus::accepts_hosts) {
        return Some(format!("The cluster is {status} and takes no hosts now."));
    }
    let own = snapshot
        .infra_env
        .as_ref()
        .map(|infra_env| infra_env.spec.cpu_architecture.as_str());
    let own = own.filter(|own| !own.is_empty()).unwrap_or("x86_64");
    (!joining::fits(architecture, own))
        .then(|| format!("The cluster needs {architecture} hosts, and this one is {own}."))
}

/// Where the node of the host is to be removed once the host is back; written before the host goes.
fn note(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Vec<Step> {
    let before = agent
        .status
        .as_ref()
        .and_then(|status| status.deprovision_info.clone());
    let known = begins_with_metal(agent, row) || !stage(row).is_empty();
    let (Some(cluster), true) = (&snapshot.tenant, known) else {
        return Vec::new();
    };
    let info = DeprovisionInfo {
        cluster_name: cluster.name.clone(),
        cluster_namespace: cluster.namespace.clone(),
        node_name: node_name(Some(agent), Some(row)),
        message: "The operator removes the node when the host is back.".into(),
    };
    if before.as_ref() == Some(&info) {
        return Vec::new();
    }
    vec![Step::Status(json!({ "deprovision_info": info }))]
}

/// The ClusterDeployment of the cluster from which the host can be fetched back from the inside.
pub fn reclaims_from(snapshot: &Snapshot, row: &HostDetail) -> Option<Key> {
    snapshot.reclaim_image.as_ref()?;
    let leaves = match (&snapshot.target, row.host.cluster_id) {
        (Target::NotWanted, Some(_)) => true,
        (Target::Found { id, .. }, Some(bound)) => *id != bound && refuses(snapshot).is_none(),
        (Target::Found { .. } | Target::NotWanted, None) | (Target::Absent | Target::NotInHub, _) => false,
    };
    let can_reclaim = row.host.status.is(HostStatus::can_reclaim);
    (leaves && can_reclaim && !snapshot.has_metal && stays(snapshot, row).is_none())
        .then(|| snapshot.tenant.clone())
        .flatten()
}

/// Nothing when it must come back by another way: the cluster cannot be reached, or does not know the node.
fn fetch(snapshot: &Snapshot, row: &HostDetail) -> Option<Vec<Step>> {
    reclaims_from(snapshot, row)?;
    if matches!(snapshot.failure, Some(Failure::Spoke(_))) || is_returning(&row.host.status) {
        return None;
    }
    let node = answer(snapshot, Purpose::Reclaim, &snapshot.spoke)?
        .as_ref()
        .ok()?
        .node
        .as_ref()?;
    let objects = reclaim::objects(snapshot.reclaim_image.as_deref()?, node, row, &snapshot.trust);
    let deeds = objects
        .into_iter()
        .map(|object| Step::Spoke(super::Deed::Apply(Box::new(object))));
    Some(deeds.chain([Step::Hub(Call::Reclaim)]).collect())
}
