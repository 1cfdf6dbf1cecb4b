//! Where hosts are and where they should be.

use super::*;

pub(super) fn decided(agent: Agent, row: HostDetail) -> Plan {
    // Metadata first, so that what is left is about lending.
    let labelled = after(&agent, &plan(&snapshot(Some(agent.clone()), Some(row.clone()))));
    let agent = Agent {
        status: agent.status,
        ..labelled
    };
    plan(&snapshot(Some(agent), Some(row)))
}

#[test]
fn a_free_host_that_is_ready_is_bound() {
    let plan = decided(wanting("blue"), row("known-unbound"));
    assert_eq!(calls(&plan), [&Call::Bind(BLUE)]);
    assert_eq!(plan.then, Then::Again);
}

#[test]
fn a_free_host_that_is_not_ready_waits_without_asking_the_hub() {
    for status in [
        "discovering-unbound",
        "insufficient-unbound",
        "disconnected-unbound",
        "unbinding",
        "reclaiming",
    ] {
        let plan = decided(wanting("blue"), row(status));
        assert_eq!(synced(&plan), says("False", "BackendError"), "{status}");
        assert_eq!(
            (calls(&plan).len(), plan.then),
            (0, Then::Rest),
            "{status}: the feed tells"
        );
    }
}

#[test]
fn a_host_that_waits_gets_what_it_may_be_waiting_for() {
    let mut agent = wanting("blue");
    agent.spec.hostname = "chosen".into();
    let plan = decided(agent, row("insufficient-unbound"));
    let [Call::Update(update)] = calls(&plan)[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(update.host_name.as_deref(), Some("chosen"));
}

#[test]
fn clusters_that_are_missing_are_waited_for() {
    for missing in [Target::Absent, Target::NotInHub] {
        let mut snapshot = snapshot(Some(wanting("blue")), Some(row("known-unbound")));
        snapshot.target = missing;
        let plan = plan(&snapshot);
        assert_eq!(synced(&plan), says("False", "BackendError"));
        assert_eq!(calls(&plan).len(), 0);
    }
}

#[test]
fn a_cluster_of_another_architecture_or_in_the_middle_of_its_installation_refuses_and_nobody_is_asked() {
    let refusals = [
        ("insufficient", "arm64"),
        ("installing", "x86_64"),
        ("installed", ""),
        ("error", "multi"),
    ];
    for (status, architecture) in refusals {
        let mut snapshot = snapshot(Some(wanting("blue")), Some(row("known-unbound")));
        snapshot.target = Target::Found {
            id: BLUE,
            status: status.into(),
            architecture: architecture.into(),
        };
        let plan = plan(&snapshot);
        assert_eq!(
            synced(&plan),
            says("False", "InputError"),
            "{status} {architecture}"
        );
        assert_eq!((calls(&plan).len(), plan.then), (0, Then::Rest));
    }
}

#[test]
fn what_the_hub_refuses_is_reported_and_only_what_passes_is_tried_again() {
    let cases = [
        (Refusal::Input("no".into()), "InputError", Then::Rest),
        (
            Refusal::Conflict("not now".into()),
            "BackendError",
            Then::After(Duration::from_secs(10)),
        ),
        (
            Refusal::Internal("ill".into()),
            "BackendError",
            Then::After(Duration::from_secs(10)),
        ),
    ];
    for (failure, reason, then) in cases {
        let mut snapshot = snapshot(Some(wanting("blue")), Some(row("known-unbound")));
        snapshot.failure = Some(Failure::Hub(failure));
        let plan = plan(&snapshot);
        assert_eq!((synced(&plan), plan.then), (says("False", reason), then));
        assert_eq!(calls(&plan).len(), 0);
    }
}

#[test]
fn a_lent_host_that_nobody_wants_is_taken_back() {
    for status in [
        "known",
        "insufficient",
        "disconnected",
        "installed",
        "error",
        "cancelled",
    ] {
        let plan = decided(agent(), lent(status, BLUE));
        assert_eq!(calls(&plan), [&Call::Unbind], "{status}");
    }
}

#[test]
fn hosts_of_new_clusters_stay_while_they_are_installed_and_nothing_is_written_about_it_twice() {
    let agent = converged(agent(), lent("installing-in-progress", BLUE));
    let status = agent.status.as_ref().unwrap();
    let synced = status
        .conditions
        .iter()
        .find(|one| one.type_ == "SpecSynced")
        .unwrap();
    assert_eq!(
        (synced.status.as_str(), synced.reason.as_str()),
        ("False", "InputError")
    );
    assert_eq!(status.deprovision_info, None);
    let second = plan(&snapshot(Some(agent), Some(lent("installing-in-progress", BLUE))));
    assert_eq!(second, Plan::default());
}

#[test]
fn hosts_of_running_clusters_are_taken_out_even_while_they_are_installed() {
    let plan = decided(agent(), day_two(lent("installing-in-progress", BLUE)));
    assert_eq!(calls(&plan), [&Call::Reset, &Call::Unbind]);
}

#[test]
fn a_machine_that_its_cluster_may_know_is_noted_for_removal_before_it_has_done_anything() {
    let noted = |agent: Agent| {
        let plan = decided(agent, day_two(lent("installing", BLUE)));
        let mut steps = plan.steps.iter();
        steps.any(|step| matches!(step, Step::Status(status) if status["deprovision_info"]["cluster_name"] == "blue"))
    };
    assert!(!noted(agent()), "nothing of it is in the cluster");
    let mut metal = agent();
    metal
        .labels_mut()
        .insert(label::BARE_METAL_HOST.into(), "rack-1".into());
    assert!(noted(metal));
}

#[test]
fn hosts_of_an_infra_env_with_a_cluster_stay_in_it() {
    let mut snapshot = snapshot(Some(agent()), Some(lent("known", BLUE)));
    let mut bound = infra_env("shared");
    bound.spec.cluster_ref = wanting("blue").spec.cluster_deployment_name;
    snapshot.infra_env = Some(Arc::new(bound));
    let plan = plan(&snapshot);
    assert_eq!(
        (synced(&plan), calls(&plan).len()),
        (says("False", "InputError"), 0)
    );
}

#[test]
fn a_move_is_one_request_and_shows_as_a_move_until_it_is_over() {
    let plan_of = decided(wanting("green"), lent("known", BLUE));
    assert_eq!(calls(&plan_of), [&Call::Move(GREEN)]);
    let mut on_its_way = row("unbinding");
    on_its_way.moving_to = Some(GREEN);
    let waiting = decided(wanting("green"), on_its_way.clone());
    assert_eq!(
        (synced(&waiting), calls(&waiting).len()),
        (says("True", "Moving"), 0)
    );
    on_its_way.moving_to = Some(BLUE);
    assert_eq!(
        calls(&decided(wanting("green"), on_its_way.clone())),
        [&Call::Move(GREEN)],
        "it was redirected"
    );
    let called_off = ChangeHost {
        clear: vec![muster_contract::v1::host::HostSetting::Move],
        ..ChangeHost::default()
    };
    assert_eq!(calls(&decided(agent(), on_its_way)), [&Call::Change(called_off)]);
}

#[test]
fn where_the_node_must_be_removed_is_noted_before_the_host_goes() {
    let plan = decided(agent(), at_stage(lent("installed", BLUE), "Done"));
    let note = plan
        .steps
        .iter()
        .position(|step| matches!(step, Step::Status(_)))
        .unwrap();
    let unbind = plan
        .steps
        .iter()
        .position(|step| *step == Step::Hub(Call::Unbind))
        .unwrap();
    assert!(note < unbind);
    let info = &status_of(&plan)["deprovision_info"];
    assert_eq!(
        (&info["cluster_name"], &info["node_name"]),
        (&json!("blue"), &json!("worker-1"))
    );
    let untouched = decided(agent(), lent("known", BLUE));
    assert_eq!(
        status_of(&untouched),
        Value::Null,
        "a host that was never installed leaves nothing behind"
    );
}

#[test]
fn what_the_object_asks_for_reaches_the_host_before_it_is_bound() {
    let mut refused = row("known-unbound");
    refused.host.role = "arbiter".into();
    refused.host.fencing_credentials = "{}".into();
    let mut agent = wanting("blue");
    agent.spec.role = "worker".into();
    let first = decided(agent.clone(), refused.clone());
    let [Call::Update(update), Call::Change(change)] = calls(&first)[..] else {
        panic!("{first:?}")
    };
    assert_eq!(update.host_role.as_ref().map(|role| role.word()), Some("worker"));
    assert_eq!(change.clear, [muster_contract::v1::host::HostSetting::Fencing]);
    assert_eq!(first.then, Then::Again);
    refused.host.role = "worker".into();
    refused.host.fencing_credentials.clear();
    assert_eq!(calls(&decided(agent, refused)), [&Call::Bind(BLUE)]);
}

/// Of a host that asks for a disk it does not have.
fn mistaken() -> Agent {
    let mut agent = wanting("blue");
    agent.spec.installation_disk_id = "/dev/none".into();
    agent
}

#[test]
fn a_mistake_keeps_nobody_from_being_bound_and_is_reported_when_the_hub_refuses() {
    let plan_of = decided(mistaken(), row("known-unbound"));
    assert_eq!(calls(&plan_of), [&Call::Bind(BLUE)]);
    let mut snapshot = snapshot(Some(mistaken()), Some(row("known-unbound")));
    snapshot.failure = Some(Failure::Hub(Refusal::Conflict("not now".into())));
    let planned = plan(&snapshot);
    assert!(
        status_of(&planned).to_string().contains("/dev/none"),
        "{planned:?}"
    );
    assert_eq!(
        (synced(&planned), planned.then),
        (says("False", "InputError"), Then::After(Duration::from_secs(10)))
    );
}

#[test]
fn what_is_wrong_with_the_settings_of_a_host_that_waits_is_reported() {
    let plan_of = decided(mistaken(), row("discovering-unbound"));
    assert_eq!(
        (synced(&plan_of), plan_of.then),
        (says("False", "InputError"), Then::Rest)
    );
    let cases = [
        (Refusal::Input("no such role".into()), "InputError", Then::Rest),
        (
            Refusal::Internal("ill".into()),
            "BackendError",
            Then::After(Duration::from_secs(10)),
        ),
    ];
    for (failure, reason, then) in cases {
        let text = failure.text().to_owned();
        let mut snapshot = snapshot(Some(wanting("blue")), Some(row("insufficient-unbound")));
        snapshot.failure = Some(Failure::Hub(failure));
        let planned = plan(&snapshot);
        assert_eq!((synced(&planned), planned.then), (says("False", reason), then));
        assert!(status_of(&planned).to_string().contains(&text), "{planned:?}");
    }
}
