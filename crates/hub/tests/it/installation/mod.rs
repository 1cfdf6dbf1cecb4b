//! Whole installations on simulated machines, through the real router, on a clock that only the test moves.

mod endpoint;
mod faults;
mod happy;
mod leaving;
pub mod moments;
mod orders;
mod plans;
mod residue;
mod secrets;
mod seed_000;
mod seed_001;

use crate::world::World;
use serde_json::Value;

pub const THREE: [usize; 3] = [0, 1, 2];

/// Somebody boots the discovery image on all of them, and they are free again.
pub async fn boot_home(world: &mut World, machines: &[usize]) {
    for machine in machines {
        world.boot_discovery(*machine);
    }
    world.until_hosts(machines, "known-unbound", 15).await;
}

pub fn last(events: &[Value]) -> &Value {
    events.last().expect("at least one")
}

pub fn props(event: &Value) -> Value {
    serde_json::from_str(event["props"].as_str().expect("text")).expect("JSON")
}

/// It names no cluster, in whatever way that is written.
pub fn is_free(host: &Value) -> bool {
    let id = &host["cluster_id"];
    id.is_null() || id == "" || id == "00000000-0000-0000-0000-000000000000"
}
