//! By what AgentMachines, and the Machines that own them, are cached and found.

use crate::crd::{AgentMachine, capi};
use crate::key::Key;
use crate::runtime::cache::{Index, namespace_of};
use crate::runtime::registry::Cached;
use kube::ResourceExt;
use kube::api::ApiResource;

impl Cached for AgentMachine {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }
}

/// `namespace/name` of its Agent; the name alone as long as it says no more.
pub const MACHINES_BY_AGENT: Index<AgentMachine> = Index::new("agent", named_agent);

/// `namespace/name` of the Machine that owns it.
pub const MACHINES_BY_OWNER: Index<AgentMachine> = Index::new("owner", |machine| {
    let namespace = machine.namespace().unwrap_or_default();
    let owner = capi::owner(machine, capi::MACHINE).into_iter();
    owner
        .map(|owner| Key::new(&namespace, &owner.name).to_string())
        .collect()
});

pub const MACHINES_BY_NAMESPACE: Index<AgentMachine> = Index::new("namespace", namespace_of);

/// Those without an Agent, all under the empty text.
pub const MACHINES_WAITING: Index<AgentMachine> = Index::new("waiting", |machine| {
    let waits = named_agent(machine).is_empty();
    waits.then(String::new).into_iter().collect()
});

/// `namespace/name` of the Secret with its user data.
pub const OWNERS_BY_DATA: Index<capi::Machine> = Index::new("data", |machine| {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let data = machine.spec.bootstrap.data_secret_name.iter();
    data.map(|name| Key::new(&namespace, name).to_string()).collect()
});

fn named_agent(machine: &AgentMachine) -> Vec<String> {
    machine.named_agent().iter().map(ToString::to_string).collect()
}
