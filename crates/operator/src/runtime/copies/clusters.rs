//! Copies of clusters: what an Agent has to know of the cluster it is bound to.

use super::{Copies, Kept};
use muster_contract::v1::change::{Change, ChangeKind};
use muster_contract::{ClientError, HubClient};
use muster_vocabulary::{ClusterStatus, Word};
use uuid::Uuid;

/// What of a cluster does not depend on its hosts: only a change of the cluster itself makes it old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    pub status: Word<ClusterStatus>,
    pub architecture: String,
}

pub type ClusterCopies = Copies<ClusterFacts>;

impl Kept for ClusterFacts {
    fn bytes(&self) -> usize {
        size_of::<Self>() + 256 + self.architecture.len()
    }
}

impl ClusterCopies {
    /// From here if that is as new as the feed, else from the hub.
    pub async fn facts(&self, hub: &HubClient, cluster: Uuid) -> Result<ClusterFacts, ClientError> {
        let fetch = async {
            let view = hub.cluster_without_hosts(cluster).await?;
            Ok(ClusterFacts {
                status: view.status,
                architecture: view.cpu_architecture.into_owned(),
            })
        };
        self.get(cluster, fetch).await
    }

    /// A change from the hub's feed.
    pub fn note_change(&self, change: &Change) {
        match change.kind.known() {
            Some(ChangeKind::Cluster) => self.forget(change.id),
            Some(ChangeKind::Host | ChangeKind::InfraEnv) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use muster_contract::v1::change::ChangeOp;

    const CLUSTER: Uuid = Uuid::from_u128(1);

    fn change(kind: ChangeKind, id: Uuid) -> Change {
        Change {
            seq: 1,
            kind: kind.into(),
            id,
            infra_env_id: None,
            cluster_id: Some(CLUSTER),
            op: ChangeOp::Put,
            revision: 2,
            status: None,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_copy_is_good_until_its_cluster_changes() {
        let copies = ClusterCopies::default();
        copies.start_over(true);
        let facts = ClusterFacts {
            status: ClusterStatus::Ready.into(),
            architecture: "x86_64".into(),
        };
        let question = copies.begin(CLUSTER).unwrap_err();
        copies.keep(CLUSTER, question, &facts);
        copies.note_change(&change(ChangeKind::Host, Uuid::from_u128(5)));
        copies.note_change(&change(ChangeKind::Cluster, Uuid::from_u128(6)));
        assert_eq!(copies.begin(CLUSTER), Ok(facts));
        copies.note_change(&change(ChangeKind::Cluster, CLUSTER));
        let question = copies.begin(CLUSTER).unwrap_err();
        copies.note_change(&change(ChangeKind::Cluster, CLUSTER));
        copies.keep(
            CLUSTER,
            question,
            &ClusterFacts {
                status: ClusterStatus::Ready.into(),
                architecture: String::new(),
            },
        );
        assert!(copies.begin(CLUSTER).is_err(), "an answer that was overtaken");
    }
}
