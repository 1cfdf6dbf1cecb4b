//! Copies of hosts: as every InfraEnv has them that knows them.

use super::{Copies, Kept};
use muster_contract::ClientError;
use muster_contract::HubClient;
use muster_contract::v1::change::{Change, ChangeKind, ChangeOp};
use muster_contract::v1::host::HostDetail;
use std::sync::Arc;
use uuid::Uuid;

/// A host as every InfraEnv has it that knows it.
pub type Rows = Arc<[HostDetail]>;

pub type HostCopies = Copies<Rows>;

impl Kept for Rows {
    fn bytes(&self) -> usize {
        self.iter().map(weight).sum()
    }
}

impl HostCopies {
    /// From here if that is as new as the feed, else from the hub.
    pub async fn rows(&self, hub: &HubClient, host: Uuid) -> Result<Rows, ClientError> {
        self.get(host, async { Ok(hub.host_rows(host).await?.hosts.into()) })
            .await
    }

    /// A change from the hub's feed.
    pub fn note_change(&self, change: &Change) {
        match change.kind.known() {
            Some(ChangeKind::Host) => self.changed(change.id, |rows| is_news(change, rows)),
            Some(ChangeKind::Cluster | ChangeKind::InfraEnv) | None => {}
        }
    }

    /// The operator changed what belongs to a cluster, and the feed has not reported it yet.
    pub fn forget_cluster(&self, cluster: Uuid) {
        self.forget_those(|rows| rows.iter().any(|row| row.host.cluster_id == Some(cluster)));
    }

    /// The same for an InfraEnv.
    pub fn forget_infra_env(&self, infra_env: Uuid) {
        self.forget_those(|rows| rows.iter().any(|row| row.host.infra_env_id == infra_env));
    }
}

/// Whether a change is newer than the copy.
fn is_news(change: &Change, rows: &[HostDetail]) -> bool {
    let known = rows
        .iter()
        .find(|row| Some(row.host.infra_env_id) == change.infra_env_id);
    match change.op {
        ChangeOp::Put => known.is_none_or(|row| row.revision < change.revision),
        ChangeOp::Delete => known.is_some(),
    }
}

/// About how much room it takes; the rest of it is small.
fn weight(row: &HostDetail) -> usize {
    let host = &row.host;
    let long = [
        &host.inventory,
        &host.validations_info,
        &host.connectivity,
        &host.disks_info,
        &host.images_status,
        &host.domain_name_resolutions,
        &host.ignition_config_overrides,
    ];
    let long: usize = long.iter().map(|text| text.len()).sum();
    size_of::<HostDetail>() + 1024 + long
}

#[cfg(test)]
mod tests {
    use super::super::MOST_BYTES;
    use super::*;
    use jiff::Timestamp;
    use muster_contract::v2::host::HostView;

    const HOST: Uuid = Uuid::from_u128(1);
    const POOL: Uuid = Uuid::from_u128(2);

    fn row(revision: i64, inventory: usize) -> HostDetail {
        HostDetail {
            revision,
            host: HostView {
                id: HOST,
                infra_env_id: POOL,
                inventory: "x".repeat(inventory),
                ..HostView::default()
            },
            ..HostDetail::default()
        }
    }

    fn change(op: ChangeOp, revision: i64) -> Change {
        Change {
            seq: 1,
            kind: ChangeKind::Host.into(),
            id: HOST,
            infra_env_id: Some(POOL),
            cluster_id: None,
            op,
            revision,
            status: None,
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn fed() -> HostCopies {
        let copies = HostCopies::default();
        copies.start_over(true);
        copies
    }

    /// Asks and is answered.
    fn ask(copies: &HostCopies, host: Uuid, row: HostDetail) {
        let question = copies.begin(host).unwrap_err();
        copies.keep(host, question, &[row].into());
    }

    fn has(copies: &HostCopies, host: Uuid) -> bool {
        copies.begin(host).is_ok()
    }

    #[test]
    fn a_copy_is_good_until_the_feed_reports_a_newer_revision() {
        let copies = fed();
        ask(&copies, HOST, row(3, 0));
        copies.note_change(&change(ChangeOp::Put, 3));
        assert!(has(&copies, HOST), "that was known");
        copies.note_change(&change(ChangeOp::Put, 4));
        assert!(!has(&copies, HOST));
        ask(&copies, HOST, row(4, 0));
        copies.note_change(&change(ChangeOp::Delete, 5));
        assert!(!has(&copies, HOST));
        let mut elsewhere = change(ChangeOp::Put, 1);
        elsewhere.infra_env_id = Some(Uuid::from_u128(9));
        ask(&copies, HOST, row(4, 0));
        copies.note_change(&elsewhere);
        assert!(!has(&copies, HOST), "one more InfraEnv knows it");
    }

    #[test]
    fn an_answer_that_was_overtaken_is_not_kept() {
        for overtake in [
            |copies: &HostCopies| copies.note_change(&change(ChangeOp::Put, 1)),
            |copies: &HostCopies| copies.forget(HOST),
            |copies: &HostCopies| copies.forget_cluster(Uuid::from_u128(7)),
            |copies: &HostCopies| copies.start_over(true),
            |copies: &HostCopies| drop(copies.begin(HOST)),
        ] {
            let copies = fed();
            let question = copies.begin(HOST).unwrap_err();
            overtake(&copies);
            copies.keep(HOST, question, &[row(3, 0)].into());
            assert!(!has(&copies, HOST));
        }
    }

    #[test]
    fn nothing_is_kept_while_the_feed_is_not_read() {
        let copies = HostCopies::default();
        ask(&copies, HOST, row(3, 0));
        assert!(!has(&copies, HOST));
        let copies = fed();
        ask(&copies, HOST, row(3, 0));
        copies.start_over(false);
        ask(&copies, HOST, row(3, 0));
        assert!(!has(&copies, HOST));
    }

    #[test]
    fn what_is_written_from_here_is_asked_for_anew() {
        let copies = fed();
        ask(&copies, HOST, row(3, 0));
        copies.forget_infra_env(Uuid::from_u128(9));
        assert!(has(&copies, HOST), "another one");
        copies.forget_infra_env(POOL);
        assert!(!has(&copies, HOST));
    }

    #[test]
    fn the_oldest_copies_make_room() {
        let copies = fed();
        let hosts: Vec<Uuid> = (10..20).map(Uuid::from_u128).collect();
        for host in &hosts {
            ask(&copies, *host, row(1, MOST_BYTES / 4));
        }
        let kept: Vec<bool> = hosts.iter().map(|host| has(&copies, *host)).collect();
        assert_eq!(kept.iter().filter(|kept| **kept).count(), 3);
        assert_eq!(kept[7..], [true, true, true]);
        assert!(copies.state().bytes <= MOST_BYTES);
    }
}
