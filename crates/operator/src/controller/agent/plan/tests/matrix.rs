//! Every state of a host, and what the conditions say of it.

use super::*;

const A: &str = "True ValidationsPassing";

fn conditions(status: &'static str, approved: bool) -> [String; 5] {
    let mut agent = agent();
    agent.spec.approved = approved;
    let mut row = row(status);
    row.approved = approved;
    let free =
        status.ends_with("-unbound") || status.starts_with("unbinding") || status.starts_with("reclaiming");
    if !free {
        row.host.cluster_id = Some(BLUE);
        agent.spec.cluster_deployment_name = wanting("blue").spec.cluster_deployment_name;
    }
    let agent = converged(agent, row);
    let all = agent.status.unwrap().conditions;
    ["Connected", "RequirementsMet", "Validated", "Installed", "Bound"].map(|type_| {
        let found = all.iter().find(|one| one.type_ == type_).unwrap();
        format!("{} {}", found.status, found.reason)
    })
}

#[test]
fn each_state_has_its_conditions() {
    const YES: &str = "True AgentIsConnected";
    const NO: &str = "False AgentIsDisconnected";
    const NOT_READY: &str = "False AgentNotReady";
    const NOT_STARTED: &str = "False InstallationNotStarted";
    const FAILING: &str = "False ValidationsFailing";
    const GOING: &str = "True AgentAlreadyInstalling";
    const IN_PROGRESS: &str = "False InstallationInProgress";
    const STOPPED: &str = "True AgentInstallationStopped";
    const BOUND: &str = "True Bound";
    const FREE: &str = "False Unbound";
    const UNKNOWN: &str = "Unknown UnknownStatus";
    const DONE: &str = "True InstallationCompleted";
    const FAILED: &str = "False InstallationFailed";
    let table = [
        ("known", [YES, "True AgentIsReady", A, NOT_STARTED, BOUND]),
        ("known-unbound", [YES, "True AgentIsReady", A, NOT_STARTED, FREE]),
        ("discovering", [YES, NOT_READY, A, NOT_STARTED, BOUND]),
        ("disconnected", [NO, NOT_READY, A, NOT_STARTED, BOUND]),
        ("insufficient", [YES, NOT_READY, FAILING, NOT_STARTED, BOUND]),
        (
            "pending-for-input",
            [YES, NOT_READY, "False ValidationsUserPending", NOT_STARTED, BOUND],
        ),
        ("discovering-unbound", [YES, NOT_READY, A, NOT_STARTED, FREE]),
        ("disconnected-unbound", [NO, NOT_READY, A, NOT_STARTED, FREE]),
        (
            "insufficient-unbound",
            [YES, NOT_READY, FAILING, NOT_STARTED, FREE],
        ),
        ("disabled-unbound", [YES, UNKNOWN, A, UNKNOWN, FREE]),
        ("preparing-for-installation", [YES, GOING, A, IN_PROGRESS, BOUND]),
        ("preparing-successful", [YES, GOING, A, IN_PROGRESS, BOUND]),
        ("installing", [YES, GOING, A, IN_PROGRESS, BOUND]),
        ("installing-in-progress", [YES, GOING, A, IN_PROGRESS, BOUND]),
        (
            "installing-pending-user-action",
            [YES, GOING, A, IN_PROGRESS, BOUND],
        ),
        ("installed", [YES, STOPPED, A, DONE, BOUND]),
        ("added-to-existing-cluster", [YES, STOPPED, A, DONE, BOUND]),
        ("error", [YES, STOPPED, A, FAILED, BOUND]),
        (
            "binding",
            [
                YES,
                "False Binding",
                "False Binding",
                "False Binding",
                "False Binding",
            ],
        ),
        (
            "unbinding",
            [
                YES,
                "False Unbinding",
                "False Unbinding",
                "False Unbinding",
                "False Unbinding",
            ],
        ),
        (
            "unbinding-pending-user-action",
            [
                YES,
                "False Unbinding",
                "False Unbinding",
                "False Unbinding",
                "False UnbindingPendingUserAction",
            ],
        ),
        ("reclaiming", [YES, UNKNOWN, A, UNKNOWN, BOUND]),
        ("reclaiming-rebooting", [YES, UNKNOWN, A, UNKNOWN, BOUND]),
        ("cancelled", [YES, STOPPED, A, FAILED, BOUND]),
        ("preparing-failed", [YES, STOPPED, A, FAILED, BOUND]),
        ("resetting", [YES, UNKNOWN, A, UNKNOWN, BOUND]),
        ("resetting-pending-user-action", [YES, UNKNOWN, A, UNKNOWN, BOUND]),
        ("disabled", [YES, UNKNOWN, A, UNKNOWN, BOUND]),
    ];
    assert_eq!(table.len(), 28, "all states there are");
    for (status, wanted) in table {
        assert_eq!(conditions(status, true), wanted, "{status}");
    }
}

#[test]
fn a_ready_host_waits_to_be_approved() {
    for status in ["known", "known-unbound"] {
        assert_eq!(
            conditions(status, false)[1],
            "False AgentIsNotApproved",
            "{status}"
        );
    }
}

#[test]
fn without_checks_nothing_is_said_about_them() {
    let mut row = row("known-unbound");
    row.host.validations_info = String::new();
    let plan = plan(&snapshot(Some(agent()), Some(row)));
    assert_eq!(
        condition(&plan, "Validated"),
        says("Unknown", "ValidationsUnknown")
    );
}

#[test]
fn failing_checks_are_named_and_the_others_are_not() {
    let agent = converged(agent(), row("insufficient-unbound"));
    let all = agent.status.unwrap().conditions;
    let validated = all.iter().find(|one| one.type_ == "Validated").unwrap();
    assert!(
        validated.message.ends_with(": too little memory"),
        "{}",
        validated.message
    );
}

#[test]
fn conditions_come_in_the_usual_order_each_with_a_reason() {
    let all = converged(agent(), row("known-unbound"))
        .status
        .unwrap()
        .conditions;
    let types: Vec<_> = all.iter().map(|one| one.type_.as_str()).collect();
    assert_eq!(
        types,
        [
            "SpecSynced",
            "Connected",
            "RequirementsMet",
            "Validated",
            "Installed",
            "Bound"
        ]
    );
    assert!(
        all.iter()
            .all(|one| !one.reason.is_empty() && one.last_heartbeat_time.is_none())
    );
}

#[test]
fn a_host_that_the_hub_does_not_know_keeps_its_object_and_says_nothing_of_itself() {
    let known = converged(agent(), row("known-unbound"));
    let lost = plan(&snapshot(Some(known.clone()), None));
    for type_ in ["Connected", "RequirementsMet", "Validated", "Installed", "Bound"] {
        assert_eq!(
            condition(&lost, type_),
            says("Unknown", "NotAvailable"),
            "{type_}"
        );
    }
    assert_eq!(synced(&lost), says("False", "BackendError"));
    let shown = after(&known, &lost);
    assert_eq!(shown.spec, known.spec);
    let status = shown.status.clone().unwrap();
    assert_eq!(
        (
            status.debug_info.state.as_str(),
            status.inventory.hostname.as_str()
        ),
        ("", "worker-1")
    );
    assert_eq!(plan(&snapshot(Some(shown), None)).steps, []);
}

#[test]
fn while_the_hub_does_not_answer_nothing_is_written() {
    let mut snapshot = snapshot(Some(agent()), None);
    snapshot.hub_error = Some("no answer".into());
    assert_eq!(
        plan(&snapshot),
        Plan::of(Vec::new(), Then::After(Duration::from_secs(10)))
    );
}

#[test]
fn while_the_hub_does_not_answer_an_agent_that_goes_is_offered_no_more() {
    let mut leaving = converged(agent(), row("known-unbound"));
    leaving.metadata.deletion_timestamp = Some(crate::runtime::clock::time(now()));
    let mut snapshot = snapshot(Some(leaving.clone()), None);
    snapshot.hub_error = Some("no answer".into());
    let hidden = plan(&snapshot);
    for type_ in ["Connected", "Validated"] {
        assert_eq!(condition(&hidden, type_), says("Unknown", "NotAvailable"));
    }
    let waits = Then::After(Duration::from_secs(10));
    assert_eq!(hidden.then, waits);
    snapshot.agent = Some(Arc::new(after(&leaving, &hidden)));
    assert_eq!(plan(&snapshot), Plan::of(Vec::new(), waits), "it is said once");
}
