//! What happened, told to people: the entries behind `GET /events`.

use crate::id::{ClusterId, HostId, InfraEnvId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Error,
    Critical,
}

impl Severity {
    pub const ALL: [Severity; 4] = [Self::Info, Self::Warning, Self::Error, Self::Critical];

    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.word() == word)
    }
}

/// For whom an entry is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    #[default]
    User,
    /// For statistics; shown only on request.
    Metrics,
}

impl Category {
    pub const ALL: [Category; 2] = [Self::User, Self::Metrics];

    pub fn word(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Metrics => "metrics",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.word() == word)
    }
}

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
