//! Whether the running cluster's own machinery may reboot workers: not while hosts join that get labels and a pool.

use super::World;
use crate::crd::Agent;

/// `None` when nobody joins in that way, so that the pool is somebody else's matter.
pub fn wanted(world: &World) -> Option<bool> {
    let mut joining = world
        .agents
        .iter()
        .map(|(agent, _)| &**agent)
        .filter(|agent| is_concerned(agent))
        .peekable();
    joining.peek()?;
    Some(joining.any(is_under_way))
}

fn is_concerned(agent: &Agent) -> bool {
    !agent.spec.node_labels.is_empty()
        && !agent.spec.machine_config_pool.is_empty()
        && state(agent) != "installed"
}

fn is_under_way(agent: &Agent) -> bool {
    let progress = agent.status.as_ref().and_then(|status| status.progress.as_ref());
    let done = progress.is_some_and(|progress| progress.current_stage == "Done");
    !done && matches!(state(agent), "installing" | "installing-in-progress")
}

fn state(agent: &Agent) -> &str {
    agent
        .status
        .as_ref()
        .map(|status| status.debug_info.state.as_str())
        .unwrap_or_default()
}
