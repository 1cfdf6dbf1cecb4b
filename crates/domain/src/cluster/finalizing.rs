//! The stages in which an installed cluster becomes a working one, and their limits.

use super::Operator;
use jiff::SignedDuration;

pub use muster_vocabulary::FinalizingStage;

use FinalizingStage::*;

/// How long a stage may last. With soft timeouts a slow start is reported early and fails late.
pub fn limit(stage: FinalizingStage, soft: bool) -> SignedDuration {
    match stage {
        ClusterOperators if !soft => SignedDuration::from_hours(10),
        ClusterOperators | RouterCa | OlmCsvInit | OlmCsv | Done => SignedDuration::from_mins(70),
        OlmManifests | OlmSetupJobs => SignedDuration::from_mins(10),
    }
}

/// The limit with the patience that the chosen operators ask for.
pub fn limit_for(stage: FinalizingStage, soft: bool, operators: &[Operator]) -> SignedDuration {
    let own = limit(stage, soft);
    match stage {
        OlmManifests | OlmCsvInit | OlmCsv | OlmSetupJobs => operators
            .iter()
            .filter(|operator| !operator.builtin)
            .map(|operator| SignedDuration::from_secs(operator.timeout_seconds))
            .fold(own, SignedDuration::max),
        ClusterOperators | RouterCa | Done => own,
    }
}

/// Optional operators may lag behind: the cluster works without them.
pub fn is_fatal_when_late(stage: FinalizingStage) -> bool {
    match stage {
        OlmManifests | OlmCsvInit | OlmCsv => false,
        ClusterOperators | RouterCa | OlmSetupJobs | Done => true,
    }
}
