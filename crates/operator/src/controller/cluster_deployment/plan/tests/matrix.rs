//! Every state of the cluster, every condition.

use super::*;

const TYPES: [&str; 5] = [
    type_::REQUIREMENTS_MET,
    type_::VALIDATED,
    type_::COMPLETED,
    type_::FAILED,
    type_::STOPPED,
];

/// RequirementsMet, Validated, Completed, Failed, Stopped.
fn conditions(status: &str, spec: Value) -> Vec<(String, String)> {
    let snapshot = manned(with_row(spec, status));
    let synced = Finding::new(type_::SPEC_SYNCED, true, reason::SYNC_OK, reason::SYNC_OK);
    let plan = Plan::of(
        status::of_cluster(&snapshot, snapshot.install.as_ref().unwrap(), synced),
        Then::Rest,
    );
    let install = shown(&snapshot, &plan);
    TYPES.iter().map(|type_| said(&install, type_)).collect()
}

fn expect(status: &str, expected: [(&str, &str); 5]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(status, reason)| ((*status).into(), (*reason).into()))
        .collect();
    assert_eq!(conditions(status, json!({})), expected, "{status}");
}

#[test]
fn conditions_follow_the_matrix_of_the_cluster_and_not_that_of_agents() {
    let (no, not_failed, not_stopped) = (
        ("False", "InstallationNotStarted"),
        ("False", "InstallationNotFailed"),
        ("False", "InstallationNotStopped"),
    );
    let passing = ("True", "ValidationsPassing");
    expect(
        "insufficient",
        [
            ("False", "ClusterNotReady"),
            ("False", "ValidationsFailing"),
            no,
            not_failed,
            not_stopped,
        ],
    );
    expect(
        "pending-for-input",
        [
            ("False", "ClusterNotReady"),
            ("False", "ValidationsUserPending"),
            no,
            not_failed,
            not_stopped,
        ],
    );
    expect(
        "ready",
        [("True", "ClusterIsReady"), passing, no, not_failed, not_stopped],
    );
    for busy in [
        "preparing-for-installation",
        "installing",
        "finalizing",
        "installing-pending-user-action",
    ] {
        let progress = ("False", "InstallationInProgress");
        expect(
            busy,
            [
                ("True", "ClusterAlreadyInstalling"),
                passing,
                progress,
                not_failed,
                not_stopped,
            ],
        );
    }
    let (done, stopped) = (
        ("True", "InstallationCompleted"),
        ("True", "ClusterInstallationStopped"),
    );
    expect("installed", [stopped, passing, done, not_failed, done]);
    expect(
        "adding-hosts",
        [
            ("True", "ClusterAlreadyInstalling"),
            passing,
            done,
            not_failed,
            done,
        ],
    );
    let failed = ("True", "InstallationFailed");
    expect(
        "error",
        [stopped, passing, ("False", "InstallationFailed"), failed, failed],
    );
    let unknown = ("Unknown", "UnknownStatus");
    expect(
        "cancelled",
        [
            unknown,
            passing,
            unknown,
            not_failed,
            ("True", "InstallationCancelled"),
        ],
    );
    expect(
        "something-new",
        [unknown, passing, unknown, not_failed, not_stopped],
    );
}

#[test]
fn without_findings_nothing_is_known_about_the_checks_unless_hosts_are_added() {
    let validated = |status: &str| {
        let mut snapshot = with_row(json!({}), status);
        snapshot.row.as_mut().unwrap().view.validations_info = String::new();
        said(
            &shown(
                &snapshot,
                &flawed(
                    &snapshot,
                    snapshot.install.as_ref().unwrap(),
                    &InvalidSpec::Input("x".into()),
                ),
            ),
            type_::VALIDATED,
        )
    };
    assert_eq!(
        validated("ready"),
        ("Unknown".into(), "ValidationsUnknown".into())
    );
    assert_eq!(
        validated("adding-hosts"),
        ("True".into(), "ValidationsPassing".into())
    );
}

#[test]
fn a_ready_cluster_that_is_held_says_so_and_no_other_does() {
    let held = json!({ "holdInstallation": true });
    assert_eq!(
        conditions("ready", held.clone())[2],
        ("False".into(), "InstallationOnHold".into())
    );
    assert_eq!(
        conditions("insufficient", held)[2],
        ("False".into(), "InstallationNotStarted".into())
    );
}

#[test]
fn failing_checks_are_quoted_and_pending_ones_too() {
    let snapshot = with_row(json!({}), "insufficient");
    let plan = super::super::plan(&snapshot);
    let install = shown(&snapshot, &plan);
    let validated = find_install(&install.status.as_ref().unwrap().conditions, type_::VALIDATED).unwrap();
    assert!(
        validated
            .message
            .ends_with("no name ; Waiting for the check ntp (no time)"),
        "{}",
        validated.message
    );
    rests(snapshot, &plan);
}

#[test]
fn agents_are_too_few_then_unsynced_then_unapproved_then_enough() {
    let requirements = |snapshot: &Snapshot| {
        let row = snapshot.row.as_ref().unwrap();
        let install = snapshot.install.as_ref().unwrap();
        let findings = condition::findings(snapshot, row, &install.spec.provision_requirements);
        findings[0].reason.clone()
    };
    let mut snapshot = with_row(json!({}), "ready");
    let mut unapproved = agent(100);
    unapproved.spec.approved = false;
    say(&mut unapproved, "SpecSynced", false);
    enlist(&mut snapshot, &unapproved, "master", "known");
    assert_eq!(requirements(&snapshot), "InsufficientAgents");
    for (number, role) in (101..).zip(["master", "master", "worker", "worker"]) {
        enlist(&mut snapshot, &agent(number), role, "known");
    }
    assert_eq!(requirements(&snapshot), "UnsyncedAgents");
    say(&mut unapproved, "SpecSynced", true);
    snapshot.agents[0].0 = Arc::new(unapproved.clone());
    snapshot.row.as_mut().unwrap().hosts[0].agent = Some(Arc::new(unapproved));
    assert_eq!(requirements(&snapshot), "UnapprovedAgents");
    snapshot.row.as_mut().unwrap().hosts[0].agent = Some(Arc::new(agent(100)));
    assert_eq!(requirements(&snapshot), "ClusterIsReady");
    enlist(&mut snapshot, &agent(105), "worker", "known");
    assert_eq!(
        requirements(&snapshot),
        "InsufficientAgents",
        "one too many is not exactly what is wanted"
    );
}

#[test]
fn the_last_preparation_is_reported_in_sentences() {
    let prepared = |status: &str| {
        let mut snapshot = with_row(json!({}), "insufficient");
        let last = &mut snapshot.row.as_mut().unwrap().view.last_installation_preparation;
        (last.status, last.reason) = (muster_vocabulary::Word::read(status), "no files".into());
        let plan = super::super::plan(&snapshot);
        said(&shown(&snapshot, &plan), type_::LAST_PREPARATION_FAILED)
    };
    let said = |status: &str, reason: &str| (status.to_owned(), reason.to_owned());
    assert_eq!(
        prepared(""),
        said(
            "False",
            "Cluster preparation has never been performed for this cluster"
        )
    );
    assert_eq!(
        prepared("not_started"),
        said(
            "False",
            "Cluster preparation has never been performed for this cluster"
        )
    );
    assert_eq!(
        prepared("success"),
        said("False", "There is no failing prior preparation attempt")
    );
    assert_eq!(
        prepared("failed"),
        said("True", "The last installation preparation failed")
    );
}

#[test]
fn the_status_shows_what_the_hub_knows_and_counts_hosts() {
    let mut snapshot = manned(with_row(json!({ "holdInstallation": true }), "ready"));
    let row = snapshot.row.as_mut().unwrap();
    row.hosts[0].host.status = "insufficient".into();
    row.hosts[4].host.logs_collected_at = muster_contract::time::DateMs(Some(now()));
    row.view.machine_networks = serde_json::from_value(json!([{ "cidr": "192.0.2.0/24" }])).unwrap();
    row.view.api_vips = serde_json::from_value(json!([{ "ip": "192.0.2.5" }])).unwrap();
    let plan = super::super::plan(&snapshot);
    let install = shown(&snapshot, &plan);
    let status = install.status.as_ref().unwrap();
    let counts = (
        status.control_plane_agents_discovered,
        status.control_plane_agents_ready,
        status.worker_agents_ready,
    );
    assert_eq!(counts, (Some(3), Some(2), Some(2)));
    assert_eq!(
        (status.api_vip.as_str(), status.machine_network[0].cidr.as_str()),
        ("192.0.2.5", "192.0.2.0/24")
    );
    let debug = &status.debug_info;
    let debug = (
        debug.events_url.as_str(),
        debug.logs_url.as_str(),
        debug.state.as_str(),
        debug.state_info.as_str(),
    );
    assert_eq!(
        debug,
        ("http://hub/events", "http://hub/logs", "ready", "as it is")
    );
    assert_eq!(
        (
            status.platform_type.as_str(),
            status.validations_info["network"].len()
        ),
        ("BareMetal", 3)
    );
    says(&install, type_::SPEC_SYNCED, Truth::True, "SyncOK");
    let synced = find_install(&status.conditions, type_::SPEC_SYNCED).unwrap();
    assert_eq!(synced.message, "SyncOK");
    rests(snapshot, &plan);
}

#[test]
fn hosts_that_passed_their_checks_count_as_ready_until_they_fail() {
    let ready = |status: &'static str| {
        let mut snapshot = with_row(json!({}), "installing");
        enlist(&mut snapshot, &agent(100), "master", status);
        let plan = super::super::plan(&snapshot);
        let status = shown(&snapshot, &plan).status.unwrap();
        assert_eq!(status.control_plane_agents_discovered, Some(1));
        status.control_plane_agents_ready == Some(1)
    };
    for passed in [
        "known",
        "preparing-for-installation",
        "preparing-successful",
        "installing",
        "installing-in-progress",
        "installing-pending-user-action",
        "installed",
        "added-to-existing-cluster",
    ] {
        assert!(ready(passed), "{passed}");
    }
    for not in [
        "discovering",
        "insufficient",
        "pending-for-input",
        "disconnected",
        "preparing-failed",
        "error",
        "cancelled",
        "resetting",
        "binding",
        "unbinding",
        "reclaiming",
    ] {
        assert!(!ready(not), "{not}");
    }
}
