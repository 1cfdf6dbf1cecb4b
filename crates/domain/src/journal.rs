//! What happened, for people: the entries behind `GET /events`.

use muster_vocabulary::{ClusterId, HostId, InfraEnvId};
use serde::{Deserialize, Serialize};

pub use muster_vocabulary::{Category, Severity};

/// One line of history. Ids stay on the entry after the object is gone or has moved on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// A name of the event catalogue (`host_status_updated`, …).
    pub name: String,
    pub severity: Severity,
    #[serde(default)]
    pub category: Category,
    pub message: String,
    pub host: Option<HostId>,
    pub infra_env: Option<InfraEnvId>,
    pub cluster: Option<ClusterId>,
    /// Structured properties as JSON text; empty when there are none.
    pub props: String,
}

/// Longest message the wire promises to carry.
pub const MESSAGE_LIMIT: usize = 4096;

impl Entry {
    pub fn new(name: &str, severity: Severity, message: impl Into<String>) -> Self {
        let mut message = message.into();
        cut(&mut message, MESSAGE_LIMIT);
        Self {
            name: name.into(),
            severity,
            category: Category::User,
            message,
            host: None,
            infra_env: None,
            cluster: None,
            props: String::new(),
        }
    }

    pub fn of_cluster(mut self, cluster: ClusterId) -> Self {
        self.cluster = Some(cluster);
        self
    }

    pub fn of_infra_env(mut self, infra_env: InfraEnvId) -> Self {
        self.infra_env = Some(infra_env);
        self
    }
}

/// Shortens a text to at most `limit` bytes without splitting a character.
pub fn cut(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit)
            .rev()
            .find(|&at| text.is_char_boundary(at))
            .unwrap_or(0);
        text.truncate(end);
    }
}
