//! Removing from a cluster the node of a host that has left it.

use super::ask::{Purpose, answer};
use super::{Deed, Step, is_returning};
use crate::controller::agent::snapshot::{Failure, Snapshot};
use crate::controller::agent::spoke::Spoke;
use crate::crd::Agent;
use crate::crd::agent::DeprovisionInfo;
use crate::crd::keys::annotation;
use crate::key::Key;
use crate::runtime::spoke::NoSpoke;
use kube::ResourceExt;
use muster_contract::v1::host::HostDetail;

/// The order matters: a cluster with a machine set replaces a node or machine that is simply deleted, so the operator
/// first makes the set shrink with its hosts, and then deletes the host.
pub fn removal(spoke: &Spoke) -> Vec<Step> {
    let machine = match (&spoke.node, &spoke.machine) {
        (None, None) => return Vec::new(),
        (Some(node), None) => return vec![Step::Spoke(Deed::DeleteNode(node.name_any()))],
        // Without a node it was made for a host that never became one.
        (_, Some(machine)) => machine,
    };
    let mut deeds = vec![Deed::DoomMachine(machine.key.clone())];
    deeds.extend(machine.machine_set.clone().map(Deed::ShrinkMachineSet));
    deeds.extend(machine.metal.clone().map(Deed::DeleteMetal));
    if machine.machine_set.is_none() {
        deeds.push(Deed::DeleteMachine(machine.key.clone()));
    }
    deeds.into_iter().map(Step::Spoke).collect()
}

pub fn skips(agent: &Agent) -> bool {
    agent.annotations().contains_key(annotation::SKIP_SPOKE_CLEANUP)
}

/// The note of a cluster whose node must be removed now: the host is in discovery again. As long as the host is still in
/// that cluster, the note is only about to be needed.
pub fn due<'a>(snapshot: &Snapshot, agent: &'a Agent, row: &HostDetail) -> Option<&'a DeprovisionInfo> {
    let info = agent.status.as_ref()?.deprovision_info.as_ref()?;
    let is_back = !is_returning(&row.host.status) && !is_there(snapshot, info);
    (is_back && !skips(agent)).then_some(info)
}

fn is_there(snapshot: &Snapshot, info: &DeprovisionInfo) -> bool {
    snapshot.tenant.as_ref() == Some(&Key::new(&info.cluster_namespace, &info.cluster_name))
}

pub enum Outcome {
    Nothing,
    /// Nothing is left to do after these steps.
    Clean(Vec<Step>),
    /// Not yet; this is what is noted about it.
    Failed(DeprovisionInfo),
}

pub fn after_return(snapshot: &Snapshot, agent: &Agent, row: &HostDetail) -> Outcome {
    let Some(info) = agent
        .status
        .as_ref()
        .and_then(|status| status.deprovision_info.as_ref())
    else {
        return Outcome::Nothing;
    };
    // It was about to leave, and stays after all.
    let wanted = agent.spec.cluster_deployment_name.as_ref().map(Key::from);
    if is_there(snapshot, info) && wanted == snapshot.tenant {
        return Outcome::Clean(Vec::new());
    }
    if is_returning(&row.host.status) || is_there(snapshot, info) {
        return Outcome::Nothing;
    }
    if skips(agent) {
        return Outcome::Clean(Vec::new());
    }
    let why = match (
        &snapshot.failure,
        answer(snapshot, Purpose::Clean, &snapshot.spoke),
    ) {
        (_, None) => return Outcome::Nothing,
        (Some(Failure::Spoke(why)), _) | (_, Some(Err(NoSpoke::Failed(why)))) => why.clone(),
        // Without a kubeconfig there is no cluster any more.
        (_, Some(Err(NoSpoke::NoKubeconfig))) => return Outcome::Clean(Vec::new()),
        (_, Some(Ok(spoke))) => return Outcome::Clean(removal(spoke)),
    };
    Outcome::Failed(DeprovisionInfo {
        message: format!("The operator cannot remove the node yet: {why}"),
        ..info.clone()
    })
}
