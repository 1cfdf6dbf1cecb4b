//! What an Agent shows.

use super::*;
use crate::controller::agent::plan::metadata;
use crate::controller::agent::snapshot::Claim;

#[test]
fn a_new_host_gets_an_agent_with_everything_it_must_never_be_without() {
    let mut snapshot = snapshot(None, Some(row("discovering-unbound")));
    let mut pool = infra_env("shared");
    pool.spec.agent_labels.insert("zone".into(), "north".into());
    pool.spec.agent_approval = Some(crate::crd::infra_env::AgentApproval { auto_approve: true });
    snapshot.infra_env = Some(Arc::new(pool));
    let plan = plan(&snapshot);
    let [Step::Create(agent)] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (agent.name_any(), agent.namespace().unwrap()),
        (HOST.into(), "pool".into())
    );
    assert_eq!(agent.labels()["zone"], "north");
    assert_eq!(agent.labels()[label::INFRA_ENV], "shared");
    assert_eq!(agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE], "");
    assert_eq!(agent.finalizers(), [finalizer::AGENT]);
    let owner = &agent.owner_references()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.uid.as_str(), owner.controller),
        ("InfraEnv", "uid-of-shared", None)
    );
    assert!(agent.spec.approved);
    assert_eq!(agent.spec.cluster_deployment_name, None);
    let wire = serde_json::to_value(agent).unwrap();
    assert_eq!(
        (&wire["spec"]["role"], &wire["spec"]["approved"]),
        (&json!(""), &json!(true))
    );
}

#[test]
fn an_agent_made_anew_knows_the_cluster_its_host_is_in() {
    let plan_of = plan(&snapshot(None, Some(lent("known", BLUE))));
    let [Step::Create(agent)] = &plan_of.steps[..] else {
        panic!("{plan_of:?}")
    };
    assert_eq!(
        agent.spec.cluster_deployment_name,
        wanting("blue").spec.cluster_deployment_name
    );
    assert_eq!(agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE], "clusters");
    let mut foreign = snapshot(None, Some(lent("known", BLUE)));
    foreign.tenant = None;
    assert_eq!(
        plan(&foreign).steps,
        [],
        "an Agent without its cluster would take the host away from it"
    );
}

#[test]
fn an_agent_made_anew_is_still_that_of_its_machine() {
    let mut snapshot = snapshot(None, Some(row("discovering-unbound")));
    snapshot.claim = Some(Claim {
        machine: Key::new("hcp", "m1"),
        cluster: wanting("blue").spec.cluster_deployment_name.unwrap(),
        keepsake: None,
    });
    let made = |snapshot: &Snapshot| match &plan(snapshot).steps[..] {
        [Step::Create(agent)] => (**agent).clone(),
        steps => panic!("{steps:?}"),
    };
    let agent = made(&snapshot);
    assert_eq!(
        agent.spec.cluster_deployment_name,
        wanting("blue").spec.cluster_deployment_name
    );
    assert_eq!(agent.labels()[label::AGENT_MACHINE], "m1");
    assert_eq!(agent.annotations()[annotation::AGENT_MACHINE_NAMESPACE], "hcp");
    // Somebody else has lent the host meanwhile.
    snapshot.row = Some(lent("known", GREEN));
    snapshot.tenant = Some(Key::new("clusters", "green"));
    let agent = made(&snapshot);
    assert!(!agent.labels().contains_key(label::AGENT_MACHINE));
    assert_eq!(agent.spec.cluster_deployment_name.unwrap().name, "green");
}

#[test]
fn a_host_without_an_inventory_passes_no_checks() {
    let mut fresh = row("discovering-unbound");
    fresh.host.inventory.clear();
    assert!(!fresh.host.validations_info.is_empty());
    let plan = plan(&snapshot(Some(agent()), Some(fresh)));
    assert_eq!(
        condition(&plan, "Validated"),
        says("Unknown", "ValidationsUnknown")
    );
}

#[test]
fn a_host_that_nobody_has_named_passes_no_checks() {
    let mut nameless = row("known-unbound");
    nameless.host.inventory = nameless.host.inventory.replace("worker-1", "");
    let validated = |agent: Agent, row: &HostDetail| {
        let plan = plan(&snapshot(Some(agent), Some(row.clone())));
        condition(&plan, "Validated")
    };
    assert_eq!(
        validated(agent(), &nameless),
        says("Unknown", "ValidationsUnknown")
    );
    let mut named = agent();
    named.spec.hostname = "worker-7".into();
    nameless.given_name = "worker-7".into();
    assert_eq!(validated(named, &nameless), says("True", "ValidationsPassing"));
}

#[test]
fn nothing_is_made_for_an_infra_env_that_goes() {
    let mut snapshot = snapshot(None, Some(row("known-unbound")));
    let mut pool = infra_env("shared");
    pool.metadata.deletion_timestamp = Some(crate::runtime::clock::time(now()));
    snapshot.infra_env = Some(Arc::new(pool));
    assert_eq!(plan(&snapshot), Plan::default());
}

#[test]
fn the_object_shows_the_host_and_a_second_reconcile_changes_nothing() {
    let agent = converged(agent(), row("known-unbound"));
    let status = agent.status.clone().unwrap();
    assert_eq!(status.inventory.hostname, "worker-1");
    assert_eq!(status.inventory.cpu.clock_megahertz, 2400);
    assert_eq!(status.inventory.interfaces[0].ip_v4_addresses, ["10.0.0.5/24"]);
    assert_eq!(
        status.inventory.disks[1]
            .installation_eligibility
            .not_eligible_reasons,
        ["too small"]
    );
    assert_eq!(
        (status.kind.as_str(), status.role.as_str()),
        ("Host", "auto-assign")
    );
    assert_eq!(
        (
            status.debug_info.state.as_str(),
            status.debug_info.state_info.as_str()
        ),
        ("known-unbound", "as it is")
    );
    assert_eq!(status.validations_info["hardware"][1].status, "failure");
    let labels = agent.labels();
    assert_eq!(labels[label::HOST_MANUFACTURER], "RedHatInc");
    assert_eq!(
        (
            &*labels[label::HAS_NON_ROTATIONAL_DISK],
            &*labels[label::CPU_VIRT_ENABLED]
        ),
        ("true", "true")
    );
    assert_eq!(
        plan(&snapshot(Some(agent), Some(row("known-unbound")))),
        Plan::default()
    );
}

#[test]
fn the_object_carries_what_a_new_hub_would_need_to_know() {
    let agent = converged(
        wanting("blue"),
        at_stage(lent("installing-in-progress", BLUE), "Rebooting"),
    );
    let noted = agent.annotations();
    assert_eq!(noted[annotation::AGENT_STATE], "installing-in-progress");
    assert_eq!(noted[annotation::AGENT_STAGE], "Rebooting");
    assert_eq!(noted[annotation::AGENT_ROLE], "auto-assign");
    assert_eq!(noted[annotation::AGENT_INVENTORY], INVENTORY);
    assert_eq!(noted[annotation::AGENT_VALIDATIONS], CHECKS);
    assert_eq!(noted[annotation::INVENTORY_VERSION], "0.1");
    let mut large = row("known-unbound");
    large.host.inventory = format!("{{\"hostname\": \"{}\"}}", "x".repeat(300 * 1024));
    let agent = converged(self::agent(), large);
    assert!(
        !agent.annotations().contains_key(annotation::AGENT_INVENTORY),
        "the API server would refuse the object"
    );
}

#[test]
fn while_a_host_is_handed_over_what_was_known_of_it_stays() {
    let agent = converged(wanting("blue"), lent("known", BLUE));
    let mut bare = lent("binding", BLUE);
    (bare.host.inventory, bare.host.validations_info) = Default::default();
    let agent = converged(agent, bare);
    assert_eq!(agent.status.as_ref().unwrap().inventory.hostname, "worker-1");
    assert_eq!(agent.labels()[label::CPU_ARCHITECTURE], "x86_64");
    assert_eq!(agent.annotations()[annotation::AGENT_STATE], "binding");
}

#[test]
fn the_namespace_of_the_cluster_is_on_the_object_as_soon_as_the_cluster_is() {
    let plan = plan(&snapshot(Some(wanting("blue")), Some(row("discovering-unbound"))));
    let Step::Patch(patch) = &plan.steps[0] else {
        panic!("{plan:?}")
    };
    assert_eq!(
        patch["metadata"]["labels"][label::CLUSTER_DEPLOYMENT_NAMESPACE],
        "clusters"
    );
    let mut back = wanting("blue");
    back.labels_mut()
        .insert(label::CLUSTER_DEPLOYMENT_NAMESPACE.into(), "clusters".into());
    back.spec.cluster_deployment_name = None;
    let agent = converged(back, row("known-unbound"));
    assert_eq!(agent.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE], "");
}

#[test]
fn an_infra_env_that_approves_approves_later_too() {
    let mut snapshot = snapshot(Some(agent()), Some(row("known-unbound")));
    let mut pool = infra_env("shared");
    pool.spec.agent_approval = Some(crate::crd::infra_env::AgentApproval { auto_approve: true });
    snapshot.infra_env = Some(Arc::new(pool));
    let plan = plan(&snapshot);
    let Some(Step::Patch(patch)) = plan.steps.last() else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (&patch["spec"]["approved"], plan.then),
        (&json!(true), Then::Again)
    );
}

#[test]
fn node_labels_come_from_the_infra_env_unless_somebody_chose_another_value() {
    let mut pool = infra_env("shared");
    pool.labels_mut().extend([
        ("zone".to_owned(), "north".to_owned()),
        ("rack".to_owned(), "7".to_owned()),
    ]);
    pool.annotations_mut().insert(
        annotation::PROPAGATE_NODE_LABELS.into(),
        "zone, rack,absent".into(),
    );
    let own = labels(&[("rack", "9")]);
    let mut agent = agent();
    agent.spec.node_labels = own.clone();
    let agent = in_pool(&pool, agent);
    assert_eq!(
        agent.spec.node_labels,
        labels(&[("rack", "9"), ("zone", "north")])
    );
    assert_eq!(agent.annotations()[annotation::INHERITED_NODE_LABELS], "zone");
    pool.labels_mut().insert("zone".into(), "south".into());
    let agent = in_pool(&pool, agent);
    assert_eq!(agent.spec.node_labels["zone"], "south");
    pool.annotations_mut().clear();
    let agent = in_pool(&pool, agent);
    assert_eq!(agent.spec.node_labels, own);
    let noted = [annotation::INHERITED_NODE_LABELS, annotation::INHERITED_VALUES];
    assert!(noted.iter().all(|key| !agent.annotations().contains_key(*key)));
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// After reconciles with this InfraEnv; the host has what the object asks for.
fn in_pool(pool: &InfraEnv, agent: Agent) -> Agent {
    let mut snapshot = snapshot(Some(agent.clone()), Some(row("known-unbound")));
    snapshot.infra_env = Some(Arc::new(pool.clone()));
    after(&agent, &plan(&snapshot))
}

#[test]
fn who_changes_an_inherited_label_makes_it_their_own() {
    let mut pool = infra_env("shared");
    pool.labels_mut().insert("zone".into(), "north".into());
    let listed = annotation::PROPAGATE_NODE_LABELS.to_owned();
    pool.annotations_mut().insert(listed, "zone".into());
    let mut agent = in_pool(&pool, agent());
    assert_eq!(agent.spec.node_labels, labels(&[("zone", "north")]));
    agent.spec.node_labels.insert("zone".into(), "west".into());
    let mut agent = in_pool(&pool, agent);
    assert_eq!(agent.spec.node_labels, labels(&[("zone", "west")]));
    assert!(
        !agent
            .annotations()
            .contains_key(annotation::INHERITED_NODE_LABELS)
    );
    pool.labels_mut().insert("zone".into(), "south".into());
    agent = in_pool(&pool, agent);
    assert_eq!(agent.spec.node_labels, labels(&[("zone", "west")]));
    pool.annotations_mut().clear();
    assert_eq!(
        in_pool(&pool, agent).spec.node_labels,
        labels(&[("zone", "west")])
    );
}

#[test]
fn of_a_label_that_others_noted_as_inherited_nobody_knows_the_value_and_what_is_there_stays() {
    let mut pool = infra_env("shared");
    pool.labels_mut().insert("zone".into(), "south".into());
    let listed = annotation::PROPAGATE_NODE_LABELS.to_owned();
    pool.annotations_mut().insert(listed, "zone".into());
    let mut agent = agent();
    agent.spec.node_labels = labels(&[("zone", "north"), ("rack", "7")]);
    let noted = annotation::INHERITED_NODE_LABELS.to_owned();
    agent.annotations_mut().insert(noted, "rack,zone".into());
    let agent = in_pool(&pool, agent);
    assert_eq!(
        agent.spec.node_labels,
        labels(&[("zone", "north")]),
        "what the InfraEnv does not name any more is gone"
    );
}

#[test]
fn in_the_same_infra_env_everything_people_wrote_stays_and_in_another_nothing_does() {
    let mut agent = wanting("blue");
    (agent.spec.approved, agent.spec.hostname) = (true, "chosen".into());
    agent.spec.installation_disk_id = "/dev/disk/by-id/wwn-1".into();
    agent.labels_mut().insert("mine".into(), "yes".into());
    let same = converged(agent.clone(), row("discovering-unbound"));
    assert_eq!(same.spec, agent.spec);
    assert_eq!(same.labels()["mine"], "yes");
    let mut snapshot = snapshot(Some(agent.clone()), Some(row("discovering-unbound")));
    snapshot.infra_env = Some(Arc::new(infra_env("other")));
    let mut old = row("disconnected-unbound");
    old.host.infra_env_id = Uuid::from_u128(99);
    snapshot.stale = vec![old];
    let state_first = plan(&snapshot);
    assert_eq!((calls(&state_first).len(), state_first.then), (0, Then::Again));
    let agent = after(&agent, &state_first);
    snapshot.agent = Some(Arc::new(agent.clone()));
    let plan = plan(&snapshot);
    assert_eq!(calls(&plan), [&Call::Delete(Uuid::from_u128(99))]);
    let anew = after(&agent, &plan);
    assert_eq!(anew.spec, crate::crd::agent::AgentSpec::default());
    assert_eq!(anew.labels().get("mine"), None);
    assert_eq!(anew.labels()[label::INFRA_ENV], "other");
    assert_eq!(anew.owner_references()[0].name, "other");
}

/// With much written into it, and belonging to this InfraEnv.
fn written(owner: &str) -> Agent {
    let mut agent = wanting("blue");
    (agent.spec.approved, agent.spec.hostname) = (true, "chosen".into());
    agent.labels_mut().insert("mine".into(), "yes".into());
    agent.metadata.owner_references = Some(vec![metadata::owner(&infra_env(owner))]);
    agent
}

#[test]
fn a_label_that_somebody_overwrote_is_put_right_and_nothing_else_is_lost() {
    let mut agent = written("shared");
    agent
        .labels_mut()
        .insert(label::INFRA_ENV.into(), "anything".into());
    let spec = agent.spec.clone();
    let mended = converged(agent.clone(), lent("known", BLUE));
    assert_eq!((&mended.spec, &*mended.labels()["mine"]), (&spec, "yes"));
    assert_eq!(mended.labels()[label::INFRA_ENV], "shared");
    let mut snapshot = snapshot(Some(agent.clone()), Some(lent("known", BLUE)));
    snapshot.stale = vec![lent("installing", BLUE)];
    let kept = after(&agent, &plan(&snapshot));
    assert_eq!(
        kept.spec, spec,
        "it has moved before, and the disk there is still written"
    );
    agent.metadata.owner_references = None;
    let unowned = converged(agent, lent("known", BLUE));
    assert_eq!(unowned.spec, spec, "a label proves nothing");
}

#[test]
fn a_host_that_went_to_another_infra_env_without_a_trace_in_the_hub_is_known_by_the_owner() {
    let agent = written("shared");
    let mut snapshot = snapshot(Some(agent.clone()), Some(row("discovering-unbound")));
    snapshot.infra_env = Some(Arc::new(infra_env("other")));
    let agent = after(&agent, &plan(&snapshot));
    snapshot.agent = Some(Arc::new(agent.clone()));
    let anew = after(&agent, &plan(&snapshot));
    assert_eq!(anew.spec, crate::crd::agent::AgentSpec::default());
    assert_eq!(anew.owner_references()[0].uid, "uid-of-other");
}

#[test]
fn a_host_of_a_machine_that_booted_another_image_is_still_the_machines() {
    let mut agent = written("shared");
    agent
        .labels_mut()
        .insert(label::AGENT_MACHINE.into(), "m1".into());
    let note = (annotation::AGENT_MACHINE_NAMESPACE.to_owned(), "hcp".to_owned());
    agent.annotations_mut().extend([note]);
    let mut moved = snapshot(Some(agent.clone()), Some(row("discovering-unbound")));
    assert!(!is_rehomed(&moved));
    moved.infra_env = Some(Arc::new(infra_env("other")));
    assert!(is_rehomed(&moved));
    let agent = after(&agent, &plan(&moved));
    moved.agent = Some(Arc::new(agent.clone()));
    let cluster = agent.spec.cluster_deployment_name.clone();
    let whose = |agent: &Agent| {
        let label = agent.labels().get(label::AGENT_MACHINE).cloned();
        let note = agent
            .annotations()
            .get(annotation::AGENT_MACHINE_NAMESPACE)
            .cloned();
        (label, note, agent.spec.cluster_deployment_name.clone())
    };
    // Nobody counts on it any more.
    let free = after(&agent, &plan(&moved));
    assert_eq!(whose(&free), (None, None, None));
    let claim = |cluster: Option<ClusterRef>| Claim {
        machine: Key::new("hcp", "m1"),
        cluster: cluster.unwrap(),
        keepsake: None,
    };
    moved.claim = Some(claim(cluster.clone()));
    let kept = after(&agent, &plan(&moved));
    assert_eq!(whose(&kept), (Some("m1".into()), Some("hcp".into()), cluster));
    assert_eq!(kept.spec.hostname, "", "what people wrote is gone all the same");
    assert_eq!(kept.labels()[label::CLUSTER_DEPLOYMENT_NAMESPACE], "clusters");
    assert_eq!(kept.owner_references()[0].uid, "uid-of-other");
    // The other image leads to another cluster.
    let mut early = infra_env("other");
    early.spec.cluster_ref = wanting("green").spec.cluster_deployment_name;
    (moved.infra_env, moved.row) = (Some(Arc::new(early)), Some(lent("discovering", GREEN)));
    let mut agent = agent;
    agent.status.as_mut().unwrap().debug_info.state = "discovering".into();
    moved.agent = Some(Arc::new(agent.clone()));
    let green = after(&agent, &plan(&moved));
    assert_eq!(
        whose(&green),
        (None, None, wanting("green").spec.cluster_deployment_name)
    );
}

#[test]
fn between_infra_envs_of_one_cluster_what_people_wrote_stays() {
    let mut agent = written("shared");
    let mut old = lent("disconnected", BLUE);
    old.host.infra_env_id = Uuid::from_u128(99);
    let mut early = infra_env("other");
    early.spec.cluster_ref = agent.spec.cluster_deployment_name.clone();
    let mut snapshot = snapshot(Some(agent.clone()), Some(lent("discovering", BLUE)));
    (snapshot.infra_env, snapshot.stale) = (Some(Arc::new(early)), vec![old]);
    let plan_of = plan(&snapshot);
    assert_eq!(calls(&plan_of), [&Call::Delete(Uuid::from_u128(99))]);
    let spec = agent.spec.clone();
    agent = after(&agent, &plan_of);
    assert_eq!((&agent.spec, &*agent.labels()["mine"]), (&spec, "yes"));
    assert_eq!(agent.labels()[label::INFRA_ENV], "other");
    let owners: Vec<_> = agent.owner_references().iter().map(|owner| &*owner.uid).collect();
    assert_eq!(owners, ["uid-of-other"]);
    (snapshot.agent, snapshot.stale) = (Some(Arc::new(agent.clone())), Vec::new());
    assert_eq!(
        after(&agent, &plan(&snapshot)).spec,
        spec,
        "nor does the next reconcile take it"
    );
}

#[test]
fn an_owner_of_the_same_name_that_was_restored_takes_the_place_of_the_old_one() {
    let mut agent = agent();
    let mut old = metadata::owner(&infra_env("shared"));
    old.uid = "of-another-life".into();
    agent.metadata.owner_references = Some(vec![old]);
    let agent = converged(agent, row("known-unbound"));
    let uids: Vec<_> = agent
        .owner_references()
        .iter()
        .map(|owner| owner.uid.as_str())
        .collect();
    assert_eq!(uids, ["uid-of-shared"]);
}

#[test]
fn an_event_says_when_a_host_changes_hands_and_none_when_nothing_happens() {
    let events_of = |plan: &Plan| -> Vec<String> {
        let news = plan.steps.iter().filter_map(|step| match step {
            Step::Tell(news) => Some(news.reason.clone()),
            _ => None,
        });
        news.collect()
    };
    let agent = converged(wanting("blue"), lent("binding", BLUE));
    let bound = plan(&snapshot(Some(agent.clone()), Some(lent("known", BLUE))));
    assert_eq!(events_of(&bound), ["Bound"]);
    let agent = converged(agent, lent("known", BLUE));
    let unchanged = plan(&snapshot(Some(agent), Some(lent("known", BLUE))));
    assert_eq!(events_of(&unchanged), [] as [String; 0]);
}
