//! What an Agent is made with, and what a machine keeps of it when it is deleted.

use super::*;
use crate::controller::agent::plan::keepsake::Keepsake;
use crate::controller::agent::snapshot::Claim;
use crate::crd::AgentMachine;
use crate::crd::agent_machine::AgentMachineStatus;

fn made(snapshot: &Snapshot) -> Agent {
    match &plan(snapshot).steps[..] {
        [Step::Create(agent)] => (**agent).clone(),
        steps => panic!("{steps:?}"),
    }
}

#[test]
fn an_agent_is_made_with_all_its_labels_and_annotations_so_that_nothing_is_left_but_its_status() {
    let mut pool = infra_env("shared");
    pool.labels_mut().insert("zone".into(), "north".into());
    let listed = annotation::PROPAGATE_NODE_LABELS.to_owned();
    pool.annotations_mut().insert(listed, "zone".into());
    pool.spec.agent_approval = Some(crate::crd::infra_env::AgentApproval { auto_approve: true });
    for row in [
        row("discovering-unbound"),
        row("known-unbound"),
        lent("installed", BLUE),
    ] {
        let mut snapshot = snapshot(None, Some(row.clone()));
        snapshot.infra_env = Some(Arc::new(pool.clone()));
        let agent = made(&snapshot);
        assert_eq!(
            agent.annotations()[annotation::AGENT_STATE],
            row.host.status.as_str()
        );
        assert_eq!(agent.annotations()[annotation::AGENT_INVENTORY], INVENTORY);
        assert_eq!(agent.labels()[label::CPU_ARCHITECTURE], "x86_64");
        assert_eq!(
            metadata::patch(&snapshot, &agent, &row),
            None,
            "nothing is left to be added"
        );
    }
}

#[test]
fn a_host_that_the_hub_knows_as_approved_gets_an_agent_that_is() {
    let mut known = row("known-unbound");
    known.approved = true;
    assert!(made(&snapshot(None, Some(known))).spec.approved);
    assert!(!made(&snapshot(None, Some(row("known-unbound")))).spec.approved);
}

/// That has the Agent, and its status says so.
fn machine() -> AgentMachine {
    let mut machine = AgentMachine::new("m1", Default::default());
    machine.metadata.namespace = Some("hcp".into());
    let agent_ref = Some(ClusterRef {
        name: HOST.into(),
        namespace: "pool".into(),
    });
    machine.status = Some(AgentMachineStatus {
        agent_ref,
        ..AgentMachineStatus::default()
    });
    machine
}

/// Approved and labelled by people, and on its way out.
fn leaving() -> Agent {
    let mut agent = converged(wanting("blue"), lent("known", BLUE));
    agent.spec.approved = true;
    agent.labels_mut().insert("rack".into(), "7".into());
    let class = format!("{}size", label::CLASSIFICATION_PREFIX);
    agent.labels_mut().insert(class, "large".into());
    agent.metadata.deletion_timestamp = Some(crate::runtime::clock::time(now()));
    agent
}

/// The patch by which a machine keeps what is to be kept.
fn keeps(agent: &Agent, machine: AgentMachine) -> Option<Value> {
    let mut snapshot = snapshot(Some(agent.clone()), Some(lent("known", BLUE)));
    snapshot.machines = vec![Arc::new(machine)];
    let hidden = after(agent, &plan(&snapshot));
    snapshot.agent = Some(Arc::new(hidden));
    let steps = plan(&snapshot).steps;
    let place = steps.iter().position(|step| matches!(step, Step::Keep(..)))?;
    let rest: Vec<_> = steps[place + 1..].iter().collect();
    assert!(
        rest.iter().any(|step| matches!(step, Step::Hub(Call::Delete(_))))
            && matches!(rest.last(), Some(Step::Patch(_))),
        "before anything is gone: {rest:?}"
    );
    match &steps[place] {
        Step::Keep(_, patch) => Some(patch.clone()),
        _ => None,
    }
}

fn with(mut machine: AgentMachine, patch: &Value) -> AgentMachine {
    let note = patch["metadata"]["annotations"][annotation::KEEPSAKE]
        .as_str()
        .unwrap();
    let note = (annotation::KEEPSAKE.to_owned(), note.to_owned());
    machine.annotations_mut().extend([note]);
    machine
}

#[test]
fn an_agent_that_is_deleted_and_comes_back_to_its_machine_is_approved_and_labelled_as_before() {
    let patch = keeps(&leaving(), machine()).expect("a machine has it");
    let keeper = with(machine(), &patch);
    assert_eq!(keeps(&leaving(), keeper.clone()), None, "it is written once");
    let mut anew = snapshot(None, Some(row("discovering-unbound")));
    anew.claim = Some(Claim {
        machine: Key::new("hcp", "m1"),
        cluster: wanting("blue").spec.cluster_deployment_name.unwrap(),
        keepsake: Keepsake::of(&keeper, &anew.key),
    });
    let agent = made(&anew);
    assert!(agent.spec.approved);
    assert_eq!(agent.labels()["rack"], "7");
    assert_eq!(agent.labels()[label::AGENT_MACHINE], "m1");
    let class = format!("{}size", label::CLASSIFICATION_PREFIX);
    assert!(!agent.labels().contains_key(&class), "others see to those");
}

#[test]
fn what_is_kept_counts_for_the_agent_of_the_machine_alone() {
    let key = Key::new("pool", HOST);
    let patch = keeps(&leaving(), machine()).unwrap();
    let keeper = with(machine(), &patch);
    assert!(Keepsake::of(&keeper, &key).is_some_and(|kept| kept.approved));
    let mut by_id = keeper.clone();
    (by_id.status, by_id.spec.provider_id) = (None, Some(format!("agent://{HOST}")));
    assert_eq!(
        Keepsake::of(&by_id, &key),
        None,
        "an id can be written by whoever makes machines"
    );
    let mut other = keeper.clone();
    let status = other.status.as_mut().unwrap();
    status.agent_ref.as_mut().unwrap().name = "another".into();
    assert_eq!(Keepsake::of(&other, &Key::new("pool", "another")), None);
    let mut greedy = keeper;
    let text = greedy.annotations()[annotation::KEEPSAKE].replace("rack", label::AGENT_MACHINE);
    greedy.annotations_mut().insert(annotation::KEEPSAKE.into(), text);
    assert!(Keepsake::of(&greedy, &key).unwrap().labels.is_empty());
}

#[test]
fn nothing_is_kept_of_an_agent_that_no_machine_has_or_whose_machine_goes_too() {
    let mut goes = machine();
    goes.metadata.deletion_timestamp = Some(crate::runtime::clock::time(now()));
    assert_eq!(keeps(&leaving(), goes), None);
    let mut stranger = machine();
    stranger.status = None;
    assert_eq!(keeps(&leaving(), stranger), None);
}
