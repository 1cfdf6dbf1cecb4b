//! The pool of workers of a running cluster: held while hosts with labels join, and only what was held from here is let go.

use super::worker_pool::WorkerPool;
use super::*;

fn plan(snapshot: &Snapshot) -> Plan {
    super::super::plan(snapshot)
}

fn steps(snapshot: &Snapshot) -> Vec<Step> {
    plan(snapshot).steps
}

/// A host with labels and a pool, in this state.
fn labelled(number: u128, state: &str) -> Agent {
    let mut agent = agent(number);
    agent.spec.machine_config_pool = "infra".into();
    agent.spec.node_labels.insert("a".into(), "b".into());
    agent.status.as_mut().unwrap().debug_info.state = state.into();
    agent
}

fn with_joining(state: &'static str) -> Snapshot {
    let mut snapshot = with_row(json!({}), "adding-hosts");
    enlist(&mut snapshot, &labelled(100, state), "worker", state);
    snapshot
}

fn paused_note(value: Value) -> Step {
    Step::PatchInstall(json!({ "metadata": { "annotations": { annotation::WORKERS_PAUSED: value } } }))
}

fn note_pause(snapshot: &mut Snapshot) {
    let mut install = (**snapshot.install.as_ref().unwrap()).clone();
    install
        .annotations_mut()
        .insert(annotation::WORKERS_PAUSED.into(), "true".into());
    snapshot.install = Some(Arc::new(install));
}

/// Reasons and notes of the warnings.
fn events_of(steps: &[Step]) -> Vec<(&str, &str)> {
    let news = steps.iter().filter_map(|step| match step {
        Step::Tell(news) if news.warning => Some((news.reason.as_str(), news.note.as_str())),
        _ => None,
    });
    news.collect()
}

#[test]
fn workers_are_not_rebooted_while_hosts_with_labels_and_a_pool_join() {
    let mut snapshot = with_joining("installing-in-progress");
    assert_eq!(worker_pool::wanted(&snapshot), Some(true));
    snapshot.worker_pool = WorkerPool::Found { paused: false };
    assert_eq!(steps(&snapshot), [paused_note(json!("true"))]);
    note_pause(&mut snapshot);
    assert_eq!(steps(&snapshot), [Step::PausePool(true)]);
    snapshot.agents[0].0 = Arc::new(labelled(100, "added-to-existing-cluster"));
    snapshot.worker_pool = WorkerPool::Found { paused: true };
    assert_eq!(steps(&snapshot), [Step::PausePool(false)]);
    snapshot.worker_pool = WorkerPool::Found { paused: false };
    assert_eq!(steps(&snapshot), [paused_note(json!(null))]);
    snapshot.install = Some(Arc::new(install(json!({}))));
    snapshot.agents[0].0 = Arc::new(agent(100));
    assert_eq!(worker_pool::wanted(&snapshot), None, "nobody asked for a pool");
}

#[test]
fn a_pause_of_somebody_else_is_neither_ended_nor_asked_about() {
    for done in ["added-to-existing-cluster", "installed", "known", "error"] {
        let mut snapshot = with_joining("known");
        snapshot.agents[0].0 = Arc::new(labelled(100, done));
        snapshot.row.as_mut().unwrap().hosts.clear();
        assert_eq!(worker_pool::wanted(&snapshot), None, "{done}");
        snapshot.worker_pool = WorkerPool::Found { paused: true };
        assert!(!steps(&snapshot).contains(&Step::PausePool(false)), "{done}");
    }
    let mut snapshot = with_joining("installing");
    snapshot.worker_pool = WorkerPool::Found { paused: true };
    let plan = plan(&snapshot);
    assert!(
        !plan.steps.contains(&paused_note(json!("true"))),
        "it is not ours"
    );
    rests(snapshot, &plan);
}

#[test]
fn workers_that_were_paused_for_a_host_that_was_deleted_are_resumed() {
    let mut snapshot = with_row(json!({}), "adding-hosts");
    note_pause(&mut snapshot);
    assert_eq!(worker_pool::wanted(&snapshot), Some(false));
    snapshot.worker_pool = WorkerPool::Found { paused: true };
    assert_eq!(steps(&snapshot), [Step::PausePool(false)]);
    snapshot.worker_pool = WorkerPool::Absent;
    assert_eq!(steps(&snapshot), [paused_note(json!(null))]);
}

#[test]
fn a_cluster_that_does_not_show_its_worker_pool_is_read_again_and_an_event_says_so() {
    let mut snapshot = with_row(json!({}), "adding-hosts");
    note_pause(&mut snapshot);
    snapshot.worker_pool = WorkerPool::Unknown("no route".into());
    let asked = plan(&snapshot);
    assert_eq!(
        asked.then,
        Then::After(LATER),
        "a pause that is over is no danger"
    );
    assert!(
        matches!(events_of(&asked.steps)[..], [("WorkersStayPaused", note)] if note.contains("no route")),
        "{asked:?}"
    );
    snapshot.worker_pool = WorkerPool::NotAsked;
    assert_eq!(plan(&snapshot).then, Then::Rest);

    let mut snapshot = with_joining("installing");
    snapshot.worker_pool = WorkerPool::Unknown("no route".into());
    let asked = plan(&snapshot);
    assert_eq!(asked.then, Then::After(SOON));
    assert!(
        matches!(events_of(&asked.steps)[..], [("WorkersNotPaused", _)]),
        "{asked:?}"
    );
}

#[test]
fn a_pause_that_cannot_be_written_holds_up_no_host_and_an_event_says_so() {
    let mut snapshot = with_joining("installing");
    note_pause(&mut snapshot);
    enlist(&mut snapshot, &agent(101), "worker", "known");
    snapshot.worker_pool = WorkerPool::Found { paused: false };
    let install = Step::InstallHost {
        infra_env: POOL,
        host: Uuid::from_u128(101),
    };
    assert_eq!(steps(&snapshot), [Step::PausePool(true), install.clone()]);
    snapshot.failure = Some(Failure::WorkerPool {
        pause: true,
        why: "forbidden".into(),
    });
    let next = plan(&snapshot);
    assert!(next.steps.contains(&install), "{next:?}");
    assert_eq!(next.then, Then::After(SOON));
    let [(reason, note)] = events_of(&next.steps)[..] else {
        panic!("{next:?}")
    };
    assert_eq!(reason, "WorkersNotPaused");
    assert!(
        note.contains("forbidden") && note.contains("MachineConfigPool"),
        "{note}"
    );
    says(
        &shown(&snapshot, &next),
        type_::SPEC_SYNCED,
        Truth::True,
        "SyncOK",
    );
}

/// With a note, and to be deleted.
fn leaving() -> Snapshot {
    let mut snapshot = with_row(json!({}), "adding-hosts");
    note_pause(&mut snapshot);
    let mut install = (**snapshot.install.as_ref().unwrap()).clone();
    install.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    snapshot.install = Some(Arc::new(install));
    snapshot
}

#[test]
fn workers_that_were_held_go_on_before_the_cluster_goes() {
    let mut snapshot = leaving();
    enlist(
        &mut snapshot,
        &labelled(100, "installing"),
        "worker",
        "installing",
    );
    assert_eq!(
        worker_pool::wanted(&snapshot),
        Some(false),
        "its hosts are taken out"
    );
    snapshot.worker_pool = WorkerPool::Found { paused: true };
    assert_eq!(
        plan(&snapshot),
        Plan::of(vec![Step::PausePool(false)], Then::Again)
    );
    for done in [WorkerPool::Found { paused: false }, WorkerPool::Absent] {
        snapshot.worker_pool = done;
        assert_eq!(
            plan(&snapshot),
            Plan::of(vec![paused_note(json!(null))], Then::Again)
        );
    }
}

#[test]
fn workers_that_cannot_be_resumed_do_not_keep_the_cluster_and_an_event_says_so() {
    let refused = Snapshot {
        worker_pool: WorkerPool::Found { paused: true },
        failure: Some(Failure::WorkerPool {
            pause: false,
            why: "no route".into(),
        }),
        ..leaving()
    };
    let silent = Snapshot {
        worker_pool: WorkerPool::Unknown("no route".into()),
        ..leaving()
    };
    for snapshot in [refused, silent] {
        let plan = plan(&snapshot);
        assert_eq!(plan.then, Then::Again, "and nobody tries again");
        assert_eq!(plan.steps[1..], [paused_note(json!(null))]);
        assert!(
            matches!(events_of(&plan.steps)[..], [("WorkersStayPaused", note)] if note.contains("no route")),
            "{plan:?}"
        );
    }
    let mut snapshot = leaving();
    let mut install = (**snapshot.install.as_ref().unwrap()).clone();
    install.annotations_mut().remove(annotation::WORKERS_PAUSED);
    snapshot.install = Some(Arc::new(install));
    assert_eq!(worker_pool::wanted(&snapshot), None);
    assert_eq!(steps(&snapshot), [Step::DeleteCluster]);
}

#[test]
fn nobody_touches_the_workers_of_a_cluster_that_belongs_to_another_object() {
    let stray = Snapshot {
        is_stray: true,
        ..leaving()
    };
    let copy = Snapshot {
        rival: Some(Key::new("clusters", "older")),
        ..leaving()
    };
    for snapshot in [stray, copy] {
        assert_eq!(worker_pool::wanted(&snapshot), None);
    }
}
