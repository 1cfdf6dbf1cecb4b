//! A cluster goes, its hosts return or go with it.

use super::*;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

fn leaving(status: &str) -> Snapshot {
    let mut snapshot = with_row(json!({}), status);
    let mut install = install(json!({}));
    install.metadata.deletion_timestamp = Some(Time(now()));
    snapshot.install = Some(Arc::new(install));
    snapshot
}

fn plan(snapshot: &Snapshot) -> Plan {
    super::super::plan(snapshot)
}

fn lend(snapshot: &mut Snapshot, agent: &Agent, pool: Option<InfraEnv>) {
    snapshot
        .row
        .as_mut()
        .unwrap()
        .hosts
        .push(member(agent, "worker", "installed"));
    snapshot
        .agents
        .push((Arc::new(agent.clone()), pool.map(Arc::new)));
}

/// Nothing is done but to say who is waited for.
fn waits_for(plan: &Plan, agent: &Agent) {
    assert_eq!(plan.then, Then::After(LATER));
    let news = news_of(plan);
    assert!(news.note.contains(&agent.name_any()), "{}", news.note);
}

/// The event, and the condition that says the same.
fn news_of(plan: &Plan) -> &News {
    let [Step::Status(status), Step::Tell(news)] = plan.steps.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(news.reason, "DeletionDelayed");
    let text = status.to_string();
    assert!(
        text.contains("SpecSynced") && text.contains("DeletionDelayed"),
        "{text}"
    );
    assert!(text.contains(&news.note), "{text}");
    news
}

/// The hub has its host here, and its Agent says something else.
fn stray(snapshot: &mut Snapshot, agent: &Agent, cluster: Option<&str>, pool: Option<InfraEnv>) -> Agent {
    let mut agent = agent.clone();
    agent.spec.cluster_deployment_name = cluster.map(|name| ClusterRef {
        name: name.into(),
        namespace: "clusters".into(),
    });
    let mut member = member(&agent, "worker", "installed");
    member.infra_env = pool.map(Arc::new);
    snapshot.row.as_mut().unwrap().hosts.push(member);
    agent
}

#[test]
fn an_early_bound_agent_goes_with_the_cluster_whatever_it_says() {
    for wanted in [None, Some("red")] {
        let mut snapshot = leaving("installed");
        let agent = stray(&mut snapshot, &agent(1), wanted, Some(pool(Some("blue"))));
        let plan = plan(&snapshot);
        assert_eq!(plan.steps, [Step::DeleteAgent(Key::of(&agent))], "{wanted:?}");
    }
}

#[test]
fn an_agent_that_leaves_by_itself_is_only_waited_for() {
    for wanted in [None, Some("red")] {
        let mut snapshot = leaving("installed");
        let mut preserved = deployment();
        preserved.spec.preserve_on_delete = true;
        snapshot.deployment = Some(Arc::new(preserved));
        snapshot.now = now() + SignedDuration::from_hours(1);
        let agent = stray(&mut snapshot, &agent(1), wanted, Some(pool(None)));
        waits_for(&plan(&snapshot), &agent);
    }
}

#[test]
fn an_agent_that_cannot_get_to_another_cluster_is_freed_after_a_minute() {
    let mut refused = agent(1);
    say(&mut refused, "SpecSynced", false);
    let mut snapshot = leaving("installed");
    let agent = stray(&mut snapshot, &refused, Some("red"), Some(pool(None)));
    let early = plan(&snapshot);
    waits_for(&early, &agent);
    let news = news_of(&early);
    assert!(news.note.contains("clusters/red"), "{}", news.note);
    snapshot.now = now() + SignedDuration::from_mins(1);
    assert_eq!(plan(&snapshot).steps, [Step::UnbindAgent(Key::of(&agent))]);
}

/// The image that the host booted belongs to another cluster: by the object, or as the hub has it.
fn tied(snapshot: &mut Snapshot, agent: &Agent, wanted: Option<&str>, by_object: bool) -> Agent {
    let pool = pool(by_object.then_some("red"));
    let agent = stray(snapshot, agent, wanted, Some(pool));
    let member = snapshot.row.as_mut().unwrap().hosts.last_mut().unwrap();
    member.is_tied = !by_object;
    agent
}

#[test]
fn an_agent_that_the_image_of_another_cluster_keeps_is_deleted_after_a_minute() {
    for (wanted, by_object) in [
        (None, true),
        (None, false),
        (Some("red"), true),
        (Some("red"), false),
    ] {
        let mut refused = agent(1);
        say(&mut refused, "SpecSynced", false);
        let mut snapshot = leaving("installed");
        let agent = tied(&mut snapshot, &refused, wanted, by_object);
        waits_for(&plan(&snapshot), &agent);
        snapshot.now = now() + SignedDuration::from_mins(1);
        assert_eq!(
            plan(&snapshot).steps,
            [Step::DeleteAgent(Key::of(&agent))],
            "{wanted:?} {by_object}"
        );
        let going = Arc::make_mut(snapshot.row.as_mut().unwrap().hosts[0].agent.as_mut().unwrap());
        going.metadata.deletion_timestamp = Some(Time(now()));
        waits_for(&plan(&snapshot), &agent);
    }
    let mut snapshot = leaving("installed");
    snapshot.now = now() + SignedDuration::from_hours(1);
    let agent = tied(&mut snapshot, &agent(1), None, true);
    waits_for(&plan(&snapshot), &agent);
}

#[test]
fn a_late_bound_agent_that_does_not_get_out_is_never_deleted() {
    let mut refused = agent(1);
    say(&mut refused, "SpecSynced", false);
    let mut snapshot = leaving("installed");
    snapshot.now = now() + SignedDuration::from_hours(1);
    let agent = stray(&mut snapshot, &refused, None, Some(pool(None)));
    waits_for(&plan(&snapshot), &agent);
}

#[test]
fn an_install_that_its_deployment_does_not_name_says_so_and_goes_without_touching_the_cluster() {
    let mut snapshot = Snapshot {
        deployment: None,
        is_stray: true,
        id: None,
        ..snapshot(json!({}))
    };
    let said = plan(&snapshot);
    assert_eq!(said.then, Then::Rest, "both objects are watched");
    let mut stray = shown(&snapshot, &said);
    says(&stray, type_::SPEC_SYNCED, Truth::False, "InputError");
    says(&stray, type_::COMPLETED, Truth::Unknown, "NotAvailable");
    let conditions = &stray.status.as_ref().unwrap().conditions;
    let message = &find_install(conditions, type_::SPEC_SYNCED).unwrap().message;
    assert!(message.contains("spec.clusterInstallRef"), "{message}");
    rests(snapshot.clone(), &said);
    stray.metadata.deletion_timestamp = Some(Time(now()));
    snapshot.install = Some(Arc::new(stray));
    let last = plan(&snapshot).steps;
    let [Step::PatchInstall(patch)] = last.as_slice() else {
        panic!("{last:?}")
    };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
}

#[test]
fn the_cluster_deployment_stays_until_the_install_is_really_gone() {
    let mut snapshot = with_row(json!({}), "installed");
    let mut going = deployment();
    going.metadata.deletion_timestamp = Some(Time(now()));
    snapshot.deployment = Some(Arc::new(going));
    assert_eq!(plan(&snapshot), Plan::of(vec![Step::DeleteInstall], Then::Rest));
    let mut gone = AgentClusterInstall::clone(snapshot.install.as_ref().unwrap());
    gone.metadata.deletion_timestamp = Some(Time(now()));
    snapshot.install = Some(Arc::new(gone));
    assert_eq!(plan(&snapshot).steps, [Step::DeleteCluster]);
    snapshot.row = None;
    assert!(matches!(
        plan(&snapshot).steps.as_slice(),
        [Step::PatchInstall(_)]
    ));
    snapshot.install = None;
    let last = plan(&snapshot).steps;
    let [Step::PatchDeployment(patch)] = last.as_slice() else {
        panic!("{last:?}")
    };
    assert_eq!(patch["metadata"]["finalizers"], json!([]));
}

#[test]
fn an_installation_is_cancelled_before_anything_else() {
    for busy in [
        "preparing-for-installation",
        "installing",
        "installing-pending-user-action",
        "finalizing",
        "error",
    ] {
        let mut snapshot = leaving(busy);
        lend(&mut snapshot, &agent(100), Some(pool(None)));
        assert_eq!(
            plan(&snapshot),
            Plan::of(vec![Step::Cancel], Then::Again),
            "{busy}"
        );
    }
}

#[test]
fn early_bound_agents_go_with_the_cluster_and_late_bound_ones_return() {
    let key = |number| Key::new("pool", Uuid::from_u128(number).to_string());
    let mut snapshot = leaving("installed");
    lend(&mut snapshot, &agent(1), Some(pool(Some("blue"))));
    lend(&mut snapshot, &agent(2), Some(pool(None)));
    lend(&mut snapshot, &agent(3), Some(pool(Some("red"))));
    lend(&mut snapshot, &agent(4), None);
    let steps = [
        Step::DeleteAgent(key(1)),
        Step::UnbindAgent(key(2)),
        Step::UnbindAgent(key(3)),
        Step::UnbindAgent(key(4)),
    ];
    assert_eq!(plan(&snapshot).steps, steps);
}

#[test]
fn hosts_of_a_preserved_cluster_never_return_to_the_pool() {
    let mut snapshot = leaving("adding-hosts");
    let mut preserved = deployment();
    preserved.spec.preserve_on_delete = true;
    snapshot.deployment = Some(Arc::new(preserved));
    lend(&mut snapshot, &agent(1), Some(pool(None)));
    assert_eq!(
        plan(&snapshot).steps,
        [Step::DeleteAgent(Key::new(
            "pool",
            Uuid::from_u128(1).to_string()
        ))]
    );
}

#[test]
fn an_agent_that_still_shows_the_installation_is_waited_for_because_the_api_would_refuse() {
    let mut snapshot = leaving("cancelled");
    let mut busy = agent(1);
    busy.status.as_mut().unwrap().debug_info.state = "installing-in-progress".into();
    lend(&mut snapshot, &busy, Some(pool(None)));
    waits_for(&plan(&snapshot), &busy);
    busy.status.as_mut().unwrap().kind = "AddToExistingClusterHost".into();
    snapshot.agents[0].0 = Arc::new(busy);
    assert_eq!(
        plan(&snapshot).steps.len(),
        1,
        "hosts that join a running cluster may go at any time"
    );
}

#[test]
fn the_cluster_goes_only_after_the_last_agent_took_its_host_back() {
    let mut snapshot = leaving("installed");
    snapshot
        .row
        .as_mut()
        .unwrap()
        .hosts
        .push(member(&agent(1), "worker", "installed"));
    waits_for(&plan(&snapshot), &agent(1));
    snapshot.row.as_mut().unwrap().hosts[0].agent = None;
    assert_eq!(
        plan(&snapshot).steps,
        [Step::DeleteCluster],
        "a host without an Agent is the hub's own business"
    );
}

#[test]
fn a_hub_that_does_not_answer_or_refuses_delays_the_deletion_and_loses_nothing() {
    let blind = Snapshot {
        row: None,
        hub_error: Some("gone fishing".into()),
        ..leaving("installed")
    };
    let refused = Snapshot {
        failure: Some(Failure::NotNow("installing".into())),
        ..leaving("installed")
    };
    for snapshot in [blind, refused] {
        let plan = plan(&snapshot);
        assert_eq!(plan.then, Then::After(SOON));
        assert!(news_of(&plan).warning, "{plan:?}");
    }
}

#[test]
fn a_copy_that_never_had_a_cluster_takes_none_with_it() {
    let mut snapshot = leaving("installed");
    snapshot.rival = Some(Key::new("clusters", "older"));
    assert!(matches!(
        plan(&snapshot).steps.as_slice(),
        [Step::PatchInstall(_)]
    ));
}

#[test]
fn an_install_without_its_cluster_deployment_says_so_and_can_go() {
    let mut snapshot = Snapshot {
        deployment: None,
        ..snapshot(json!({}))
    };
    let said = plan(&snapshot);
    let install = shown(&snapshot, &said);
    says(&install, type_::SPEC_SYNCED, Truth::False, "InputError");
    for type_ in [
        type_::VALIDATED,
        type_::REQUIREMENTS_MET,
        type_::COMPLETED,
        type_::FAILED,
        type_::STOPPED,
    ] {
        says(&install, type_, Truth::Unknown, "NotAvailable");
    }
    rests(snapshot.clone(), &said);
    let mut going = install;
    going.metadata.deletion_timestamp = Some(Time(now()));
    snapshot.install = Some(Arc::new(going));
    snapshot.row = Some(row("installed"));
    assert_eq!(
        plan(&snapshot).steps,
        [Step::DeleteCluster],
        "the cluster of a ClusterDeployment that was removed by force"
    );
    snapshot.row = None;
    assert!(matches!(
        plan(&snapshot).steps.as_slice(),
        [Step::PatchInstall(_)]
    ));
}

#[test]
fn a_cluster_deployment_of_somebody_else_is_left_alone() {
    let mut foreign = deployment();
    foreign.metadata.finalizers = None;
    let mut snapshot = Snapshot {
        install: None,
        ..snapshot(json!({}))
    };
    snapshot.deployment = Some(Arc::new(foreign.clone()));
    assert_eq!(plan(&snapshot), Plan::default());
    foreign.metadata.deletion_timestamp = Some(Time(now()));
    snapshot.deployment = Some(Arc::new(foreign));
    assert_eq!(plan(&snapshot), Plan::default());
}
