//! A status where one field tells that of a host, of a cluster or of an InfraEnv.

use crate::rules::words;
use crate::v1::change::ChangeKind;
use muster_vocabulary::{ClusterStatus, HostStatus, Word};
use serde::{Serialize, Serializer};
use std::fmt;

words! {
    /// Whether an InfraEnv has hosts to lend.
    pub enum InfraEnvStatus {
        Empty = "empty",
        NoFreeHosts = "no-free-hosts",
        HasFreeHosts = "has-free-hosts",
    }
}

/// The status of a row. The wire tells beside it what kind of row that is; it is read with this knowledge.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum RowStatus {
    Host(Word<HostStatus>),
    Cluster(Word<ClusterStatus>),
    InfraEnv(Word<InfraEnvStatus>),
    /// Of a kind of row that only a newer hub knows.
    Other(Box<str>),
}

impl RowStatus {
    pub fn read(kind: Option<ChangeKind>, text: &str) -> Self {
        match kind {
            Some(ChangeKind::Host) => Self::Host(Word::read(text)),
            Some(ChangeKind::Cluster) => Self::Cluster(Word::read(text)),
            Some(ChangeKind::InfraEnv) => Self::InfraEnv(Word::read(text)),
            None => Self::Other(text.into()),
        }
    }

    /// `subject` begins with the kind, as in `host/worker-3`.
    pub(crate) fn about(subject: &str, text: &str) -> Self {
        let kind = subject.split('/').next().and_then(ChangeKind::from_word);
        Self::read(kind, text)
    }

    /// As the wire spells it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Host(word) => word.as_str(),
            Self::Cluster(word) => word.as_str(),
            Self::InfraEnv(word) => word.as_str(),
            Self::Other(text) => text,
        }
    }
}

impl From<HostStatus> for RowStatus {
    fn from(status: HostStatus) -> Self {
        Self::Host(status.into())
    }
}

impl From<ClusterStatus> for RowStatus {
    fn from(status: ClusterStatus) -> Self {
        Self::Cluster(status.into())
    }
}

impl From<InfraEnvStatus> for RowStatus {
    fn from(status: InfraEnvStatus) -> Self {
        Self::InfraEnv(status.into())
    }
}

impl fmt::Debug for RowStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for RowStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for RowStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::change::Change;
    use crate::v1::plan::PlanStep;
    use serde_json::{Value, json};

    fn change(kind: &str, status: &str) -> Value {
        json!({
            "seq": 1, "kind": kind, "id": "00000000-0000-0000-0000-000000000001", "op": "put", "revision": 2,
            "status": status, "at": "2026-01-01T00:00:00Z",
        })
    }

    #[test]
    fn the_same_word_is_read_as_the_status_of_what_changed() {
        for (kind, expected) in [
            ("host", RowStatus::from(HostStatus::Installing)),
            ("cluster", RowStatus::from(ClusterStatus::Installing)),
            ("satellite", RowStatus::Other("installing".into())),
        ] {
            let sent = change(kind, "installing");
            let read: Change = serde_json::from_value(sent.clone()).unwrap();
            assert_eq!(read.status, Some(expected), "{kind}");
            assert_eq!(serde_json::to_value(&read).unwrap(), sent);
        }
    }

    #[test]
    fn a_status_of_a_newer_hub_does_not_end_the_feed() {
        let sent = change("host", "dozing");
        let read: Change = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(read.status.as_ref().map(RowStatus::as_str), Some("dozing"));
        assert_eq!(serde_json::to_value(&read).unwrap(), sent);
    }

    #[test]
    fn steps_of_a_plan_are_read_by_their_subject() {
        let sent = json!({
            "order": 1, "subject": "cluster/demo", "action": "cancel the installation", "from": "installing",
            "to": "cancelled", "destroys": [],
        });
        let step: PlanStep = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(step.from, Some(ClusterStatus::Installing.into()));
        assert_eq!(step.to, Some(ClusterStatus::Cancelled.into()));
        assert_eq!(serde_json::to_value(&step).unwrap(), sent);
    }
}
