//! How far the current installation has come: one value, so that a reset cannot forget a part of it.

/// The logs that the installed cluster itself sends.
pub use crate::host::Logs as ControllerLogs;

use super::finalizing::FinalizingStage;
use jiff::Timestamp;
use muster_vocabulary::PreparationStatus;
use serde::{Deserialize, Serialize};

/// Everything about the current installation; a reset replaces it as one value (the attempt is kept and grows).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Install {
    /// Grows with every start; it tells results of older attempts apart.
    pub attempt: u32,
    pub preparation: Preparation,
    pub progress: Progress,
    pub finalizing: Option<Finalizing>,
    /// The ingress certificate arrived and was merged into the kubeconfig.
    pub has_kubeconfig: bool,
    pub logs: ControllerLogs,
    /// One more worker may fail and the rest is still enough; counted at the last reconcile.
    pub can_lose_worker: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Preparation {
    pub status: PreparationStatus,
    pub reason: String,
}

/// Percentages of each part and of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Progress {
    pub preparing: i64,
    pub installing: i64,
    pub finalizing: i64,
    pub total: i64,
}

impl Progress {
    /// The parts weigh 10, 70 and 15; the last 5 come when everything is proven to work.
    pub fn weigh(&mut self) {
        let hundredths = 10 * self.preparing + 70 * self.installing + 15 * self.finalizing;
        self.total = hundredths / 100;
    }

    pub fn complete(&mut self) {
        *self = Self {
            preparing: 100,
            installing: 100,
            finalizing: 100,
            total: 100,
        };
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalizing {
    pub stage: FinalizingStage,
    pub started_at: Timestamp,
    pub timed_out: bool,
}

/// Where the nodes' ignition comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IgnitionSource {
    /// The OpenShift installer makes it.
    #[default]
    Installer,
    /// Somebody uploaded it, for any cluster whose nodes are configured by ignition.
    Uploaded,
    /// The running cluster, or a control plane elsewhere, serves it.
    Endpoint,
}

impl IgnitionSource {
    pub const ALL: [IgnitionSource; 3] = [Self::Installer, Self::Uploaded, Self::Endpoint];

    pub fn word(self) -> &'static str {
        match self {
            Self::Installer => "installer",
            Self::Uploaded => "uploaded",
            Self::Endpoint => "endpoint",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.word() == word)
    }
}
