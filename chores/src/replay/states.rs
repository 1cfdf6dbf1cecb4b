//! Which states of a host or cluster count as the same: the recorded service waits for a tick, ours does not.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::recording::{Recording, objects, word};

/// A host or cluster as one answer showed it.
#[derive(Debug, Clone)]
struct Sighting {
    index: usize,
    object: Object,
    status: String,
    keys: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Object {
    Host { id: String, infra_env: String },
    Cluster { id: String },
}

impl Object {
    fn of(map: &Map<String, Value>) -> Option<Self> {
        let id = word(map, "id").to_owned();
        match word(map, "kind") {
            "Host" | "AddToExistingClusterHost" => Some(Object::Host {
                id,
                infra_env: word(map, "infra_env_id").to_owned(),
            }),
            "Cluster" | "AddHostsCluster" => Some(Object::Cluster { id }),
            _ => None,
        }
    }

    fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// How our state relates to the recorded one.
#[derive(Debug, PartialEq, Eq)]
pub enum Timing {
    /// The same state, or nothing that has states.
    Same,
    /// Ours is where the recording arrives next on its own: these keys may be there already, or be gone.
    Ahead {
        may_have: BTreeSet<String>,
        may_lack: BTreeSet<String>,
    },
    Wrong,
}

/// All sightings of a recording, in order.
pub struct Timeline<'a> {
    recording: &'a Recording,
    sightings: Vec<Sighting>,
    /// Host id and cluster id, for every pair the recording ever shows together.
    members: BTreeSet<(String, String)>,
}

impl<'a> Timeline<'a> {
    pub fn of(recording: &'a Recording) -> Self {
        let mut sightings = Vec::new();
        let mut members = BTreeSet::new();
        for (index, exchange) in recording.exchanges.iter().enumerate() {
            objects(&exchange.response.body, &mut |map| {
                let Some(object) = Object::of(map) else { return };
                if let Object::Host { id, .. } = &object {
                    members.insert((id.clone(), word(map, "cluster_id").to_owned()));
                }
                let keys = map.keys().cloned().collect();
                sightings.push(Sighting {
                    index,
                    object,
                    status: word(map, "status").to_owned(),
                    keys,
                });
            });
        }
        Self {
            recording,
            sightings,
            members,
        }
    }

    /// Judges our state of an object shown at `index`.
    pub fn judge(&self, index: usize, recorded: &Map<String, Value>, ours: &Map<String, Value>) -> Timing {
        let (Some(object), Some(our)) = (Object::of(recorded), ours.get("status").and_then(Value::as_str))
        else {
            return Timing::Same;
        };
        let theirs = word(recorded, "status");
        // A state the recording leaves null is a matter of types, not of time.
        if our == theirs || theirs.is_empty() {
            return Timing::Same;
        }
        let ahead = self.next_states(index, &object, theirs).contains(our)
            || waits_for_tick(recorded, our)
            || self.was_started(index, &object) && (theirs, our) == ("known", "preparing-for-installation");
        if !ahead {
            return Timing::Wrong;
        }
        let kin = || {
            self.sightings
                .iter()
                .filter(|sighting| sighting.object.same_kind(&object))
        };
        let may_have = kin().flat_map(|sighting| sighting.keys.iter().cloned()).collect();
        let there = |key: &str| {
            kin()
                .filter(|sighting| sighting.status == our)
                .all(|s| s.keys.contains(key))
        };
        let seen = kin().any(|sighting| sighting.status == our);
        let may_lack = recorded
            .keys()
            .filter(|key| seen && !there(key))
            .cloned()
            .collect();
        Timing::Ahead { may_have, may_lack }
    }

    /// The states the object is shown in later, up to the next request that could have moved it.
    fn next_states(&self, index: usize, object: &Object, status: &str) -> BTreeSet<String> {
        let barrier = (index + 1..self.recording.exchanges.len())
            .find(|at| self.moves(*at, object, status))
            .unwrap_or(self.recording.exchanges.len());
        self.sightings
            .iter()
            .filter(|seen| seen.object == *object && seen.index > index && seen.index < barrier)
            .map(|seen| seen.status.clone())
            .collect()
    }

    fn moves(&self, at: usize, object: &Object, status: &str) -> bool {
        let exchange = &self.recording.exchanges[at];
        let request = &exchange.request;
        match object {
            Object::Host { id, infra_env } => {
                let about = request.mentions(id) && request.mentions(infra_env);
                let revives = request.is_poll() && status.starts_with("disconnected");
                about && (exchange.accepted_change() || revives)
                    || exchange.accepted_change() && self.is_about_cluster_of(request.route(), id)
            }
            Object::Cluster { id } => {
                let through_host = self
                    .members
                    .iter()
                    .any(|(host, cluster)| cluster == id && request.mentions(host));
                exchange.accepted_change() && (request.mentions(id) || through_host)
            }
        }
    }

    /// The newest change of the host's cluster was the start of its installation, which hosts follow with a tick.
    fn was_started(&self, index: usize, object: &Object) -> bool {
        let Object::Host { id, .. } = object else {
            return false;
        };
        let of_cluster = |at: &usize| {
            let exchange = &self.recording.exchanges[*at];
            exchange.accepted_change() && self.is_about_cluster_of(exchange.request.route(), id)
        };
        let until_now = 0..self.recording.exchanges.len().min(index + 1);
        let newest = until_now.rev().find(of_cluster);
        newest.is_some_and(|at| {
            let route = self.recording.exchanges[at].request.route();
            route.ends_with("/actions/install")
        })
    }

    /// Changes of a cluster itself reach its hosts.
    fn is_about_cluster_of(&self, route: &str, host: &str) -> bool {
        let Some(cluster) = route
            .strip_prefix("/clusters/")
            .and_then(|rest| rest.split('/').next())
        else {
            return false;
        };
        self.members.contains(&(host.to_owned(), cluster.to_owned()))
    }
}

/// Facts that only an outstanding tick explains: an inventory nobody looked at, a cluster nobody checked.
fn waits_for_tick(recorded: &Map<String, Value>, our: &str) -> bool {
    match word(recorded, "status") {
        "discovering-unbound" => {
            !word(recorded, "inventory").is_empty()
                && ["known-unbound", "insufficient-unbound"].contains(&our)
        }
        "discovering" => {
            !word(recorded, "inventory").is_empty()
                && ["known", "insufficient", "pending-for-input"].contains(&our)
        }
        "insufficient" => {
            word(recorded, "kind") == "Cluster"
                && !recorded.contains_key("validations_info")
                && ["pending-for-input", "ready"].contains(&our)
        }
        "finalizing" => our == "installed" && is_last_stage(recorded),
        _ => false,
    }
}

/// Nothing is left to report: the next tick finds the cluster installed.
fn is_last_stage(recorded: &Map<String, Value>) -> bool {
    let stage = recorded
        .get("progress")
        .and_then(|progress| progress.get("finalizing_stage"));
    stage.and_then(Value::as_str) == Some("Done")
}

/// Stages in which the agent is gone.
const GONE: &[&str] = &[
    "Rebooting",
    "Waiting for ignition",
    "Configuring",
    "Joined",
    "Done",
];
const OF_AGENT: &[&str] = &[
    "compatible-agent",
    "connected",
    "media-connected",
    "ntp-synced",
    "time-synced-between-host-and-service",
];

/// Checks that a host has no more in the stage of its installation; the recorded service drops them with its next tick.
pub fn dropped_checks(recorded: &Map<String, Value>) -> &'static [&'static str] {
    let stage = recorded
        .get("progress")
        .and_then(|progress| progress.get("current_stage"));
    match stage.and_then(Value::as_str) {
        Some(stage) if is_host(recorded) && GONE.contains(&stage) => OF_AGENT,
        Some(_) if is_host(recorded) => &OF_AGENT[..1],
        _ => &[],
    }
}

/// A check that only hosts of a cluster have.
const BOUND_ONLY: &str = "machine-cidr-defined";

/// A host that no tick has looked at since it registered.
pub fn awaits_first_tick(recorded: &Map<String, Value>) -> bool {
    is_host(recorded) && !recorded.contains_key("validations_info")
}

/// A host that was bound or unbound and still shows the findings of its time before that.
pub fn shows_former_side(recorded: &Map<String, Value>) -> bool {
    let findings = word(recorded, "validations_info");
    let of_cluster = findings.contains(BOUND_ONLY);
    is_host(recorded) && !findings.is_empty() && of_cluster != recorded.contains_key("cluster_id")
}

pub fn is_host(recorded: &Map<String, Value>) -> bool {
    ["Host", "AddToExistingClusterHost"].contains(&word(recorded, "kind"))
}
