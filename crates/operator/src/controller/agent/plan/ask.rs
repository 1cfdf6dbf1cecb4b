//! Whether the cluster that a host becomes or was a node of must be asked, and what.

use super::{cleanup, day_two, leave, lending, node_name};
use crate::controller::agent::snapshot::Snapshot;
use crate::crd::keys::label;
use crate::key::Key;
use kube::ResourceExt;

/// What is to be read from a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub purpose: Purpose,
    /// Its ClusterDeployment.
    pub cluster: Key,
    pub node: String,
    /// The machine behind the node as well.
    pub machine: bool,
    /// The BareMetalHost of the host, beside its Agent: it may have a machine there before it is a node.
    pub metal: Option<Key>,
    /// Requests for certificates as well.
    pub csrs: bool,
}

/// Why a cluster is asked. A host can have left one that does not answer and be a node of another: the one it is in
/// comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The Agent is deleted, and its node with it.
    Leave,
    /// The node comes up.
    Follow,
    /// The node is fetched back.
    Reclaim,
    /// The host is back, and its node is to go.
    Clean,
}

pub fn question(snapshot: &Snapshot) -> Option<Question> {
    let agent = snapshot.agent.as_deref()?;
    let ask = |purpose, cluster| Question {
        purpose,
        cluster,
        node: node_name(Some(agent), snapshot.row.as_ref()),
        machine: purpose == Purpose::Leave,
        metal: agent
            .labels()
            .get(label::BARE_METAL_HOST)
            .map(|name| Key::new(&snapshot.key.namespace, name)),
        csrs: false,
    };
    if agent.metadata.deletion_timestamp.is_some() {
        return leave::cluster_to_clean(snapshot, agent).map(|cluster| ask(Purpose::Leave, cluster));
    }
    let row = snapshot.row.as_ref()?;
    if let Some(cluster) = day_two::follows(agent, row) {
        return Some(Question {
            csrs: day_two::approves(snapshot, row),
            ..ask(Purpose::Follow, cluster)
        });
    }
    if let Some(cluster) = lending::reclaims_from(snapshot, row) {
        return Some(ask(Purpose::Reclaim, cluster));
    }
    let info = cleanup::due(snapshot, agent, row)?;
    Some(Question {
        node: info.node_name.clone(),
        machine: true,
        ..ask(
            Purpose::Clean,
            Key::new(&info.cluster_namespace, &info.cluster_name),
        )
    })
}

/// What was read, if it was read for this.
pub fn answer<'a, T>(snapshot: &Snapshot, purpose: Purpose, read: &'a Option<T>) -> Option<&'a T> {
    let asked = question(snapshot).map(|question| question.purpose);
    read.as_ref().filter(|_| asked == Some(purpose))
}
