//! What is to be done about a BareMetalHost. Pure: the world in, steps out.
//!
//! The stages write what they want into a draft of the objects, one after the other, until one of them says that the
//! next have to wait. What the draft differs in from the objects is patched.

pub mod agent;
mod boot;
mod custody;
mod disk;
pub mod fencing;
mod fetch;
mod finalizer;
#[cfg(test)]
mod tests;

pub use fencing::FencingSecret;

use super::world::World;
use crate::crd::agent::{condition, reason};
use crate::crd::condition::{ServiceCondition, find_service};
use crate::crd::keys::annotation;
use crate::crd::{Agent, BareMetalHost};
use crate::key::Key;
use crate::options::MetalBoot;
use crate::runtime::looks::{self, Then};
use crate::runtime::merge;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

pub type Plan = looks::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    PatchHost(Value),
    PatchAgent(Value),
    DeleteAgent,
    LabelSecret(Key, BTreeMap<String, String>),
    PutSecret(Box<FencingSecret>),
    /// What people must change.
    Complain(Vec<String>),
}

/// Whether the next stage may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    Stop,
}

/// The objects as they should be, made from what they are.
struct Draft {
    host: BareMetalHost,
    agent: Option<Agent>,
    /// What must be done before the objects are changed.
    first: Vec<Step>,
    flaws: Vec<String>,
    then: Then,
}

type Stage = fn(&World, &mut Draft) -> Go;

const STAGES: [Stage; 5] = [
    finalizer::stage,
    fetch::stage,
    custody::stage,
    boot::stage,
    agent::stage,
];

pub fn plan(world: &World) -> Plan {
    let mut draft = Draft {
        host: (*world.host).clone(),
        agent: world.agent.as_deref().cloned(),
        first: Vec::new(),
        flaws: Vec::new(),
        then: Then::Rest,
    };
    for stage in STAGES {
        if stage(world, &mut draft) == Go::Stop {
            break;
        }
    }
    draft.finish(world)
}

impl Draft {
    fn finish(self, world: &World) -> Plan {
        let mut steps = self.first;
        steps.extend(difference(&*world.host, self.host).map(Step::PatchHost));
        let agent = world.agent.as_deref().zip(self.agent);
        steps.extend(agent.and_then(|(now, wanted)| difference(now, wanted).map(Step::PatchAgent)));
        let then = match steps.is_empty() {
            true => self.then,
            false => Then::Look,
        };
        if !self.flaws.is_empty() {
            steps.push(Step::Complain(self.flaws));
        }
        Plan::of(steps, then)
    }

    fn flaw(&mut self, text: impl Into<String>) {
        self.flaws.push(text.into());
    }
}

fn difference<K: Resource + Clone + Serialize>(now: &K, wanted: K) -> Option<Value> {
    merge::diff(&plain(now.clone()), &plain(wanted))
}

/// An empty list and none are the same.
fn plain<K: Resource>(mut object: K) -> K {
    let meta = object.meta_mut();
    meta.annotations.take_if(|annotations| annotations.is_empty());
    meta.labels.take_if(|labels| labels.is_empty());
    meta.finalizers.take_if(|finalizers| finalizers.is_empty());
    object
}

/// What is written on the host by people, or by us.
fn has(host: &BareMetalHost, annotation: &str) -> bool {
    host.annotations().contains_key(annotation)
}

/// The pause is ours if the status was saved with it; else somebody else paused the machine and will know why.
fn unpause(host: &mut BareMetalHost) {
    if has(host, annotation::METAL3_STATUS) {
        host.annotations_mut().remove(annotation::METAL3_PAUSED);
    }
}

/// With the BareMetalHost its Agent and its node are to go.
fn takes_agent_along(world: &World) -> bool {
    world.boot == MetalBoot::Converged && has(&world.host, annotation::BMAC_REMOVE_ON_DELETE)
}

/// What the Agent says while it waits for somebody to boot its machine.
fn waits_to_be_fetched(agent: Option<&Agent>) -> Option<&ServiceCondition> {
    let status = agent?.status.as_ref()?;
    let bound = find_service(&status.conditions, condition::BOUND)?;
    (bound.reason == reason::UNBINDING_PENDING_USER_ACTION).then_some(bound)
}

/// The host must not be disturbed, and not be given to another cluster.
fn is_installing(agent: &Agent) -> bool {
    let status = agent.status.as_ref();
    status.is_some_and(|status| crate::controller::agent::plan::is_installing(&status.debug_info.state))
}
