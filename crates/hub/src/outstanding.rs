//! Long steps that an agent is still working on: they are not handed out again before their time is over.
//!
//! Kept in memory only. A hub that restarts hands them out once more, which agents take well: they see that the same
//! work is under way.

use jiff::{SignedDuration, Timestamp};
use muster_domain::host::steps::Step;
use std::sync::{Mutex, PoisonError};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// At most a handful, and without an allocation while there are none.
#[derive(Debug, Default)]
pub struct Outstanding(Mutex<Vec<Handed>>);

#[derive(Debug, Clone, Copy)]
struct Handed {
    step: Step,
    /// Of the arguments, where another question is another step.
    about: u64,
    until_micros: i64,
}

/// What is asked for again while an earlier answer is still awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Nothing.
    Never,
    /// The same about something else: other hosts, other networks.
    IfOtherwise,
}

/// How long the answer to a step may take; `None` for work of seconds, which is asked for at every poll.
fn patience(step: Step) -> Option<(SignedDuration, Again)> {
    let minutes = SignedDuration::from_mins;
    match step {
        // The image of the installer is pulled before it can say anything.
        Step::Install => Some((minutes(5), Again::Never)),
        // What the agent is given for the test, and a minute for the way.
        Step::InstallationDiskSpeedCheck => Some((minutes(9), Again::Never)),
        Step::ContainerImageAvailability => Some((minutes(17), Again::Never)),
        Step::LogsGather | Step::DownloadBootArtifacts | Step::UpgradeAgent => {
            Some((minutes(10), Again::Never))
        }
        // Every address of every other host is tried, or every address of a network; agents would run several side by
        // side. An answer that says nothing new is not sent, so the deadline is also how often it is measured then.
        Step::ConnectivityCheck | Step::FreeNetworkAddresses => Some((minutes(3), Again::IfOtherwise)),
        // A container has ten seconds to end before it is killed; a reboot takes the agent with it.
        Step::StopInstallation | Step::RebootForReclaim => Some((minutes(1), Again::Never)),
        Step::Execute
        | Step::Inventory
        | Step::DhcpLeaseAllocate
        | Step::ApiVipConnectivityCheck
        | Step::TangConnectivityCheck
        | Step::NtpSynchronizer
        | Step::DomainResolution
        | Step::NextStepRunner
        | Step::VerifyVips => None,
    }
}

impl Outstanding {
    /// Whether the step may be handed out now; if so it counts as handed out.
    pub fn hand_out(&self, step: Step, args: &[String], now: Timestamp) -> bool {
        let Some((patience, again)) = patience(step) else {
            return true;
        };
        let about = match again {
            Again::Never => 0,
            Again::IfOtherwise => args
                .iter()
                .fold(0, |seed, arg| xxh3_64_with_seed(arg.as_bytes(), seed)),
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|handed| handed.until_micros > now.as_microsecond());
        if all
            .iter()
            .any(|handed| handed.step == step && handed.about == about)
        {
            return false;
        }
        all.retain(|handed| handed.step != step);
        all.push(Handed {
            step,
            about,
            until_micros: (now + patience).as_microsecond(),
        });
        true
    }

    /// The agent has answered.
    pub fn answered(&self, step: Step) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|handed| handed.step != step);
    }

    /// The agent started anew, and what it was doing is lost.
    pub fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
    }

    #[test]
    fn a_long_step_is_handed_out_again_only_after_an_answer_a_new_start_or_its_time() {
        for step in [
            Step::Install,
            Step::InstallationDiskSpeedCheck,
            Step::ContainerImageAvailability,
            Step::LogsGather,
            Step::DownloadBootArtifacts,
            Step::UpgradeAgent,
            Step::ConnectivityCheck,
            Step::FreeNetworkAddresses,
            Step::StopInstallation,
            Step::RebootForReclaim,
        ] {
            let steps = Outstanding::default();
            assert!(steps.hand_out(step, &[], at(0)));
            let soon = at(0) + SignedDuration::from_secs(59);
            assert!(!steps.hand_out(step, &[], soon), "{step:?} is under way");
            assert!(
                steps.hand_out(Step::Inventory, &[], soon),
                "another is not held up"
            );
            assert!(steps.hand_out(step, &[], at(18)), "{step:?}: its time is over");
            steps.answered(step);
            assert!(steps.hand_out(step, &[], at(18)), "{step:?} was answered");
            steps.forget();
            assert!(steps.hand_out(step, &[], at(18)), "{step:?}: a new agent");
        }
    }

    #[test]
    fn work_of_seconds_is_asked_for_at_every_poll() {
        let steps = Outstanding::default();
        for step in [
            Step::Inventory,
            Step::NtpSynchronizer,
            Step::DomainResolution,
            Step::VerifyVips,
        ] {
            assert!(steps.hand_out(step, &[], at(0)) && steps.hand_out(step, &[], at(0)));
        }
    }

    #[test]
    fn other_hosts_are_another_question() {
        let (steps, few, many) = (Outstanding::default(), ["a".to_owned()], ["b".to_owned()]);
        assert!(steps.hand_out(Step::ConnectivityCheck, &few, at(0)));
        assert!(!steps.hand_out(Step::ConnectivityCheck, &few, at(1)));
        assert!(steps.hand_out(Step::ConnectivityCheck, &many, at(1)));
        assert!(!steps.hand_out(Step::ConnectivityCheck, &many, at(2)));
        assert!(steps.hand_out(Step::Install, &few, at(0)));
        assert!(
            !steps.hand_out(Step::Install, &many, at(1)),
            "an installer is not started twice"
        );
    }
}
