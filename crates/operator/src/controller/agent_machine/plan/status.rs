//! What an AgentMachine shows of its Agent.

use super::{Plan, Step, Then, claim};
use crate::controller::agent_machine::snapshot::Snapshot;
use crate::crd::Agent;
use crate::crd::agent::condition as of_agent;
use crate::crd::agent_machine::{AgentMachineStatus, MachineAddress, condition, reason};
use crate::crd::condition::{Finding, Truth, find_service, set_standard};
use crate::crd::keys::label;
use crate::crd::reference::ClusterRef;
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::merge;
use serde_json::Value;

/// What is taken over from the Agent, under which name.
const COPIED: [(&str, &str); 4] = [
    (condition::SPEC_SYNCED, of_agent::SPEC_SYNCED),
    (condition::VALIDATED, of_agent::VALIDATED),
    (condition::REQUIREMENTS_MET, of_agent::REQUIREMENTS_MET),
    (condition::INSTALLED, of_agent::INSTALLED),
];

/// There is no Agent, for this reason.
pub fn none(snapshot: &Snapshot, why: &'static str, text: &str, then: Then) -> Plan {
    let status = snapshot.machine.status.clone().unwrap_or_default();
    let missing = |(type_, _): (&'static str, _)| {
        Finding::new(
            type_,
            false,
            reason::NOT_YET_FOUND,
            "The machine has no Agent yet.",
        )
    };
    let mut findings = vec![Finding::new(condition::RESERVED, false, why, text)];
    findings.extend(COPIED.map(missing));
    Plan::of(written(snapshot, status, findings), then)
}

/// Why a machine is still there that is to go.
const LEAVING: &str = "AgentLeaving";

/// It goes as soon as its Agent has left, which is noted: once the Agent is let go, nothing else says whose it was.
/// What else was said of the Agent stays as it is: nobody waits for that.
pub fn leaving(snapshot: &Snapshot, agent: &Agent, text: String) -> Vec<Step> {
    let mut status = snapshot.machine.status.clone().unwrap_or_default();
    status.agent_ref = Some(reference(agent));
    let waits = Finding::new(condition::RESERVED, false, LEAVING, text);
    written(snapshot, status, vec![waits])
}

/// `why` is why it is this Agent; said before, it need not be said again.
pub fn with(snapshot: &Snapshot, agent: &Agent, why: Option<String>) -> Vec<Step> {
    let mut status = snapshot.machine.status.clone().unwrap_or_default();
    let reserved = status
        .conditions
        .iter()
        .find(|known| known.type_ == condition::RESERVED);
    let said = reserved
        .filter(|known| known.status == Truth::True.word())
        .and_then(|known| known.message.split(BESIDE).next().map(str::to_owned));
    let text = why
        .or(said)
        .unwrap_or_else(|| format!("The machine has reserved Agent {}.", Key::of(agent)));
    let text = text + &beside(snapshot);
    let mut findings = vec![Finding::new(condition::RESERVED, true, reason::RESERVED, text)];
    findings.extend(COPIED.map(|(type_, source)| copied(agent, type_, source)));
    status.agent_ref = Some(reference(agent));
    // Until it is installed it may get another name, by which its node is found.
    status.addresses = filled(addresses(agent), status.addresses);
    written(snapshot, status, findings)
}

/// What a machine that is ready lacks, as after a restore, when parts of its Agent came later. What was said before stays.
pub fn completed(snapshot: &Snapshot, agent: &Agent) -> Vec<Step> {
    let before = snapshot.machine.status.clone().unwrap_or_default();
    let mut status = before.clone();
    status.agent_ref.get_or_insert_with(|| reference(agent));
    status.addresses = filled(status.addresses, addresses(agent));
    let patch = merge::diff(&before, &status).map(Step::Status);
    patch.into_iter().collect()
}

/// Addresses with those of the others that are of another type.
fn filled(mut addresses: Vec<MachineAddress>, others: Vec<MachineAddress>) -> Vec<MachineAddress> {
    let is_new = |other: &MachineAddress| addresses.iter().all(|known| known.type_ != other.type_);
    let new: Vec<_> = others.into_iter().filter(is_new).collect();
    addresses.extend(new);
    addresses
}

fn reference(agent: &Agent) -> ClusterRef {
    let key = Key::of(agent);
    ClusterRef {
        name: key.name,
        namespace: key.namespace,
    }
}

/// Begins what is said of Agents that carry the name of the machine and are left alone.
const BESIDE: &str = " Besides, ";

/// What somebody else must decide, as a sentence to append; empty when there is nothing.
pub fn beside(snapshot: &Snapshot) -> String {
    let left = snapshot.strays.iter().filter(|stray| !claim::is_out(stray));
    let left: Vec<_> = left
        .map(|stray| format!("{} ({})", Key::of(&**stray), stray.state()))
        .collect();
    if left.is_empty() {
        return String::new();
    }
    format!(
        "{BESIDE}Agents that are in a cluster carry the name of this machine: {}. To bring one of them back, \
         remove its label {} and its clusterDeploymentName.",
        left.join(", "),
        label::AGENT_MACHINE
    )
}

fn copied(agent: &Agent, type_: &'static str, source: &str) -> Finding {
    let conditions = agent.status.as_ref().map(|status| status.conditions.as_slice());
    let Some(found) = find_service(conditions.unwrap_or_default(), source) else {
        let text = format!("The Agent does not have the condition {source} yet.");
        return Finding::new(type_, false, reason::CONDITION_NOT_FOUND, text);
    };
    if found.status == Truth::True.word() {
        return Finding::new(type_, true, reason::CONDITION_TRUE, found.message.clone());
    }
    // A condition without a reason is refused.
    let why = match found.reason.as_str() {
        "" => reason::CONDITION_NOT_FOUND,
        why => why,
    };
    Finding::new(type_, false, why, found.message.clone())
}

/// The first that does not hold decides.
fn summary(findings: &[Finding]) -> Finding {
    match findings.iter().find(|finding| finding.status != Truth::True) {
        Some(failing) => Finding::new(
            condition::READY,
            false,
            failing.reason.clone(),
            failing.message.clone(),
        ),
        None => Finding::new(condition::READY, true, reason::READY, "The machine is installed."),
    }
}

fn written(snapshot: &Snapshot, mut status: AgentMachineStatus, mut findings: Vec<Finding>) -> Vec<Step> {
    findings.push(summary(&findings));
    let before = snapshot.machine.status.clone();
    let news: Vec<_> = findings
        .iter()
        .filter_map(|finding| news(before.as_ref(), finding))
        .collect();
    // Never taken back: others have relied on it.
    status.ready |= findings.last().is_some_and(|ready| ready.status == Truth::True);
    let generation = snapshot.machine.metadata.generation;
    for finding in findings {
        set_standard(&mut status.conditions, finding, generation, snapshot.now);
    }
    let patch = match &before {
        Some(before) => merge::diff(before, &status),
        None => merge::diff(&Value::Null, &status),
    };
    let patch = patch.map(Step::Status);
    patch
        .into_iter()
        .chain(news.into_iter().map(Step::Tell))
        .collect()
}

/// What people must see beside the object: it got an Agent, or gets none, or is ready.
fn news(before: Option<&AgentMachineStatus>, finding: &Finding) -> Option<News> {
    let known = before.and_then(|before| {
        before
            .conditions
            .iter()
            .find(|known| known.type_ == finding.type_)
    });
    let same = known.is_some_and(|known| {
        (known.status.as_str(), known.reason.as_str()) == (finding.status.word(), finding.reason.as_str())
    });
    let is_shown = match finding.type_ {
        condition::RESERVED => true,
        condition::READY => finding.status == Truth::True,
        _ => false,
    };
    (is_shown && !same).then(|| News {
        warning: finding.reason == reason::NO_SUITABLE_AGENTS,
        reason: finding.reason.clone(),
        note: finding.message.clone(),
    })
}

/// What the machine is reached by.
fn addresses(agent: &Agent) -> Vec<MachineAddress> {
    let Some(status) = &agent.status else {
        return Vec::new();
    };
    let connected = status.inventory.interfaces.iter().filter(|one| one.has_carrier);
    let plain = |address: &String| address.split('/').next().unwrap_or_default().to_owned();
    let found = connected.flat_map(|one| &one.ip_v4_addresses).map(plain);
    let found = found.map(|address| ("ExternalIP", address));
    let hostname = hostname(agent).map(|name| ("InternalDNS", name.to_owned()));
    found
        .chain(hostname)
        .filter(|(_, address)| !address.is_empty())
        .map(|(type_, address)| MachineAddress {
            type_: type_.into(),
            address,
        })
        .collect()
}

/// The name that is wanted, else the one that was found.
pub fn hostname(agent: &Agent) -> Option<&str> {
    let found = agent
        .status
        .as_ref()
        .map(|status| status.inventory.hostname.as_str());
    let wanted = Some(agent.spec.hostname.as_str()).filter(|name| !name.is_empty());
    wanted.or(found).filter(|name| !name.is_empty())
}
