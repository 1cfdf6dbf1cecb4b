//! Which Agent it is.

use super::*;
use crate::crd::agent::reason as of_agent;

#[test]
fn the_smallest_that_fits_is_taken_and_why_is_said() {
    let mut special = agent("gpu", 8);
    special.status.as_mut().unwrap().inventory.gpus = vec![Default::default()];
    let mut master = agent("m", 4);
    master.spec.role = "master".into();
    let mut raw = agent("raw", 2);
    raw.spec.approved = false;
    let agents = vec![agent("big", 64), special, master, agent("small", 16), raw];
    let mut reversed = agents.clone();
    reversed.reverse();
    let one = converged(snapshot(agents));
    let other = converged(snapshot(reversed));
    let status = one.machine.status.clone().unwrap();
    assert_eq!(status.agent_ref.as_ref().unwrap().name, "small");
    assert_eq!(
        other.machine.status, one.machine.status,
        "in whatever order they come"
    );
    let (_, _, text) = found(&one, "AgentReserved");
    for part in [
        "The machine took host-small (8 processors, 16 GiB)",
        "the smallest of 4",
        "host-big (more memory)",
        "host-gpu (more GPUs)",
        "host-m (meant for a control plane)",
        "1 not approved (host-raw)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn equal_ones_are_taken_by_name() {
    let done = converged(snapshot(vec![agent("c", 16), agent("a", 16), agent("b", 16)]));
    assert_eq!(done.machine.spec.provider_id.as_deref(), Some("agent://a"));
    assert!(
        found(&done, "AgentReserved")
            .2
            .contains("host-b (equal, and later by name)")
    );
}

#[test]
fn one_that_is_not_ready_comes_last() {
    let mut small = agent("small", 1);
    say(
        &mut small,
        condition::REQUIREMENTS_MET,
        "False",
        of_agent::NOT_READY,
    );
    let done = converged(snapshot(vec![small, agent("large", 512)]));
    assert_eq!(done.machine.spec.provider_id.as_deref(), Some("agent://large"));
}

#[test]
fn without_an_agent_both_conditions_say_so_and_nothing_is_polled() {
    let none = converged(snapshot(Vec::new()));
    for type_ in ["AgentReserved", "Ready"] {
        assert_eq!(says(&none, type_), word("False", "NoSuitableAgents"));
    }
    assert_eq!(says(&none, "Installed"), word("False", "AgentNotYetFound"));
    assert_eq!(plan(&none), Plan::default());
}

#[test]
fn why_none_fits_is_said_in_the_condition_and_in_an_event() {
    let mut bound = agent("b", 1);
    say(&mut bound, condition::BOUND, "True", of_agent::BOUND);
    let mut gone = agent("d", 1);
    say(&mut gone, condition::CONNECTED, "False", of_agent::DISCONNECTED);
    let mut reserved = agent("r", 1);
    reserved
        .labels_mut()
        .insert(label::AGENT_MACHINE.into(), "other".into());
    let mut snapshot = snapshot(vec![bound, gone, reserved]);
    snapshot.source = Source::Namespace("pool".into());
    let plan = plan(&snapshot);
    let [Step::Status(_), Step::Tell(news)] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert!(news.warning);
    assert_eq!(news.reason, "NoSuitableAgents");
    for part in [
        "in namespace pool",
        "1 bound to a cluster (host-b)",
        "1 not connected (host-d)",
        "1 reserved for other machines (host-r)",
    ] {
        assert!(news.note.contains(part), "{part}: {}", news.note);
    }
    let (_, _, text) = found(&converged(snapshot), "Ready");
    assert_eq!(text, news.note);
}

#[test]
fn hosts_on_the_way_to_or_from_a_cluster_are_not_free() {
    for reason in [
        of_agent::BINDING,
        of_agent::UNBINDING,
        of_agent::UNBINDING_PENDING_USER_ACTION,
    ] {
        let mut moving = agent("a", 1);
        say(&mut moving, condition::BOUND, "False", reason);
        let waits = converged(snapshot(vec![moving]));
        assert_eq!(
            says(&waits, "Ready"),
            word("False", "NoSuitableAgents"),
            "{reason}"
        );
    }
}

#[test]
fn what_somebody_wants_elsewhere_or_deletes_is_not_stolen() {
    let mut wanted = agent("a", 1);
    wanted.spec.cluster_deployment_name = Some(ClusterRef {
        name: "other".into(),
        namespace: "x".into(),
    });
    let mut leaving = agent("b", 1);
    leaving.metadata.deletion_timestamp = Some(Time(Timestamp::from_second(900).unwrap()));
    let mut fresh = agent("c", 1);
    fresh.status = None;
    let waits = converged(snapshot(vec![wanted, leaving, fresh]));
    assert_eq!(says(&waits, "Ready"), word("False", "NoSuitableAgents"));
    let (_, _, text) = found(&waits, "AgentReserved");
    assert!(text.contains("without an inventory yet (c)"), "{text}");
}

#[test]
fn a_selector_that_cannot_be_read_is_said() {
    let snapshot = snapshot(vec![agent("a", 1)]).change(|machine| {
        machine.spec.agent_label_selector = Some(parse(json!({
            "matchExpressions": [{ "key": "zone", "operator": "Near" }],
        })));
    });
    let (status, reason, text) = found(&converged(snapshot), "AgentReserved");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "AgentNotYetFound"));
    assert!(text.contains("agentLabelSelector"), "{text}");
}

#[test]
fn as_long_as_nobody_says_where_agents_are_taken_from_none_is_taken() {
    let mut blind = snapshot(vec![agent("a", 1)]);
    blind.source = Source::Unknown("HostedControlPlane blue".into());
    let (status, reason, text) = found(&converged(blind), "AgentReserved");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "AgentNotYetFound"));
    assert!(text.contains("HostedControlPlane blue"), "{text}");
}

#[test]
fn agents_are_taken_only_from_the_namespaces_this_operator_takes_from() {
    let mut limited = snapshot(vec![agent("a", 1)]);
    limited.agent_namespaces = vec!["pool".into(), "lab".into()];
    assert_eq!(
        converged(limited.clone()).machine.spec.provider_id.as_deref(),
        Some("agent://a")
    );
    limited.candidates.clear();
    let (_, reason, text) = found(&converged(limited.clone()), "AgentReserved");
    assert_eq!(reason, "NoSuitableAgents");
    assert!(text.contains("no Agents in pool, lab"), "{text}");
    // The control plane wants others: none would ever come, so nobody is asked for more.
    limited.source = Source::Namespace("of-another-team".into());
    let (_, reason, text) = found(&converged(limited), "AgentReserved");
    assert_eq!(reason, "AgentNotYetFound");
    assert!(
        text.contains("of-another-team") && text.contains("--agent-namespace"),
        "{text}"
    );
}

#[test]
fn an_agent_out_of_bounds_is_not_taken_for_being_named_but_one_that_was_taken_is_kept() {
    let mut named = claimed();
    named.agent_namespaces = vec!["lab".into()];
    assert_eq!(plan(&named), Plan::default(), "it was taken before");
    // Whoever may write the status could name any.
    named.agent = Some(Arc::new(agent("a", 16)));
    let refused = converged(named);
    assert_eq!(*refused.agent.clone().unwrap(), agent("a", 16));
    assert!(found(&refused, "AgentReserved").2.contains("--agent-namespace"));
}

#[test]
fn a_claim_is_one_guarded_write_and_comes_first() {
    let plan = plan(&snapshot(vec![agent("a", 16)]));
    let [
        Step::Claim(claimed_agent, patch),
        Step::Patch(own),
        Step::Status(status),
        Step::Tell(_),
    ] = &plan.steps[..]
    else {
        panic!("{plan:?}")
    };
    assert_eq!(claimed_agent.name_any(), "a");
    assert_eq!(patch["metadata"]["labels"], json!({ "agentMachineRef": "m1" }));
    assert_eq!(
        patch["metadata"]["annotations"],
        json!({ "agentMachineRefNamespace": "hcp" })
    );
    assert_eq!(
        patch["spec"],
        json!({ "clusterDeploymentName": { "name": "blue", "namespace": "hcp" } })
    );
    assert_eq!(own["spec"]["providerID"], "agent://a");
    assert_eq!(status["agentRef"], json!({ "name": "a", "namespace": "pool" }));
}

#[test]
fn a_claim_that_was_cut_off_is_found_again() {
    let first = plan(&snapshot(vec![agent("a", 16)]));
    let Step::Claim(claimed_agent, patch) = &first.steps[0] else {
        panic!("{first:?}")
    };
    let mut again = snapshot(Vec::new());
    let labelled = patched(&**claimed_agent, patch);
    assert!(claim::is_mine(&again, &labelled));
    again.agent = Some(Arc::new(labelled.clone()));
    let done = converged(again);
    assert_eq!(
        done.machine
            .status
            .as_ref()
            .unwrap()
            .agent_ref
            .as_ref()
            .unwrap()
            .name,
        "a"
    );
    assert_eq!(done.agent.as_deref(), Some(&labelled), "it is not claimed twice");
}

#[test]
fn a_machine_of_the_same_name_elsewhere_is_another() {
    let snapshot = snapshot(Vec::new());
    let mut theirs = agent("a", 1);
    theirs
        .labels_mut()
        .insert(label::AGENT_MACHINE.into(), "m1".into());
    theirs
        .annotations_mut()
        .insert(annotation::AGENT_MACHINE_NAMESPACE.into(), "hcp-2".into());
    assert!(!claim::is_mine(&snapshot, &theirs));
    theirs.annotations_mut().clear();
    assert!(!claim::is_mine(&snapshot, &theirs), "and not of this cluster");
    theirs.spec.cluster_deployment_name = snapshot.lineage.deployment().cloned();
    assert!(
        claim::is_mine(&snapshot, &theirs),
        "the cluster tells whose it is"
    );
}

#[test]
fn what_comes_before_an_agent_is_waited_for() {
    let mut early = snapshot(vec![agent("a", 1)]);
    let whole = early.lineage.clone();
    early.lineage.agent_cluster = None;
    let (_, reason, text) = found(&converged(early.clone()), "AgentReserved");
    assert_eq!(reason, "AgentNotYetFound");
    assert!(text.contains("Cluster blue has no AgentCluster"), "{text}");
    early.lineage.cluster = None;
    assert!(found(&converged(early.clone()), "Ready").2.contains("no Cluster"));
    early.lineage.machine = None;
    assert!(found(&converged(early), "Ready").2.contains("No Machine"));
    assert!(whole.deployment().is_some());
}

#[test]
fn a_fresh_machine_is_marked_before_anything_is_taken() {
    let mut fresh = snapshot(vec![agent("a", 1)]).change(|machine| {
        machine.metadata.finalizers = None;
        machine.metadata.labels = None;
    });
    let machine = Arc::make_mut(fresh.lineage.machine.as_mut().unwrap());
    machine.metadata.annotations = None;
    let plan = plan(&fresh);
    let [Step::Patch(own), Step::PatchMachine(hook)] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(own["metadata"]["finalizers"], json!([finalizer::AGENT_MACHINE]));
    assert_eq!(own["metadata"]["labels"], json!({ label::BACKUP: "true" }));
    assert_eq!(
        hook["metadata"]["annotations"],
        json!({ annotation::CAPI_DELETE_HOOK: "" })
    );
}

#[test]
fn paused_machines_and_those_of_others_are_left_alone() {
    assert_eq!(plan(&snapshot(vec![agent("a", 1)]).paused()), Plan::default());
    let mut held = snapshot(vec![agent("a", 1)]);
    Arc::make_mut(held.lineage.cluster.as_mut().unwrap()).spec.paused = Some(true);
    assert_eq!(plan(&held), Plan::default());
    let mut foreign = snapshot(vec![agent("a", 1)]);
    foreign.elsewhere = true;
    assert_eq!(plan(&foreign).steps, []);
}

#[test]
fn of_several_agents_that_carry_its_name_the_machine_keeps_one() {
    let kept = |snapshot: &Snapshot, agents: &[Arc<Agent>]| {
        let kept = claim::kept(snapshot, agents).map(|agent| agent.name_any());
        let strays = claim::strays(snapshot, agents).len();
        (kept, strays)
    };
    let fresh = snapshot(Vec::new());
    let mine = [labelled(&fresh, "a"), labelled(&fresh, "b")];
    assert_eq!(kept(&fresh, &mine), (Some("a".into()), 1));
    assert_eq!(kept(&with_id("b"), &mine), (Some("b".into()), 1));
    assert_eq!(
        kept(&with_id("c"), &mine),
        (None, 2),
        "the one it waits for is none of them"
    );
    assert_eq!(
        kept(&claimed(), &mine[1..]),
        (None, 1),
        "the one its status names is not there"
    );
    assert_eq!(kept(&fresh, &[]), (None, 0));
}

/// Restored without its status: all it knows is its id.
fn with_id(name: &str) -> Snapshot {
    snapshot(Vec::new()).change(|machine| machine.spec.provider_id = Some(format!("agent://{name}")))
}

#[test]
fn a_machine_that_knows_its_id_waits_for_its_agent_and_takes_no_other() {
    let beside = || Arc::new(agent("free", 16));
    let waits = converged(read(with_id("a"), vec![beside()]));
    for type_ in ["AgentReserved", "Ready"] {
        let (status, reason, text) = found(&waits, type_);
        assert_eq!((status.as_str(), reason.as_str()), ("False", "AgentNotYetFound"));
        assert!(
            text.contains("Agent a of this machine") && text.contains("delete the Machine"),
            "{text}"
        );
    }
    assert_eq!(*waits.candidates, [beside()], "nothing is taken");
    assert_eq!(plan(&waits).then, Then::Rest, "its arrival is watched");
    // Its Agent is restored, with the running node.
    let mut running = labelled(&waits, "a");
    state(Arc::make_mut(&mut running), "installed");
    let back = converged(read(waits, vec![beside(), running.clone()]));
    assert_eq!((back.agent, &*back.candidates), (Some(running), &[beside()][..]));
    assert_eq!(back.machine.spec.provider_id.as_deref(), Some("agent://a"));
    let status = back.machine.status.clone().unwrap();
    assert_eq!(status.agent_ref.unwrap().name, "a");
}

#[test]
fn an_id_alone_makes_no_agent_the_machines_that_it_could_not_have_chosen() {
    let kept = |snapshot: &Snapshot, agents: &[&Agent]| {
        let agents: Vec<_> = agents.iter().map(|agent| Arc::new((*agent).clone())).collect();
        claim::kept(snapshot, &agents).map(|agent| agent.namespace().unwrap())
    };
    let at = |namespace: &str| {
        let mut agent = agent("a", 16);
        agent.metadata.namespace = Some(namespace.into());
        agent
    };
    let (pool, lab) = (at("pool"), at("lab"));
    let open = with_id("a");
    assert_eq!(
        kept(&open, &[&pool]),
        Some("pool".into()),
        "as one that was made anew"
    );
    let mut limited = open.clone();
    limited.agent_namespaces = vec!["lab".into()];
    assert_eq!(kept(&limited, &[&pool]), None);
    let mut hosted = open.clone();
    hosted.source = Source::Namespace("lab".into());
    assert_eq!(kept(&hosted, &[&pool]), None);
    assert_eq!(kept(&hosted, &[&pool, &lab]), Some("lab".into()));
    // What somebody gave to the cluster, or to the machine, counts wherever it is.
    let mut bound = pool.clone();
    bound.spec.cluster_deployment_name = open.lineage.deployment().cloned();
    assert_eq!(kept(&hosted, &[&bound]), Some("pool".into()));
    let mut claimed = at("third");
    let claim = claim::patch(&open, &claimed, open.lineage.deployment().unwrap(), None).unwrap();
    claimed = patched(&claimed, &claim);
    assert_eq!(kept(&hosted, &[&lab, &bound, &claimed]), Some("third".into()));
}

#[test]
fn an_agent_that_carries_the_name_of_a_machine_with_another_is_let_go() {
    let mut twice = claimed();
    twice.strays = vec![labelled(&twice, "b")];
    let plan = plan(&twice);
    let [Step::PatchAgent(stray, _)] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(stray.name_any(), "b");
    let once = converged(twice.clone());
    assert_eq!((once.agent, once.strays), (twice.agent, Vec::new()));
}

#[test]
fn one_that_is_in_a_cluster_is_left_there_and_reported() {
    let before = found(&claimed(), "AgentReserved").2;
    for held in [
        "binding",
        "known",
        "installing",
        "installed",
        "disconnected",
        "error",
        "",
    ] {
        let mut twice = claimed();
        let mut stray = labelled(&twice, "b");
        state(Arc::make_mut(&mut stray), held);
        twice.strays = vec![stray.clone()];
        let kept = converged(twice);
        assert_eq!(kept.strays, [stray.clone()], "{held}: it may be a running node");
        let text = found(&kept, "AgentReserved").2;
        assert!(
            text.starts_with(&before) && text.contains(&format!("pool/b ({held})")),
            "{text}"
        );
        // Once somebody has taken it out, nothing more is said of it.
        let gone = agents(&kept)
            .into_iter()
            .filter(|agent| *agent != stray)
            .collect();
        assert_eq!(found(&converged(read(kept, gone)), "AgentReserved").2, before);
    }
}

#[test]
fn an_agent_without_a_name_is_not_taken_because_nobody_would_find_its_node() {
    let mut nameless = agent("a", 16);
    nameless.status.as_mut().unwrap().inventory.hostname.clear();
    let waits = converged(snapshot(vec![nameless.clone()]));
    let (_, reason, text) = found(&waits, "AgentReserved");
    assert_eq!(reason, "NoSuitableAgents");
    assert!(text.contains("1 without a name (a)"), "{text}");
    nameless.spec.hostname = "given".into();
    assert!(converged(snapshot(vec![nameless])).agent.is_some());
}

#[test]
fn one_agent_more_or_less_of_a_sort_is_no_news_to_machines_that_wait() {
    let mut agents: Vec<_> = (0..40).map(|index| agent(&format!("a{index:02}"), 16)).collect();
    for (index, agent) in agents.iter_mut().enumerate() {
        match index % 2 {
            0 => agent.spec.approved = false,
            _ => say(agent, condition::CONNECTED, "False", "AgentIsDisconnected"),
        }
    }
    let waits = converged(snapshot(agents.clone()));
    assert_eq!(says(&waits, "Ready"), word("False", "NoSuitableAgents"));
    let text = found(&waits, "Ready").2;
    assert!(text.contains("some not approved; some not connected"), "{text}");
    // One changes its sort, one goes.
    agents[0].spec.approved = true;
    say(
        &mut agents[0],
        condition::CONNECTED,
        "False",
        "AgentIsDisconnected",
    );
    agents.pop();
    let same = Snapshot {
        candidates: agents.iter().cloned().map(Arc::new).collect(),
        ..waits.clone()
    };
    assert_eq!(plan(&same).steps, []);
    // Another kind of reason is reported.
    say(&mut agents[1], condition::CONNECTED, "True", "AgentIsConnected");
    say(
        &mut agents[1],
        condition::VALIDATED,
        "False",
        "ValidationsFailing",
    );
    let other = Snapshot {
        candidates: agents.into_iter().map(Arc::new).collect(),
        ..waits
    };
    assert!(!plan(&other).steps.is_empty());
}
