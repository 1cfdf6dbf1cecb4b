//! What is to be done about a BareMetalHost. Pure: the snapshot in, steps out.
//!
//! The stages write what they want into a draft of the objects, one after the other, until one of them says that the
//! next have to wait. What the draft differs in from the objects is patched.

pub mod agent;
pub(crate) mod anew;
pub mod authority;
pub mod boot;
mod custody;
mod disk;
pub mod drain;
pub mod fencing;
mod fetch;
mod finalizer;
mod foreign;
mod hardware;
pub mod machine;
#[cfg(test)]
mod tests;

pub use fencing::FencingSecret;

use super::snapshot::Snapshot;
use crate::crd::agent::{condition, reason};
use crate::crd::condition::{ServiceCondition, find_service};
use crate::crd::keys::{annotation, label};
use crate::crd::metal3::START_DISCOVERY;
use crate::crd::{Agent, BareMetalHost};
use crate::key::Key;
use crate::options::MetalBoot;
use crate::runtime::merge;
use crate::runtime::reconciler::{self, Then};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    PatchHost(Value),
    PatchAgent(Value),
    DeleteAgent,
    LabelSecret(Key, BTreeMap<String, String>),
    PutSecret(Box<FencingSecret>),
    /// On the node of the machine, in its cluster.
    Drain(drain::Deed),
    /// On the objects of the machine in the cluster that it joins.
    Join(machine::Deed),
    /// What people must change.
    Complain(Vec<String>),
    /// What could not be done in the cluster; it is tried again.
    Report(Vec<String>),
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
    /// What is tried in the cluster; the next snapshot shows whether it worked.
    tries: Vec<Step>,
    mistakes: Vec<String>,
    failures: Vec<String>,
    then: Then,
}

type Stage = fn(&Snapshot, &mut Draft) -> Go;

const STAGES: [Stage; 9] = [
    finalizer::stage,
    fetch::stage,
    foreign::stage,
    custody::stage,
    boot::stage,
    agent::stage,
    hardware::stage,
    authority::stage,
    machine::stage,
];

pub fn plan(snapshot: &Snapshot) -> Plan {
    let mut draft = Draft {
        host: (*snapshot.host).clone(),
        agent: snapshot.agent.as_deref().cloned(),
        first: Vec::new(),
        tries: Vec::new(),
        mistakes: Vec::new(),
        failures: Vec::new(),
        then: Then::Rest,
    };
    for stage in STAGES {
        if stage(snapshot, &mut draft) == Go::Stop {
            break;
        }
    }
    draft.finish(snapshot)
}

impl Draft {
    fn finish(self, snapshot: &Snapshot) -> Plan {
        let mut steps = self.first;
        steps.extend(difference(&*snapshot.host, self.host).map(Step::PatchHost));
        let agent = snapshot.agent.as_deref().zip(self.agent);
        steps.extend(agent.and_then(|(now, wanted)| difference(now, wanted).map(Step::PatchAgent)));
        let then = match steps.is_empty() {
            true => self.then,
            false => Then::Again,
        };
        steps.extend(self.tries);
        if !self.mistakes.is_empty() {
            steps.push(Step::Complain(self.mistakes));
        }
        if !self.failures.is_empty() {
            steps.push(Step::Report(self.failures));
        }
        Plan::of(steps, then)
    }

    fn mistake(&mut self, text: impl Into<String>) {
        self.mistakes.push(text.into());
    }

    /// Nothing wakes the operator when the cluster answers again, so it asks again.
    fn failure(&mut self, snapshot: &Snapshot, text: String) {
        self.failures.push(text);
        self.then = self.then.or(Then::After(snapshot.later()));
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
fn takes_agent_along(snapshot: &Snapshot) -> bool {
    snapshot.way() == MetalBoot::Converged && has(&snapshot.host, annotation::BMAC_REMOVE_ON_DELETE)
}

/// What the Agent says while it waits for somebody to boot its machine.
fn waits_to_be_fetched(agent: Option<&Agent>) -> Option<&ServiceCondition> {
    let status = agent?.status.as_ref()?;
    let bound = find_service(&status.conditions, condition::BOUND)?;
    (bound.reason == reason::UNBINDING_PENDING_USER_ACTION).then_some(bound)
}

/// The format of an image that is booted and not written to disk.
const LIVE: &str = "live-iso";

fn asks_for_discovery(host: &BareMetalHost) -> bool {
    let deploy = host.spec.custom_deploy.as_ref();
    deploy.is_some_and(|deploy| deploy.method == START_DISCOVERY)
}

fn runs_live(host: &BareMetalHost) -> bool {
    let image = host.spec.image.as_ref();
    image.is_some_and(|image| image.format.as_deref() == Some(LIVE))
}

/// How a machine boots discovery: as all do, or by the deploy step if that was written on it before. One that runs a
/// live image cannot change that while it does, whatever the others do by now.
pub fn way(boot: MetalBoot, host: &BareMetalHost) -> MetalBoot {
    if runs_live(host) {
        return MetalBoot::LiveImage;
    }
    let asks = asks_for_discovery(host) || has(host, annotation::BMAC_RETURNS_CONVERGED);
    match boot {
        MetalBoot::LiveImage if !asks => MetalBoot::LiveImage,
        MetalBoot::LiveImage | MetalBoot::Converged => MetalBoot::Converged,
    }
}

impl Snapshot {
    fn way(&self) -> MetalBoot {
        way(self.boot, &self.host)
    }

    /// It is ours, and stays.
    fn is_managed_here(&self) -> bool {
        self.host.labels().contains_key(label::INFRA_ENV) && self.host.metadata.deletion_timestamp.is_none()
    }

    /// Six retries: once a minute by default.
    fn later(&self) -> Duration {
        self.retry * 6
    }
}

/// The host must not be disturbed, and not be given to another cluster.
pub(crate) fn is_installing(agent: &Agent) -> bool {
    crate::controller::agent::plan::is_installing(&agent.state())
}
