//! How many hosts a cluster has of each role, and how many of them may be installed.

use crate::controller::cluster_deployment::snapshot::{Member, Row, Snapshot};
use crate::crd::Agent;
use crate::crd::agent::condition;
use crate::crd::agent_cluster_install::ProvisionRequirements;
use crate::crd::condition::find_service;
use kube::ResourceExt;
use muster_vocabulary::{HostStatus, Role};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    pub found: Count,
    /// Those that passed their checks, and did not fail since.
    pub ready: Count,
    /// Of those that passed their checks and wait, the ones somebody approved, and whose desired reached the hub.
    pub approved: i64,
    /// Names of Agents whose desired did not reach the hub.
    pub unsynced: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    pub masters: i64,
    pub arbiters: i64,
    pub workers: i64,
    /// The hub has not suggested anything yet.
    pub undecided: i64,
}

impl Count {
    pub fn of(needs: &ProvisionRequirements) -> Self {
        Self {
            masters: needs.control_plane_agents,
            arbiters: needs.arbiter_agents,
            workers: needs.worker_agents,
            undecided: 0,
        }
    }

    pub fn total(self) -> i64 {
        self.masters + self.arbiters + self.workers + self.undecided
    }

    fn add(&mut self, role: Option<Role>) {
        let place = match role {
            Some(Role::Master) => &mut self.masters,
            Some(Role::Arbiter) => &mut self.arbiters,
            Some(Role::Worker) => &mut self.workers,
            Some(Role::AutoAssign) | None => &mut self.undecided,
        };
        *place += 1;
    }
}

impl Tally {
    pub fn of(snapshot: &Snapshot, row: &Row) -> Self {
        let mut tally = Self::default();
        for member in &row.hosts {
            let role = role(member);
            tally.found.add(role);
            if has_passed(member) {
                tally.ready.add(role);
            }
            if is_known(member) {
                tally.approved += i64::from(member.agent.as_ref().is_some_and(|agent| is_approved(agent)));
            }
        }
        let unsynced = snapshot
            .agents
            .iter()
            .filter(|(agent, _)| holds(agent, condition::SPEC_SYNCED) == Some(false));
        tally.unsynced = unsynced.map(|(agent, _)| agent.name_any()).collect();
        tally
    }
}

/// Passed all checks and waits.
pub fn is_known(member: &Member) -> bool {
    member.host.status == HostStatus::Known
}

/// Passed all checks, and everything since.
fn has_passed(member: &Member) -> bool {
    let status = &member.host.status;
    status.is(|status| status.is_ready_to_install() || status.is_installing() || status.is_installed())
}

/// Approved, and everything else that is wanted of the host is in the hub, too: otherwise it could be installed with
/// another disk or name than somebody asked for at the same time.
pub fn is_approved(agent: &Agent) -> bool {
    agent.spec.approved
        && holds(agent, condition::SPEC_SYNCED) == Some(true)
        && holds(agent, condition::REQUIREMENTS_MET) == Some(true)
}

fn role(member: &Member) -> Option<Role> {
    match member.host.role.known() {
        Some(role @ (Role::Master | Role::Arbiter | Role::Worker)) => Some(role),
        Some(Role::AutoAssign) | None => member.host.suggested_role.known(),
    }
}

/// `None` while nothing is known.
fn holds(agent: &Agent, type_: &str) -> Option<bool> {
    let conditions = &agent.status.as_ref()?.conditions;
    match find_service(conditions, type_)?.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}
