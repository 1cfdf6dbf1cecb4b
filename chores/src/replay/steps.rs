//! What an agent may be told in each state, to judge a poll whose host is already a state further.

use serde_json::Value;

const CHECKS: &[&str] = &[
    "inventory",
    "connectivity-check",
    "tang-connectivity-check",
    "free-network-addresses",
    "dhcp-lease-allocate",
    "ntp-synchronizer",
    "domain-resolution",
    "verify-vips",
    "api-vip-connectivity-check",
];

/// Long work that an agent is asked for once, not at every poll.
pub const ONCE: &[&str] = &[
    "installation-disk-speed-check",
    "container-image-availability",
    "install",
    "logs-gather",
    "stop-installation",
];

/// The steps of a state; one that cannot be formed yet may be left out.
fn of_state(status: &str) -> &'static [&'static str] {
    match status {
        "discovering" => &["inventory", "ntp-synchronizer", "domain-resolution"],
        "insufficient" | "pending-for-input" | "known" => CHECKS,
        "disconnected" | "disconnected-unbound" => &["inventory"],
        "discovering-unbound" | "insufficient-unbound" | "known-unbound" => {
            &["inventory", "ntp-synchronizer"]
        }
        "preparing-for-installation" => &[
            "dhcp-lease-allocate",
            "installation-disk-speed-check",
            "container-image-availability",
        ],
        "installing" => &["install", "dhcp-lease-allocate"],
        "installing-in-progress" => &["dhcp-lease-allocate"],
        "error" | "cancelled" => &["logs-gather", "stop-installation"],
        "reclaiming" => &["download-boot-artifacts"],
        "reclaiming-rebooting" => &["reboot-for-reclaim"],
        _ => &[],
    }
}

fn action(status: &str) -> &'static str {
    match status {
        "binding" | "unbinding" | "unbinding-pending-user-action" | "reclaiming-rebooting" => "exit",
        _ => "continue",
    }
}

/// The step types of a poll's answer.
pub fn types(answer: &Value) -> Vec<String> {
    let steps = answer
        .get("instructions")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let mut types: Vec<String> = steps
        .iter()
        .filter_map(|step| Some(step.get("step_type")?.as_str()?.to_owned()))
        .collect();
    types.sort();
    types
}

/// Whether an answer fits the state our own host is in.
pub fn fit(status: &str, answer: &Value) -> bool {
    let legal = of_state(status);
    let given = types(answer);
    given.iter().all(|step| legal.contains(&step.as_str()))
        && (!legal.contains(&"inventory") || given.iter().any(|step| step == "inventory"))
        && answer.get("post_step_action").and_then(Value::as_str) == Some(action(status))
}
