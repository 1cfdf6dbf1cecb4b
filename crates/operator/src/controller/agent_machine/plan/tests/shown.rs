//! What it shows of its Agent.

use super::*;

fn addresses(snapshot: &Snapshot) -> Vec<(String, String)> {
    let status = snapshot.machine.status.clone().unwrap();
    let pair = |one: &agent_machine::MachineAddress| (one.type_.clone(), one.address.clone());
    status.addresses.iter().map(pair).collect()
}

fn with_agent(mut snapshot: Snapshot, change: impl FnOnce(&mut Agent)) -> Snapshot {
    change(Arc::make_mut(snapshot.agent.as_mut().unwrap()));
    converged(snapshot)
}

fn install(agent: &mut Agent) {
    say(agent, condition::INSTALLED, "True", "InstallationCompleted");
}

#[test]
fn addresses_are_those_with_a_link_and_the_name() {
    assert_eq!(
        addresses(&claimed()),
        [word("ExternalIP", "192.0.2.7"), word("InternalDNS", "host-a")]
    );
}

#[test]
fn a_machine_that_is_renamed_before_it_is_installed_has_the_new_name() {
    let renamed = with_agent(claimed(), |agent| agent.spec.hostname = "worker-7".into());
    assert_eq!(
        addresses(&renamed),
        [word("ExternalIP", "192.0.2.7"), word("InternalDNS", "worker-7")]
    );
    // While the Agent has nothing to say, what was said stays.
    let silent = with_agent(renamed, |agent| {
        agent.spec.hostname.clear();
        agent.status.as_mut().unwrap().inventory = Default::default();
    });
    assert_eq!(addresses(&silent).len(), 2);
    // The last name before it is installed is that of the node.
    let ready = with_agent(silent, |agent| {
        agent.spec.hostname = "worker-8".into();
        install(agent);
    });
    assert!(ready.machine.status.as_ref().unwrap().ready);
    let late = with_agent(ready, |agent| agent.spec.hostname = "worker-9".into());
    assert_eq!(
        addresses(&late),
        [word("InternalDNS", "worker-8"), word("ExternalIP", "192.0.2.7")]
    );
}

#[test]
fn a_restored_machine_gets_the_addresses_that_come_later() {
    let restored = with_agent(claimed(), |agent| {
        agent.status.as_mut().unwrap().inventory = Default::default();
        agent.spec.hostname = "worker-7".into();
    });
    let restored = restored.change(|machine| machine.status = None);
    let ready = with_agent(restored, install);
    assert!(ready.machine.status.as_ref().unwrap().ready);
    assert_eq!(addresses(&ready), [word("InternalDNS", "worker-7")]);
    let whole = with_agent(ready, |known| {
        let inventory = agent("a", 16).status.unwrap().inventory;
        known.status.as_mut().unwrap().inventory = inventory;
    });
    assert_eq!(
        addresses(&whole),
        [word("InternalDNS", "worker-7"), word("ExternalIP", "192.0.2.7")],
        "and the name of the node is not changed"
    );
}

#[test]
fn conditions_are_those_of_the_agent_and_the_first_that_fails_decides() {
    let mut snapshot = claimed();
    assert_eq!(says(&snapshot, "AgentReserved"), word("True", "AgentReserved"));
    assert_eq!(
        says(&snapshot, "AgentValidated"),
        word("True", "AgentConditionTrue")
    );
    assert_eq!(
        says(&snapshot, "Installed"),
        word("False", "InstallationNotStarted")
    );
    assert_eq!(says(&snapshot, "Ready"), word("False", "InstallationNotStarted"));
    let agent = Arc::make_mut(snapshot.agent.as_mut().unwrap());
    say(agent, condition::VALIDATED, "Unknown", "");
    agent
        .status
        .as_mut()
        .unwrap()
        .conditions
        .retain(|known| known.type_ != condition::SPEC_SYNCED);
    let snapshot = converged(snapshot);
    assert_eq!(
        says(&snapshot, "AgentSpecSynced"),
        word("False", "ConditionNotFound")
    );
    assert_eq!(says(&snapshot, "Ready"), word("False", "ConditionNotFound"));
    let conditions = snapshot.machine.status.clone().unwrap().conditions;
    assert!(
        conditions.iter().all(|one| !one.reason.is_empty()),
        "an empty reason is refused"
    );
}

#[test]
fn ready_is_never_taken_back() {
    let mut snapshot = claimed();
    let agent = Arc::make_mut(snapshot.agent.as_mut().unwrap());
    say(agent, condition::INSTALLED, "True", "InstallationCompleted");
    let mut snapshot = converged(snapshot);
    assert!(snapshot.machine.status.as_ref().unwrap().ready);
    assert_eq!(says(&snapshot, "Ready"), word("True", "Ready"));
    let agent = Arc::make_mut(snapshot.agent.as_mut().unwrap());
    say(agent, condition::INSTALLED, "False", "InstallationFailed");
    let snapshot = converged(snapshot);
    assert!(snapshot.machine.status.as_ref().unwrap().ready);
}

#[test]
fn why_it_was_this_one_is_still_said_later() {
    let mut snapshot = claimed();
    let (_, _, before) = found(&snapshot, "AgentReserved");
    assert!(before.contains("no other Agent fits"), "{before}");
    let agent = Arc::make_mut(snapshot.agent.as_mut().unwrap());
    say(agent, condition::INSTALLED, "False", "InstallationInProgress");
    assert_eq!(found(&converged(snapshot), "AgentReserved").2, before);
}

#[test]
fn marks_that_got_lost_are_put_back() {
    let mut snapshot = claimed();
    let whole = snapshot.agent.clone();
    let agent = Arc::make_mut(snapshot.agent.as_mut().unwrap());
    agent.metadata.annotations = None;
    let annotated = converged(snapshot.clone());
    assert_eq!(
        annotated.agent.unwrap().annotations(),
        whole.as_ref().unwrap().annotations()
    );
    let agent = Arc::make_mut(snapshot.agent.as_mut().unwrap());
    agent.metadata.labels = None;
    let repaired = converged(snapshot);
    assert_eq!(repaired.agent.unwrap().labels(), whole.unwrap().labels());
}

#[test]
fn a_binding_that_was_removed_is_not_put_back() {
    let mut snapshot = claimed();
    let agent = Arc::make_mut(snapshot.agent.as_mut().unwrap());
    agent.spec.cluster_deployment_name = None;
    assert_eq!(
        converged(snapshot).agent.unwrap().spec.cluster_deployment_name,
        None
    );
}

#[test]
fn a_new_agent_of_the_same_name_is_claimed_again() {
    let mut snapshot = claimed();
    snapshot.agent = Some(Arc::new(agent("a", 16)));
    let again = converged(snapshot).agent.unwrap();
    assert_eq!(again.labels()[label::AGENT_MACHINE], "m1");
    assert!(again.spec.cluster_deployment_name.is_some());
}

#[test]
fn an_agent_that_is_gone_or_somebody_elses_is_said_and_no_other_is_taken() {
    let mut gone = claimed();
    gone.agent = None;
    let gone = converged(gone);
    assert_eq!(says(&gone, "Ready"), word("False", "AgentNotYetFound"));
    assert!(gone.machine.status.clone().unwrap().agent_ref.is_some());
    let mut stolen = claimed();
    let agent = Arc::make_mut(stolen.agent.as_mut().unwrap());
    agent
        .labels_mut()
        .insert(label::AGENT_MACHINE.into(), "thief".into());
    let before = stolen.agent.clone();
    let stolen = converged(stolen);
    assert_eq!(stolen.agent, before);
    assert!(found(&stolen, "AgentReserved").2.contains("thief"));
}
