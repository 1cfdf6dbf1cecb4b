//! The pool of workers of a running cluster: held while hosts with labels join, and only what was held from here is let go.

use super::pool::Pool;
use super::*;

fn plan(world: &World) -> Plan {
    super::super::plan(world)
}

fn steps(world: &World) -> Vec<Step> {
    plan(world).steps
}

/// A host with labels and a pool, in this state.
fn labelled(number: u128, state: &str) -> Agent {
    let mut agent = agent(number);
    agent.spec.machine_config_pool = "infra".into();
    agent.spec.node_labels.insert("a".into(), "b".into());
    agent.status.as_mut().unwrap().debug_info.state = state.into();
    agent
}

fn with_joining(state: &'static str) -> World {
    let mut world = with_row(json!({}), "adding-hosts");
    enlist(&mut world, &labelled(100, state), "worker", state);
    world
}

fn paused_note(value: Value) -> Step {
    Step::PatchInstall(json!({ "metadata": { "annotations": { annotation::WORKERS_PAUSED: value } } }))
}

fn note_pause(world: &mut World) {
    let mut install = (**world.install.as_ref().unwrap()).clone();
    install
        .annotations_mut()
        .insert(annotation::WORKERS_PAUSED.into(), "true".into());
    world.install = Some(Arc::new(install));
}

/// Reasons and notes of the warnings.
fn told(steps: &[Step]) -> Vec<(&str, &str)> {
    let news = steps.iter().filter_map(|step| match step {
        Step::Tell(news) if news.warning => Some((news.reason.as_str(), news.note.as_str())),
        _ => None,
    });
    news.collect()
}

#[test]
fn workers_are_not_rebooted_while_hosts_with_labels_and_a_pool_join() {
    let mut world = with_joining("installing-in-progress");
    assert_eq!(pool::wanted(&world), Some(true));
    world.pool = Pool::Found { paused: false };
    assert_eq!(steps(&world), [paused_note(json!("true"))]);
    note_pause(&mut world);
    assert_eq!(steps(&world), [Step::PausePool(true)]);
    world.agents[0].0 = Arc::new(labelled(100, "added-to-existing-cluster"));
    world.pool = Pool::Found { paused: true };
    assert_eq!(steps(&world), [Step::PausePool(false)]);
    world.pool = Pool::Found { paused: false };
    assert_eq!(steps(&world), [paused_note(json!(null))]);
    world.install = Some(Arc::new(install(json!({}))));
    world.agents[0].0 = Arc::new(agent(100));
    assert_eq!(pool::wanted(&world), None, "nobody asked for a pool");
}

#[test]
fn a_pause_of_somebody_else_is_neither_ended_nor_asked_about() {
    for done in ["added-to-existing-cluster", "installed", "known", "error"] {
        let mut world = with_joining("known");
        world.agents[0].0 = Arc::new(labelled(100, done));
        world.row.as_mut().unwrap().hosts.clear();
        assert_eq!(pool::wanted(&world), None, "{done}");
        world.pool = Pool::Found { paused: true };
        assert!(!steps(&world).contains(&Step::PausePool(false)), "{done}");
    }
    let mut world = with_joining("installing");
    world.pool = Pool::Found { paused: true };
    let plan = plan(&world);
    assert!(
        !plan.steps.contains(&paused_note(json!("true"))),
        "it is not ours"
    );
    rests(world, &plan);
}

#[test]
fn workers_that_were_held_for_a_host_that_went_away_go_on() {
    let mut world = with_row(json!({}), "adding-hosts");
    note_pause(&mut world);
    assert_eq!(pool::wanted(&world), Some(false));
    world.pool = Pool::Found { paused: true };
    assert_eq!(steps(&world), [Step::PausePool(false)]);
    world.pool = Pool::Absent;
    assert_eq!(steps(&world), [paused_note(json!(null))]);
}

#[test]
fn a_cluster_that_does_not_tell_of_its_workers_is_asked_again_and_somebody_is_told() {
    let mut world = with_row(json!({}), "adding-hosts");
    note_pause(&mut world);
    world.pool = Pool::Unknown("no route".into());
    let asked = plan(&world);
    assert_eq!(
        asked.then,
        Then::After(LATER),
        "a pause that is over is no danger"
    );
    assert!(
        matches!(told(&asked.steps)[..], [("WorkersStayPaused", note)] if note.contains("no route")),
        "{asked:?}"
    );
    world.pool = Pool::NotAsked;
    assert_eq!(plan(&world).then, Then::Rest);

    let mut world = with_joining("installing");
    world.pool = Pool::Unknown("no route".into());
    let asked = plan(&world);
    assert_eq!(asked.then, Then::After(SOON));
    assert!(
        matches!(told(&asked.steps)[..], [("WorkersNotPaused", _)]),
        "{asked:?}"
    );
}

#[test]
fn a_pause_that_cannot_be_written_holds_up_no_host_and_is_told() {
    let mut world = with_joining("installing");
    note_pause(&mut world);
    enlist(&mut world, &agent(101), "worker", "known");
    world.pool = Pool::Found { paused: false };
    let install = Step::InstallHost {
        infra_env: POOL,
        host: Uuid::from_u128(101),
    };
    assert_eq!(steps(&world), [Step::PausePool(true), install.clone()]);
    world.setback = Some(Setback::Pool {
        pause: true,
        why: "forbidden".into(),
    });
    let next = plan(&world);
    assert!(next.steps.contains(&install), "{next:?}");
    assert_eq!(next.then, Then::After(SOON));
    let [(reason, note)] = told(&next.steps)[..] else {
        panic!("{next:?}")
    };
    assert_eq!(reason, "WorkersNotPaused");
    assert!(
        note.contains("forbidden") && note.contains("MachineConfigPool"),
        "{note}"
    );
    says(&shown(&world, &next), type_::SPEC_SYNCED, Truth::True, "SyncOK");
}

/// With a note, and to be deleted.
fn leaving() -> World {
    let mut world = with_row(json!({}), "adding-hosts");
    note_pause(&mut world);
    let mut install = (**world.install.as_ref().unwrap()).clone();
    install.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    world.install = Some(Arc::new(install));
    world
}

#[test]
fn workers_that_were_held_go_on_before_the_cluster_goes() {
    let mut world = leaving();
    enlist(&mut world, &labelled(100, "installing"), "worker", "installing");
    assert_eq!(pool::wanted(&world), Some(false), "its hosts are taken out");
    world.pool = Pool::Found { paused: true };
    assert_eq!(plan(&world), Plan::of(vec![Step::PausePool(false)], Then::Look));
    for done in [Pool::Found { paused: false }, Pool::Absent] {
        world.pool = done;
        assert_eq!(plan(&world), Plan::of(vec![paused_note(json!(null))], Then::Look));
    }
}

#[test]
fn workers_that_cannot_be_let_go_do_not_keep_the_cluster_and_somebody_is_told() {
    let refused = World {
        pool: Pool::Found { paused: true },
        setback: Some(Setback::Pool {
            pause: false,
            why: "no route".into(),
        }),
        ..leaving()
    };
    let silent = World {
        pool: Pool::Unknown("no route".into()),
        ..leaving()
    };
    for world in [refused, silent] {
        let plan = plan(&world);
        assert_eq!(plan.then, Then::Look, "and nobody tries again");
        assert_eq!(plan.steps[1..], [paused_note(json!(null))]);
        assert!(
            matches!(told(&plan.steps)[..], [("WorkersStayPaused", note)] if note.contains("no route")),
            "{plan:?}"
        );
    }
    let mut world = leaving();
    let mut install = (**world.install.as_ref().unwrap()).clone();
    install.annotations_mut().remove(annotation::WORKERS_PAUSED);
    world.install = Some(Arc::new(install));
    assert_eq!(pool::wanted(&world), None);
    assert_eq!(steps(&world), [Step::DeleteCluster]);
}

#[test]
fn nobody_touches_the_workers_of_a_cluster_that_belongs_to_another_object() {
    let stray = World {
        is_stray: true,
        ..leaving()
    };
    let copy = World {
        rival: Some(Key::new("clusters", "older")),
        ..leaving()
    };
    for world in [stray, copy] {
        assert_eq!(pool::wanted(&world), None);
    }
}
