//! The stages in which an installed cluster becomes a working one, and their limits.

use super::Operator;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

macro_rules! stages {
    ($($name:ident => $word:literal),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum FinalizingStage { $(#[serde(rename = $word)] $name),* }

        impl FinalizingStage {
            pub const ALL: &'static [FinalizingStage] = &[$(FinalizingStage::$name),*];

            pub fn word(self) -> &'static str {
                match self { $(FinalizingStage::$name => $word),* }
            }

            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(FinalizingStage::$name),)* _ => None }
            }
        }
    };
}

// In the order in which the cluster's controller reports them.
stages! {
    ClusterOperators => "Waiting for cluster operators",
    RouterCa => "Adding router ca",
    OlmManifests => "Applying olm manifests",
    OlmCsvInit => "Waiting for olm operators csv initialization",
    OlmCsv => "Waiting for olm operators csv",
    OlmSetupJobs => "Waiting for OLM operator setup jobs",
    Done => "Done",
}

impl FinalizingStage {
    /// How long a stage may last. Somebody who waits softly is told of a slow start early and fails late.
    pub fn limit(self, soft: bool) -> SignedDuration {
        match self {
            Self::ClusterOperators if !soft => SignedDuration::from_hours(10),
            Self::ClusterOperators | Self::RouterCa | Self::OlmCsvInit | Self::OlmCsv | Self::Done => {
                SignedDuration::from_mins(70)
            }
            Self::OlmManifests | Self::OlmSetupJobs => SignedDuration::from_mins(10),
        }
    }

    /// The limit with the patience that the chosen operators ask for.
    pub fn limit_for(self, soft: bool, operators: &[Operator]) -> SignedDuration {
        let own = self.limit(soft);
        match self {
            Self::OlmManifests | Self::OlmCsvInit | Self::OlmCsv | Self::OlmSetupJobs => operators
                .iter()
                .filter(|operator| !operator.builtin)
                .map(|operator| SignedDuration::from_secs(operator.timeout_seconds))
                .fold(own, SignedDuration::max),
            Self::ClusterOperators | Self::RouterCa | Self::Done => own,
        }
    }

    /// Optional operators may lag behind: the cluster works without them.
    pub fn is_fatal_when_late(self) -> bool {
        match self {
            Self::OlmManifests | Self::OlmCsvInit | Self::OlmCsv => false,
            Self::ClusterOperators | Self::RouterCa | Self::OlmSetupJobs | Self::Done => true,
        }
    }
}
