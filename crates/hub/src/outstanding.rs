//! Long steps that an agent is still working on: they are not handed out again before their time is over.
//!
//! Kept in memory only. A hub that restarts hands them out once more, which agents take well: they see that the same
//! work is under way.

use jiff::{SignedDuration, Timestamp};
use muster_domain::host::steps::Step;
use std::sync::{Mutex, PoisonError};

/// Nearly always empty, and then without an allocation.
#[derive(Debug, Default)]
pub struct Outstanding(Mutex<Vec<(Step, i64)>>);

/// How long the answer to a step may take; `None` for work of seconds, which is asked for at every poll.
fn patience(step: Step) -> Option<SignedDuration> {
    match step {
        // The image of the installer is pulled before it can say anything.
        Step::Install => Some(SignedDuration::from_mins(5)),
        // What the agent is given for the test, and a minute for the way.
        Step::DiskSpeed => Some(SignedDuration::from_mins(9)),
        Step::Images => Some(SignedDuration::from_mins(17)),
        Step::LogsGather | Step::DownloadBootArtifacts => Some(SignedDuration::from_mins(10)),
        Step::ConnectivityCheck
        | Step::Execute
        | Step::Inventory
        | Step::FreeAddresses
        | Step::DhcpLease
        | Step::ApiVip
        | Step::Tang
        | Step::Ntp
        | Step::Domains
        | Step::StopInstallation
        | Step::NextStepRunner
        | Step::UpgradeAgent
        | Step::RebootForReclaim
        | Step::VerifyVips => None,
    }
}

impl Outstanding {
    /// Whether the step may be handed out now; if so it counts as handed out.
    pub fn hand_out(&self, step: Step, now: Timestamp) -> bool {
        let Some(patience) = patience(step) else {
            return true;
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, until)| *until > now.as_microsecond());
        if all.iter().any(|(other, _)| *other == step) {
            return false;
        }
        all.push((step, (now + patience).as_microsecond()));
        true
    }

    /// The agent has answered.
    pub fn answered(&self, step: Step) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(other, _)| *other != step);
    }

    /// The agent started anew, and what it was doing is lost.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_step_is_handed_out_again_only_after_an_answer_a_new_start_or_its_time() {
        let steps = Outstanding::default();
        let start = Timestamp::UNIX_EPOCH;
        let later = |minutes| start + SignedDuration::from_mins(minutes);
        assert!(steps.hand_out(Step::Install, start));
        assert!(!steps.hand_out(Step::Install, later(4)));
        assert!(
            steps.hand_out(Step::Images, later(4)),
            "another step is not held up"
        );
        assert!(steps.hand_out(Step::Install, later(6)), "its time is over");
        steps.answered(Step::Install);
        assert!(steps.hand_out(Step::Install, later(6)));
        steps.forget();
        assert!(steps.hand_out(Step::Install, later(6)));
        assert!(steps.hand_out(Step::Inventory, start) && steps.hand_out(Step::Inventory, start));
    }
}
