//! Hosts that may run for a cluster although the hub takes them for free: it lost its records, and the machine booted
//! discovery. Installing it anew is for people to decide.

use super::is_returning;
use crate::crd::Agent;
use crate::crd::keys::annotation;
use crate::key::Key;
use kube::ResourceExt;
use muster_contract::v1::host::HostDetail;
use muster_vocabulary::{HostStatus, Word};

/// The message about such a host.
pub const EXPLAINED: &str = "This host was installed, but the hub has no record of that. Its disk may still belong \
    to a cluster, so the operator does not bind it again. To use it anew, clear spec.clusterDeploymentName, wait \
    until SpecSynced is True, and set it again.";

/// As the object remembers a host that works for its cluster.
pub fn is_installed(state: &Word<HostStatus>) -> bool {
    state.is(HostStatus::is_installed)
}

/// What is remembered of the host's state holds against what the hub says, as long as nobody clears the reference to
/// the cluster. This does not concern a host that the hub itself took back, or that the operator unbound.
pub fn may_run(agent: &Agent, row: &HostDetail) -> bool {
    let noted = agent.annotations().get(annotation::AGENT_STATE);
    let is_wanted = agent.spec.cluster_deployment_name.is_some();
    let is_free = row.host.cluster_id.is_none() && row.moving_to.is_none() && !is_returning(&row.host.status);
    noted.is_some_and(|state| is_installed(&Word::read(state))) && is_wanted && is_free && !was_unbound(agent)
}

/// The note of the cluster whose node is to go is written before the host leaves. One of an earlier cluster may still be
/// there, if that does not answer.
fn was_unbound(agent: &Agent) -> bool {
    let status = agent.status.as_ref();
    let Some(left) = status.and_then(|status| status.deprovision_info.as_ref()) else {
        return false;
    };
    let left = Key::new(&left.cluster_namespace, &left.cluster_name).to_string();
    agent.annotations().get(annotation::INSTALLED_IN) == Some(&left)
}
