//! Whether a machine may be booted anew because its image became another.
//!
//! A reboot in the wrong moment destroys an installation, so a machine is booted anew only while its host is
//! discovered and offered, or while it comes back to the pool. A host that must not be disturbed now is reconciled
//! again when that is over.

use crate::crd::Agent;
use muster_vocabulary::{HostStatus as Status, Route};

/// Both have to allow it, the Agent and the hub: an Agent may lag behind, after a restart by minutes. `None` when the hub
/// could not be asked.
pub(crate) fn may_be_booted(agent: &Agent, states_in_hub: Option<&[String]>) -> bool {
    let states = states_in_hub.unwrap_or_default();
    !states.is_empty() && agent.state().is(is_undisturbed) && states.iter().all(|word| allows(word))
}

/// A word that is not known is one of a newer hub, and nobody knows what it means.
fn allows(word: &str) -> bool {
    Status::from_word(word).is_some_and(is_undisturbed)
}

/// Nothing is lost by a reboot in this state.
fn is_undisturbed(status: Status) -> bool {
    match status {
        Status::Discovering
        | Status::Known
        | Status::Disconnected
        | Status::Insufficient
        | Status::Disabled
        | Status::PendingForInput
        | Status::DiscoveringUnbound
        | Status::KnownUnbound
        | Status::DisconnectedUnbound
        | Status::InsufficientUnbound
        | Status::DisabledUnbound => true,
        Status::PreparingForInstallation
        | Status::PreparingFailed
        | Status::PreparingSuccessful
        | Status::Installing
        | Status::InstallingInProgress
        | Status::InstallingPendingUserAction
        | Status::ResettingPendingUserAction
        | Status::Resetting
        | Status::Installed
        | Status::AddedToExistingCluster
        | Status::Cancelled
        | Status::Error
        // It ends by itself in a moment, one way or the other.
        | Status::Binding => false,
        Status::Unbinding
        | Status::UnbindingPendingUserAction
        | Status::Reclaiming
        | Status::ReclaimingRebooting => match status.way_back() {
            // What the machine ran was taken away from it. If it cannot register with the image before, only another helps.
            Some(Route::Boot) => true,
            // These end by themselves in a moment, too.
            Some(Route::AgentRestart | Route::Reclaim) | None => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::agent::AgentStatus;

    fn agent(state: &str) -> Agent {
        let mut agent = Agent::new("host-1", Default::default());
        let mut status = AgentStatus::default();
        status.debug_info.state = state.into();
        agent.status = Some(status);
        agent
    }

    #[test]
    fn neither_the_agent_nor_the_hub_may_know_of_anything_that_a_reboot_would_destroy() {
        let (free, busy) = ("known-unbound", "installing-in-progress");
        let states =
            |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        let cases = [
            (free, Some(states(&[free])), true),
            ("known", Some(states(&["insufficient"])), true),
            (busy, Some(states(&[free])), false),
            (free, Some(states(&[busy])), false),
            // The machine is in two pools.
            (free, Some(states(&[free, busy])), false),
            (free, Some(states(&[free, "known"])), true),
            // It registers again, or the hub does not answer.
            (free, Some(states(&[])), false),
            (free, None, false),
            ("", Some(states(&[free])), false),
            ("of-tomorrow", Some(states(&[free])), false),
            (free, Some(states(&["of-tomorrow"])), false),
        ];
        for (state, in_hub, expected) in cases {
            let answer = may_be_booted(&agent(state), in_hub.as_deref());
            assert_eq!(answer, expected, "{state} {in_hub:?}");
        }
    }
}
