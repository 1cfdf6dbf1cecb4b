//! What is to be done about the node of a machine. Pure: the snapshot in, steps out.

use super::Snapshot;
use crate::crd::{AgentMachine, capi};
use crate::runtime::event::News;
use crate::runtime::reconciler::{self, Then};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The node with this name gets this id.
    Name(String, String),
    Tell(News),
}

/// Nodes of other clusters are not watched: the operator polls for a node that is not there yet every three retries,
/// which is half a minute by default.
const EVERY: u32 = 3;

/// The name of the node, of a machine that is installed and not on its way out.
pub fn node_name(machine: &AgentMachine) -> Option<&str> {
    let status = machine.status.as_ref()?;
    machine.spec.provider_id.as_ref()?;
    let leaves = machine.metadata.deletion_timestamp.is_some();
    let known = status
        .addresses
        .iter()
        .find(|address| address.type_ == "InternalDNS");
    let name = known.map(|address| address.address.as_str());
    name.filter(|_| status.ready && !leaves && !capi::is_paused(machine))
}

pub fn plan(snapshot: &Snapshot) -> Plan {
    let later = Then::After(snapshot.retry * EVERY);
    if snapshot.elsewhere {
        return Plan::of(Vec::new(), later);
    }
    match (&snapshot.node, &snapshot.machine.spec.provider_id) {
        (None, _) | (_, None) => Plan::default(),
        (Some(Ok(Some(node))), Some(id)) => known(node, id),
        (Some(Ok(None)), Some(_)) => Plan::of(Vec::new(), later),
        (Some(Err(why)), Some(_)) => {
            let news = News {
                warning: true,
                reason: "NodeUnreachable".into(),
                note: format!("The operator cannot set the providerID of the node: {why}"),
            };
            Plan::of(vec![Step::Tell(news)], later)
        }
    }
}

fn known(node: &Node, id: &str) -> Plan {
    let known = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
    match known.unwrap_or_default() {
        "" => Plan::of(vec![Step::Name(node.name_any(), id.to_owned())], Then::Again),
        known if known == id => Plan::default(),
        // It is never changed: only a new node can have another.
        other => {
            let news = News {
                warning: true,
                reason: "OtherProviderID".into(),
                note: format!("Node {} has the providerID {other}, not {id}.", node.name_any()),
            };
            Plan::of(vec![Step::Tell(news)], Then::Rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::agent_machine::{AgentMachineStatus, MachineAddress};
    use k8s_openapi::api::core::v1::NodeSpec;
    use std::sync::Arc;
    use std::time::Duration;

    fn machine() -> AgentMachine {
        let mut machine = AgentMachine::new("m", Default::default());
        machine.spec.provider_id = Some("agent://a".into());
        machine.status = Some(AgentMachineStatus {
            ready: true,
            addresses: vec![MachineAddress {
                type_: "InternalDNS".into(),
                address: "host-1".into(),
            }],
            ..AgentMachineStatus::default()
        });
        machine
    }

    fn snapshot(node: Option<Result<Option<Node>, String>>) -> Snapshot {
        Snapshot {
            machine: Arc::new(machine()),
            cluster: None,
            node,
            elsewhere: false,
            retry: Duration::from_secs(10),
        }
    }

    fn node(id: Option<&str>) -> Option<Result<Option<Node>, String>> {
        let mut node = Node::default();
        node.metadata.name = Some("host-1".into());
        node.spec = Some(NodeSpec {
            provider_id: id.map(Into::into),
            ..NodeSpec::default()
        });
        Some(Ok(Some(node)))
    }

    #[test]
    fn only_installed_machines_that_stay_have_nodes() {
        assert_eq!(node_name(&machine()), Some("host-1"));
        let mut early = machine();
        early.status.as_mut().unwrap().ready = false;
        assert_eq!(node_name(&early), None);
        let mut held = machine();
        held.annotations_mut()
            .insert("cluster.x-k8s.io/paused".into(), "true".into());
        assert_eq!(node_name(&held), None);
    }

    #[test]
    fn a_node_gets_the_id_once_and_keeps_another() {
        let named = plan(&snapshot(node(None)));
        assert_eq!(named.steps, [Step::Name("host-1".into(), "agent://a".into())]);
        assert_eq!(plan(&snapshot(node(Some("")))).steps, named.steps);
        assert_eq!(plan(&snapshot(node(Some("agent://a")))), Plan::default());
        let other = plan(&snapshot(node(Some("aws://x"))));
        assert!(
            matches!(&other.steps[..], [Step::Tell(news)] if news.warning),
            "{other:?}"
        );
        assert_eq!(other.then, Then::Rest);
    }

    #[test]
    fn a_node_that_is_not_there_is_read_again() {
        let later = Then::After(Duration::from_secs(30));
        assert_eq!(plan(&snapshot(Some(Ok(None)))), Plan::of(Vec::new(), later));
        assert_eq!(plan(&snapshot(Some(Err("no route".into())))).then, later);
    }
}
