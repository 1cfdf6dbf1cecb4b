//! Whether a machine may be booted anew because its image became another.
//!
//! A reboot in the wrong moment destroys an installation, so a machine is booted anew only while its host is discovered and
//! offered, or while it comes back to the pool. Whoever may not be disturbed now is looked at again when that is over.

use crate::crd::Agent;
use muster_vocabulary::{HostStatus as Status, Route};

/// Both have to allow it, the Agent and the hub: an Agent may lag behind, after a restart by minutes. `None` when the hub
/// could not be asked.
pub(crate) fn may_be_booted(agent: &Agent, told_by_hub: Option<&[String]>) -> bool {
    let told = told_by_hub.unwrap_or_default();
    !told.is_empty() && agent.state().is(is_undisturbed) && told.iter().all(|word| allows(word))
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
        let told = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        let cases = [
            (free, Some(told(&[free])), true),
            ("known", Some(told(&["insufficient"])), true),
            (busy, Some(told(&[free])), false),
            (free, Some(told(&[busy])), false),
            // The machine is in two pools.
            (free, Some(told(&[free, busy])), false),
            (free, Some(told(&[free, "known"])), true),
            // It is being made known again, or the hub is away.
            (free, Some(told(&[])), false),
            (free, None, false),
            ("", Some(told(&[free])), false),
            ("of-tomorrow", Some(told(&[free])), false),
            (free, Some(told(&["of-tomorrow"])), false),
        ];
        for (state, told, expected) in cases {
            let answer = may_be_booted(&agent(state), told.as_deref());
            assert_eq!(answer, expected, "{state} {told:?}");
        }
    }
}
