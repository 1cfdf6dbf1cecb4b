//! Operators of a cluster that clients watch: the console always, others when they were asked for.

use jiff::Timestamp;
use muster_vocabulary::OperatorStatus as Reported;
use serde::{Deserialize, Serialize};

/// How long an operator may take when nothing else is said: the console's hour.
pub const DEFAULT_TIMEOUT_SECONDS: i64 = 3600;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Operator {
    pub name: String,
    pub properties: String,
    /// Part of every cluster of its kind; cannot be unchosen.
    pub builtin: bool,
    pub status: OperatorStatus,
    pub version: String,
    pub status_info: String,
    pub status_updated_at: Option<Timestamp>,
    /// 0 = the default.
    pub timeout_seconds: i64,
}

impl Operator {
    pub fn timeout_seconds(&self) -> i64 {
        match self.timeout_seconds {
            0 => DEFAULT_TIMEOUT_SECONDS,
            seconds => seconds,
        }
    }

    /// As it was before the installation.
    pub fn forget_status(&mut self) {
        self.status = OperatorStatus::Unknown;
        self.version.clear();
        self.status_info.clear();
        self.status_updated_at = None;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperatorStatus {
    /// Nobody has reported it yet; the wire leaves the word out.
    #[default]
    Unknown,
    Progressing,
    Available,
    Failed,
}

impl OperatorStatus {
    pub const ALL: [OperatorStatus; 4] = [Self::Unknown, Self::Progressing, Self::Available, Self::Failed];

    /// What its controller reported last.
    pub fn reported(self) -> Option<Reported> {
        match self {
            Self::Unknown => None,
            Self::Progressing => Some(Reported::Progressing),
            Self::Available => Some(Reported::Available),
            Self::Failed => Some(Reported::Failed),
        }
    }

    /// Empty while nothing was heard of it.
    pub fn word(self) -> &'static str {
        self.reported().map_or("", Reported::word)
    }

    /// Nothing more is waited for.
    pub fn is_final(self) -> bool {
        match self {
            Self::Available | Self::Failed => true,
            Self::Unknown | Self::Progressing => false,
        }
    }
}

impl From<Reported> for OperatorStatus {
    fn from(reported: Reported) -> Self {
        match reported {
            Reported::Progressing => Self::Progressing,
            Reported::Available => Self::Available,
            Reported::Failed => Self::Failed,
        }
    }
}
