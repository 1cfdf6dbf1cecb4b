//! Clusters that hosts are joining. Each is watched once, however many hosts join it, and only as long as one does.

mod watch;

pub use watch::{Joiners, run};

use crate::key::Key;
use kube::Client;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Hosts of more clusters at a time are reconciled now and then.
const MOST: usize = 256;

/// Whether a watch reports the node of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum NodeWatch {
    /// No watch runs: the operator reads the node now and then.
    #[default]
    None,
    /// What happens to the node and its requests wakes the Agent.
    Running,
    /// As `None`, and this is why. Each Agent gets it once.
    Refused(String),
}

/// What is asked of the task that watches.
struct Order {
    watched: Watched,
    stop: oneshot::Receiver<()>,
}

struct Watched {
    cluster: Key,
    client: Client,
    /// Distinguishes this watch from an earlier one of the same cluster.
    number: u64,
}

pub struct Joining {
    state: Mutex<State>,
    orders: mpsc::UnboundedSender<Order>,
    /// Until somebody carries them out.
    placed: Mutex<Option<mpsc::UnboundedReceiver<Order>>>,
}

#[derive(Default)]
struct State {
    clusters: HashMap<Key, Cluster>,
    /// The cluster that each Agent joins.
    of_agent: HashMap<Key, Key>,
    last: u64,
}

struct Cluster {
    number: u64,
    /// What its client was made from.
    made_from: u64,
    phase: Phase,
    /// The Agents that join it.
    agents: HashMap<Key, Joiner>,
    /// Dropped, it ends the watch.
    _stop: oneshot::Sender<()>,
}

struct Joiner {
    node: String,
    was_reported: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Begins,
    Watches,
    Refused(String),
}

impl Default for Joining {
    fn default() -> Self {
        let (orders, placed) = mpsc::unbounded_channel();
        Self {
            state: Mutex::default(),
            orders,
            placed: Mutex::new(Some(placed)),
        }
    }
}

impl Joining {
    /// How the Agent's node is watched, if its cluster is watched with this kubeconfig; else it must `begin`.
    pub fn go_on(&self, cluster: &Key, made_from: u64, agent: &Key, node: &str) -> Option<NodeWatch> {
        let mut state = self.state();
        let known = state.clusters.get(cluster);
        if known.is_none_or(|known| known.made_from != made_from) {
            return None;
        }
        Some(state.join(cluster, agent, node))
    }

    /// Watches the cluster for the Agent. Those that join it already go along with it.
    pub fn begin(&self, cluster: &Key, made_from: u64, client: Client, agent: &Key, node: &str) -> NodeWatch {
        let mut state = self.state();
        // Another worker was faster.
        if state
            .clusters
            .get(cluster)
            .is_some_and(|known| known.made_from == made_from)
        {
            return state.join(cluster, agent, node);
        }
        let before = state.clusters.remove(cluster);
        if state.clusters.len() >= MOST {
            state.leave(agent);
            return NodeWatch::None;
        }
        state.last += 1;
        let number = state.last;
        let (stopping, stop) = oneshot::channel();
        let begun = Cluster {
            number,
            made_from,
            phase: Phase::Begins,
            agents: before.map(|before| before.agents).unwrap_or_default(),
            _stop: stopping,
        };
        state.clusters.insert(cluster.clone(), begun);
        // The receiver is kept here or by the task that ends with the operator.
        let watched = Watched {
            cluster: cluster.clone(),
            client,
            number,
        };
        let _ = self.orders.send(Order { watched, stop });
        state.join(cluster, agent, node)
    }

    /// The Agent joins no cluster (any more).
    pub fn leave(&self, agent: &Key) {
        self.state().leave(agent);
    }

    /// Nobody is waited for: another operator acts.
    pub fn leave_all(&self) {
        let mut state = self.state();
        state.clusters.clear();
        state.of_agent.clear();
    }

    /// How many clusters are watched.
    pub fn len(&self) -> usize {
        self.state().clusters.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The Agents to wake because their watch goes otherwise now.
    fn turn(&self, cluster: &Key, number: u64, phase: Phase) -> Vec<Key> {
        let mut state = self.state();
        let found = state.clusters.get_mut(cluster);
        let Some(found) = found.filter(|found| found.number == number && found.phase != phase) else {
            return Vec::new();
        };
        found.phase = phase;
        found.agents.keys().cloned().collect()
    }

    /// The Agents whose node is called so.
    fn called(&self, cluster: &Key, number: u64, node: &str) -> Vec<Key> {
        let state = self.state();
        let found = state.clusters.get(cluster);
        let agents = found.filter(|found| found.number == number).into_iter();
        let agents = agents.flat_map(|found| &found.agents);
        let theirs = agents.filter(|(_, joiner)| same_node(node, &joiner.node));
        theirs.map(|(agent, _)| agent.clone()).collect()
    }

    fn take_orders(&self) -> Option<mpsc::UnboundedReceiver<Order>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn join(&mut self, cluster: &Key, agent: &Key, node: &str) -> NodeWatch {
        if self.of_agent.get(agent).is_some_and(|other| other != cluster) {
            self.leave(agent);
        }
        let Some(found) = self.clusters.get_mut(cluster) else {
            return NodeWatch::None;
        };
        self.of_agent.insert(agent.clone(), cluster.clone());
        let joiner = found.agents.entry(agent.clone()).or_insert(Joiner {
            node: String::new(),
            was_reported: false,
        });
        node.clone_into(&mut joiner.node);
        match &found.phase {
            Phase::Begins => NodeWatch::None,
            Phase::Watches => NodeWatch::Running,
            Phase::Refused(_) if joiner.was_reported => NodeWatch::None,
            Phase::Refused(why) => {
                joiner.was_reported = true;
                NodeWatch::Refused(why.clone())
            }
        }
    }

    fn leave(&mut self, agent: &Key) {
        let Some(cluster) = self.of_agent.remove(agent) else {
            return;
        };
        let Some(found) = self.clusters.get_mut(&cluster) else {
            return;
        };
        found.agents.remove(agent);
        if found.agents.is_empty() {
            self.clusters.remove(&cluster);
        }
    }
}

/// A node may be known by its short name where the host has a long one, and the other way round.
pub fn same_node(node: &str, host: &str) -> bool {
    let (node, host) = (node.to_lowercase(), host.to_lowercase());
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    !node.is_empty() && (node == host || short(&node) == host || node == short(&host))
}

#[cfg(test)]
mod tests;
