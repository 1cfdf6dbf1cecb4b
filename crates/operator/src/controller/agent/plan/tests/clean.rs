//! Nodes that are removed, and Agents that go.

use super::*;
use crate::controller::agent::spoke::{Machine, Spoke};
use crate::crd::agent::{AgentStatus, DeprovisionInfo};
use crate::crd::{AgentClusterInstall, ClusterDeployment};
use crate::runtime::clock;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::core::v1::Node;

fn node() -> Node {
    let mut node = Node::default();
    node.metadata.name = Some("worker-1".into());
    node
}

fn machine(metal: bool, set: bool) -> Machine {
    let key = |name: &str| Key::new("openshift-machine-api", name);
    Machine {
        key: key("machine-1"),
        metal: metal.then(|| key("metal-1")),
        machine_set: set.then(|| key("workers")),
    }
}

fn removed(node: Option<Node>, machine: Option<Machine>) -> Vec<Step> {
    cleanup::removal(&Spoke {
        node,
        machine,
        csrs: Vec::new(),
    })
}

#[test]
fn what_is_removed_and_in_which_order_depends_on_who_would_bring_it_back() {
    let key = |name: &str| Key::new("openshift-machine-api", name);
    let steps = |deeds: Vec<Deed>| deeds.into_iter().map(Step::Spoke).collect::<Vec<_>>();
    assert_eq!(removed(None, None), []);
    assert_eq!(
        removed(None, Some(machine(true, false))),
        removed(Some(node()), Some(machine(true, false))),
        "one that was made for a host that never became a node"
    );
    assert_eq!(
        removed(Some(node()), None),
        steps(vec![Deed::DeleteNode("worker-1".into())])
    );
    assert_eq!(
        removed(Some(node()), Some(machine(true, false))),
        steps(vec![
            Deed::DoomMachine(key("machine-1")),
            Deed::DeleteMetal(key("metal-1")),
            Deed::DeleteMachine(key("machine-1")),
        ])
    );
    assert_eq!(
        removed(Some(node()), Some(machine(true, true))),
        steps(vec![
            Deed::DoomMachine(key("machine-1")),
            Deed::ShrinkMachineSet(key("workers")),
            Deed::DeleteMetal(key("metal-1")),
        ]),
        "a node or machine that is simply deleted would be replaced"
    );
}

fn left_blue() -> Agent {
    let mut agent = agent();
    agent.status = Some(AgentStatus {
        deprovision_info: Some(DeprovisionInfo {
            cluster_name: "blue".into(),
            cluster_namespace: "clusters".into(),
            node_name: "worker-1".into(),
            message: "waits".into(),
        }),
        ..AgentStatus::default()
    });
    agent
}

fn back(agent: Agent, row: HostDetail, spoke: Option<Result<Spoke, NoSpoke>>) -> Snapshot {
    let mut snapshot = snapshot(Some(agent), Some(row));
    snapshot.spoke = spoke;
    snapshot
}

#[test]
fn the_node_of_a_host_is_removed_when_the_host_is_back_and_not_before() {
    let spoke = || {
        Some(Ok(Spoke {
            node: Some(node()),
            ..Spoke::default()
        }))
    };
    for status in [
        "unbinding",
        "unbinding-pending-user-action",
        "reclaiming",
        "reclaiming-rebooting",
    ] {
        let snapshot = back(left_blue(), row(status), None);
        assert_eq!(
            (ask::question(&snapshot), deeds(&plan(&snapshot)).len()),
            (None, 0),
            "{status}"
        );
    }
    let snapshot = back(left_blue(), row("discovering-unbound"), spoke());
    assert!(ask::question(&snapshot).is_some_and(|question| question.machine));
    let plan = plan(&snapshot);
    assert_eq!(deeds(&plan), [&Deed::DeleteNode("worker-1".into())]);
    assert_eq!(status_of(&plan)["deprovision_info"], Value::Null);
}

#[test]
fn a_host_that_is_still_in_the_cluster_keeps_its_node() {
    let still_there = lent("installed", BLUE);
    assert_eq!(ask::question(&back(left_blue(), still_there.clone(), None)), None);
    let mut stays = left_blue();
    stays.spec = wanting("blue").spec;
    let plan = plan(&back(stays.clone(), still_there, None));
    assert_eq!(deeds(&plan).len(), 0);
    assert_eq!(
        after(&stays, &plan).status.unwrap().deprovision_info,
        None,
        "it was only about to leave"
    );
}

#[test]
fn a_cluster_that_is_gone_or_to_be_spared_needs_no_cleaning_and_one_that_fails_is_tried_again() {
    let gone = plan(&back(
        left_blue(),
        row("known-unbound"),
        Some(Err(NoSpoke::NoKubeconfig)),
    ));
    assert_eq!(after(&left_blue(), &gone).status.unwrap().deprovision_info, None);
    let mut spared = left_blue();
    spared
        .annotations_mut()
        .insert(annotation::SKIP_SPOKE_CLEANUP.into(), String::new());
    let snapshot = back(spared.clone(), row("known-unbound"), None);
    assert_eq!(ask::question(&snapshot), None);
    assert_eq!(
        after(&spared, &plan(&snapshot)).status.unwrap().deprovision_info,
        None
    );
    let failing = plan(&back(
        left_blue(),
        row("known-unbound"),
        Some(Err(NoSpoke::Failed("no route".into()))),
    ));
    let info = after(&left_blue(), &failing)
        .status
        .unwrap()
        .deprovision_info
        .unwrap();
    assert!(info.message.contains("no route"));
    assert_eq!(failing.then, Then::After(Duration::from_secs(10)));
}

fn leaving(agent: Agent) -> Agent {
    let mut agent = agent;
    agent.metadata.deletion_timestamp = Some(clock::time(now()));
    agent
}

fn let_go(plan: &Plan) -> bool {
    plan.steps
        .iter()
        .any(|step| matches!(step, Step::Patch(patch) if patch["metadata"]["finalizers"] == json!([])))
}

#[test]
fn an_agent_that_goes_is_not_chosen_any_more_then_leaves_the_hub_then_goes() {
    let agent = leaving(converged(agent(), row("known-unbound")));
    let hidden = plan(&snapshot(Some(agent.clone()), Some(row("known-unbound"))));
    assert_eq!(condition(&hidden, "Connected"), says("Unknown", "NotAvailable"));
    assert_eq!(condition(&hidden, "Validated"), says("Unknown", "NotAvailable"));
    assert_eq!((calls(&hidden).len(), hidden.then), (0, Then::Again));
    let plan = plan(&snapshot(
        Some(after(&agent, &hidden)),
        Some(row("known-unbound")),
    ));
    assert_eq!(plan.steps[0], Step::Hub(Call::Delete(POOL)));
    assert!(let_go(&plan));
    assert_eq!(
        super::plan(&snapshot(Some(leaving(Agent::default())), None)),
        Plan::default(),
        "others hold it"
    );
}

#[test]
fn an_agent_whose_host_the_hub_keeps_says_why_it_cannot_go() {
    let mut snapshot = snapshot(Some(leaving(agent())), Some(lent("installing-in-progress", BLUE)));
    snapshot.failure = Some(Failure::Hub(Refusal::Conflict("it is being installed".into())));
    let plan = plan(&snapshot);
    assert_eq!(condition(&plan, "Cleanup"), says("False", "CleanupFailed"));
    assert!(!let_go(&plan));
    assert_eq!(plan.then, Then::After(Duration::from_secs(10)));
}

#[test]
fn the_node_of_a_deleted_agent_is_removed_as_long_as_cluster_and_infra_env_live() {
    let done = || at_stage(lent("installed", BLUE), "Done");
    let alive = || {
        let mut snapshot = snapshot(Some(leaving(wanting("blue"))), Some(done()));
        snapshot.deployment = Some(Arc::new(ClusterDeployment::default()));
        snapshot.install = Some(Arc::new(AgentClusterInstall::default()));
        snapshot
    };
    assert!(ask::question(&alive()).is_some_and(|question| question.machine));
    let mut cleaned = alive();
    cleaned.spoke = Some(Ok(Spoke {
        node: Some(node()),
        ..Spoke::default()
    }));
    let plan_of = next(&cleaned);
    assert_eq!(deeds(&plan_of), [&Deed::DeleteNode("worker-1".into())]);
    assert!(let_go(&plan_of));
    cleaned.spoke = Some(Err(NoSpoke::Failed("no route".into())));
    assert!(!let_go(&next(&cleaned)));
    let mut without_infra_env = alive();
    without_infra_env.infra_env = None;
    let mut dying = ClusterDeployment::default();
    dying.metadata.deletion_timestamp = Some(clock::time(now()));
    let mut with_dying = alive();
    with_dying.deployment = Some(Arc::new(dying));
    let mut never_installed = alive();
    never_installed.row = Some(lent("known", BLUE));
    // Its BareMetalHost went before it, and with that what was noted there.
    let mut metal = leaving(wanting("blue"));
    metal
        .labels_mut()
        .insert(label::BARE_METAL_HOST.into(), "metal-1".into());
    let mut in_the_middle = alive();
    let installing = day_two(lent("installing", BLUE));
    (in_the_middle.agent, in_the_middle.row) = (Some(Arc::new(metal)), Some(installing));
    let question = ask::question(&in_the_middle).unwrap();
    assert_eq!(
        (question.machine, question.metal),
        (true, Some(Key::new("pool", "metal-1")))
    );
    let mut of_new_cluster = in_the_middle.clone();
    of_new_cluster.row = Some(lent("installing", BLUE));
    let mut without_metal = in_the_middle;
    without_metal.agent = Some(Arc::new(leaving(wanting("blue"))));
    for snapshot in [
        without_infra_env,
        with_dying,
        never_installed,
        of_new_cluster,
        without_metal,
    ] {
        assert_eq!(ask::question(&snapshot), None);
        assert!(let_go(&next(&snapshot)));
    }
}

/// The plan after the one that hides the Agent.
fn next(snapshot: &Snapshot) -> Plan {
    let hidden = plan(snapshot);
    let agent = after(snapshot.agent.as_ref().unwrap(), &hidden);
    plan(&Snapshot {
        agent: Some(Arc::new(agent)),
        ..snapshot.clone()
    })
}
