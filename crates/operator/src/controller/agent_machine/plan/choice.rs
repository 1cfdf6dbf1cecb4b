//! Which Agent a machine takes, and why not the others.
//!
//! Of those that will do, the smallest is taken: the larger ones are left for machines that ask for them.

use super::claim::OUT_OF_BOUNDS;
use super::status::hostname;
use crate::controller::agent_machine::snapshot::{Snapshot, Source};
use crate::crd::Agent;
use crate::crd::agent::{condition, reason};
use crate::crd::condition::find_service;
use crate::crd::keys::label;
use crate::key::Key;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use muster_vocabulary::Role;
use std::collections::BTreeMap;
use std::sync::Arc;

pub enum Choice {
    /// This one, and why.
    Take(Arc<Agent>, String),
    /// None will do, and why.
    Nothing(String),
    /// The selector or the source of Agents is not valid.
    Unreadable(String),
}

/// Why an Agent will not do; in the order in which it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    NotSelected,
    Reserved,
    Taken,
    OnItsWay,
    NotApproved,
    Disconnected,
    Failing,
    Nameless,
    NoInventory,
    Leaving,
}

impl Verdict {
    fn words(self) -> &'static str {
        match self {
            Self::NotSelected => "without the labels of the selector",
            Self::Reserved => "reserved for other machines",
            Self::Taken => "bound to a cluster",
            Self::OnItsWay => "on the way to or from a cluster",
            Self::NotApproved => "not approved",
            Self::Disconnected => "not connected",
            Self::Failing => "failing checks, or not checked",
            Self::Nameless => "without a name",
            Self::NoInventory => "without an inventory yet",
            Self::Leaving => "being deleted",
        }
    }
}

/// How many are named of each sort.
const NAMED: usize = 3;

/// Up to so many Agents that do not fit are counted and named.
const COUNTED: usize = 12;

pub fn choose(snapshot: &Snapshot) -> Choice {
    if let Source::Unknown(plane) = &snapshot.source {
        let text = format!("{plane} does not exist. It names the namespace of the Agents.");
        return Choice::Unreadable(text);
    }
    if let Source::Namespace(namespace) = &snapshot.source
        && !snapshot.may_take_from(namespace)
    {
        let text = format!("The control plane asks for Agents of {namespace}: they are {OUT_OF_BOUNDS}.");
        return Choice::Unreadable(text);
    }
    let selector = match snapshot
        .machine
        .spec
        .agent_label_selector
        .clone()
        .map(Selector::try_from)
    {
        None => None,
        Some(Ok(selector)) => Some(selector),
        Some(Err(error)) => return Choice::Unreadable(format!("spec.agentLabelSelector: {error}")),
    };
    let mut fitting = Vec::new();
    let mut others: BTreeMap<Verdict, Vec<&str>> = BTreeMap::new();
    let mut sorted: Vec<_> = snapshot.candidates.iter().collect();
    sorted.sort_by_cached_key(|agent| Key::of(&***agent));
    for agent in sorted {
        match verdict(agent, selector.as_ref()) {
            None => fitting.push(agent),
            Some(verdict) => others.entry(verdict).or_default().push(called(agent)),
        }
    }
    fitting.sort_by_cached_key(|agent| (Size::of(agent), Key::of(&***agent)));
    let Some((best, rest)) = fitting.split_first() else {
        return Choice::Nothing(nothing(snapshot, &others));
    };
    let why = [chosen(best, rest), unfit(&others)];
    let why: Vec<_> = why.into_iter().filter(|part| !part.is_empty()).collect();
    Choice::Take((*best).clone(), why.join(" "))
}

/// `None`: it will do.
pub fn verdict(agent: &Agent, selector: Option<&Selector>) -> Option<Verdict> {
    let conditions = agent.status.as_ref().map(|status| status.conditions.as_slice());
    let find = |type_| find_service(conditions.unwrap_or_default(), type_);
    let says = |type_, word: &str| find(type_).is_some_and(|found| found.status == word);
    let bound = find(condition::BOUND);
    let moves = bound.is_some_and(|bound| {
        let ways = [
            reason::BINDING,
            reason::UNBINDING,
            reason::UNBINDING_PENDING_USER_ACTION,
        ];
        ways.contains(&bound.reason.as_str())
    });
    let checks = [
        (agent.metadata.deletion_timestamp.is_some(), Verdict::Leaving),
        (
            selector.is_some_and(|selector| !selector.matches(agent.labels())),
            Verdict::NotSelected,
        ),
        (
            agent.labels().contains_key(label::AGENT_MACHINE),
            Verdict::Reserved,
        ),
        (bound.is_none(), Verdict::NoInventory),
        (moves, Verdict::OnItsWay),
        // What is asked for and not in effect yet counts, too.
        (
            !says(condition::BOUND, "False") || agent.spec.cluster_deployment_name.is_some(),
            Verdict::Taken,
        ),
        (!agent.spec.approved, Verdict::NotApproved),
        (!says(condition::CONNECTED, "True"), Verdict::Disconnected),
        (!says(condition::VALIDATED, "True"), Verdict::Failing),
        // The node is found by it.
        (hostname(agent).is_none(), Verdict::Nameless),
    ];
    checks
        .into_iter()
        .find(|(holds, _)| *holds)
        .map(|(_, verdict)| verdict)
}

/// What one Agent is compared to another by; the smaller is taken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Size {
    unready: bool,
    /// Somebody wants it for a control plane.
    reserved_role: bool,
    gpus: usize,
    memory_bytes: i64,
    processors: i64,
    disk_bytes: i64,
}

impl Size {
    fn of(agent: &Agent) -> Self {
        let status = agent.status.as_ref();
        let met = status.and_then(|status| find_service(&status.conditions, condition::REQUIREMENTS_MET));
        let inventory = status.map(|status| &status.inventory);
        let disks = inventory.map(|found| found.disks.iter().map(|disk| disk.size_bytes).sum());
        Self {
            unready: met.is_none_or(|met| met.status != "True"),
            reserved_role: matches!(agent.spec.role.known(), Some(Role::Master | Role::Arbiter)),
            gpus: inventory.map_or(0, |found| found.gpus.len()),
            memory_bytes: inventory.map_or(0, |found| found.memory.physical_bytes),
            processors: inventory.map_or(0, |found| found.cpu.count),
            disk_bytes: disks.unwrap_or_default(),
        }
    }

    fn words(&self) -> String {
        const GIB: i64 = 1 << 30;
        let mut words = format!("{} processors, {} GiB", self.processors, self.memory_bytes / GIB);
        if self.gpus > 0 {
            words += &format!(", {} GPUs", self.gpus);
        }
        words
    }

    /// In what the other is not as good.
    fn beats(&self, other: &Self) -> &'static str {
        let parts = [
            (self.unready != other.unready, "not ready"),
            (
                self.reserved_role != other.reserved_role,
                "meant for a control plane",
            ),
            (self.gpus != other.gpus, "more GPUs"),
            (self.memory_bytes != other.memory_bytes, "more memory"),
            (self.processors != other.processors, "more processors"),
            (self.disk_bytes != other.disk_bytes, "larger disks"),
        ];
        let differs = parts.into_iter().find(|(differs, _)| *differs);
        differs.map_or("equal, and later by name", |(_, words)| words)
    }
}

fn chosen(best: &Agent, rest: &[&Arc<Agent>]) -> String {
    let size = Size::of(best);
    let taken = format!("The machine took {} ({})", called(best), size.words());
    if rest.is_empty() {
        return format!("{taken}; no other Agent fits.");
    }
    let lost = rest
        .iter()
        .take(NAMED)
        .map(|other| format!("{} ({})", called(other), size.beats(&Size::of(other))));
    let lost: Vec<_> = lost.collect();
    let more = match rest.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "{taken}, the smallest of {} that fit; left for others: {}{more}.",
        rest.len() + 1,
        lost.join(", ")
    )
}

fn nothing(snapshot: &Snapshot, others: &BTreeMap<Verdict, Vec<&str>>) -> String {
    let place = match &snapshot.source {
        Source::Namespace(namespace) => format!(" in namespace {namespace}"),
        Source::Anywhere if !snapshot.agent_namespaces.is_empty() => {
            format!(" in {}", snapshot.agent_namespaces.join(", "))
        }
        Source::Anywhere | Source::Unknown(_) => String::new(),
    };
    match unfit(others) {
        words if words.is_empty() => format!("There are no Agents{place}."),
        words => format!("No Agent{place} fits. {words}"),
    }
}

/// For many Agents the message names only the reasons: one Agent more or less must not write the status of every
/// machine that waits.
fn unfit(others: &BTreeMap<Verdict, Vec<&str>>) -> String {
    if others.values().map(Vec::len).sum::<usize>() > COUNTED {
        let sorts: Vec<_> = others.keys().map(|verdict| verdict.words()).collect();
        return format!("Unfit: some {}.", sorts.join("; some "));
    }
    let sorts: Vec<_> = others
        .iter()
        .map(|(verdict, names)| {
            let mut shown = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            if names.len() > NAMED {
                shown += ", …";
            }
            format!("{} {} ({shown})", names.len(), verdict.words())
        })
        .collect();
    if sorts.is_empty() {
        return String::new();
    }
    format!("Unfit: {}.", sorts.join("; "))
}

/// As people know it.
fn called(agent: &Agent) -> &str {
    hostname(agent).unwrap_or_else(|| agent.metadata.name.as_deref().unwrap_or_default())
}
