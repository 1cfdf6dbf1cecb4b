//! Nodes of machines that go with their Agents.

use super::super::drain::{Deed, Drained, question};
use super::*;
use crate::controller::bare_metal_host::snapshot::Tenant;
use crate::crd::ClusterDeployment;
use crate::runtime::spoke::NoSpoke;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::time::Duration;

const WAIT: Then = Then::After(Duration::from_secs(20));

/// Deleted an hour ago, lent, and its Agent is to go with it.
fn leaving(extra: &[(&str, &str)], node: Result<Drained, NoSpoke>) -> Snapshot {
    let remove = [(annotation::BMAC_REMOVE_ON_DELETE, "true")];
    let mut host = annotated(annotated(detached(deployed("provisioned")), &remove), extra);
    host.metadata.deletion_timestamp = Some(clock::time(now() - SignedDuration::from_hours(1)));
    let mut agent = agent("installed", "Done");
    agent.spec.hostname = "rack-one".into();
    agent.spec.cluster_deployment_name = Some(crate::crd::reference::ClusterRef {
        name: "blue".into(),
        namespace: "clusters".into(),
    });
    let mut snapshot = converged(host, Some(agent));
    snapshot.node = Some(node);
    snapshot
}

fn node(cordoned: bool, ready: &str) -> Option<Node> {
    serde_json::from_value(json!({
        "metadata": { "name": "rack-one" }, "spec": { "unschedulable": cordoned },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    }))
    .unwrap()
}

fn pod(name: &str, change: impl FnOnce(&mut Value)) -> Pod {
    let mut pod =
        json!({ "metadata": { "name": name, "namespace": "apps" }, "status": { "phase": "Running" } });
    change(&mut pod);
    serde_json::from_value(pod).unwrap()
}

fn plain(name: &str) -> Pod {
    pod(name, |_| ())
}

fn asked(name: &str, ago: SignedDuration) -> Pod {
    pod(name, |pod| {
        pod["metadata"]["deletionTimestamp"] = json!((now() - ago).to_string())
    })
}

fn deeds(plan: &Plan) -> Vec<Deed> {
    let deeds = plan.steps.iter().filter_map(|step| match step {
        Step::Drain(deed) => Some(deed.clone()),
        _ => None,
    });
    deeds.collect()
}

/// What the host would be after the plan, which wipes nothing as long as the drain goes on.
fn status_after(snapshot: &Snapshot) -> (String, bool) {
    let next = after(snapshot, &plan(snapshot));
    let waits = noted(&next, annotation::METAL3_DETACHED).is_some();
    let status = noted(&next, annotation::BMAC_DRAIN_STATUS).unwrap_or_default();
    (status.to_owned(), waits)
}

#[test]
fn a_node_is_closed_then_emptied_and_only_then_is_the_machine_wiped() {
    let of_daemon = pod("daemon", |pod| {
        pod["metadata"]["ownerReferences"] =
            json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u" }]);
    });
    let ended = pod("ended", |pod| pod["status"]["phase"] = json!("Succeeded"));
    let pods = vec![plain("web"), of_daemon.clone(), ended.clone()];
    let open = leaving(
        &[],
        Ok(Drained {
            node: node(false, "True"),
            pods,
        }),
    );
    assert_eq!(
        deeds(&plan(&open)),
        [
            Deed::Cordon("rack-one".into()),
            Deed::Evict(vec![Key::new("apps", "web")])
        ]
    );
    assert_eq!(status_after(&open), ("draining in progress".into(), true));
    let begun = after(&open, &plan(&open));
    assert_eq!(
        noted(&begun, annotation::BMAC_DRAIN_STARTED_AT),
        Some(now().to_string().as_str())
    );

    let mut slow = begun.clone();
    slow.now = now() + SignedDuration::from_secs(20);
    let pods = vec![asked("web", SignedDuration::from_secs(20))];
    slow.node = Some(Ok(Drained {
        node: node(true, "True"),
        pods,
    }));
    let waits = plan(&slow);
    assert_eq!((waits.steps.len(), waits.then), (0, WAIT), "it was asked already");

    let mut empty = slow.clone();
    let pods = vec![of_daemon, ended];
    empty.node = Some(Ok(Drained {
        node: node(true, "True"),
        pods,
    }));
    assert_eq!(status_after(&empty), ("drain succeeded".into(), false));
    let wiped = reconciled(&empty);
    assert_eq!(
        wiped.host.spec.automated_cleaning_mode.as_deref(),
        Some("metadata")
    );
    assert_eq!(question(&wiped), None, "and is not asked about again");
}

#[test]
fn a_limit_ends_the_drain_and_without_one_it_takes_as_long_as_it_takes() {
    let began = (now() - SignedDuration::from_mins(3)).to_string();
    let began = (annotation::BMAC_DRAIN_STARTED_AT, began.as_str());
    assert_eq!(status_after(&leaving(&[began], busy())).0, "draining in progress");
    for (limit, expected) in [
        ("5m", ("draining in progress", true)),
        ("2m30s", ("drain timed out", false)),
    ] {
        let snapshot = leaving(&[began, (annotation::BMAC_DRAIN_TIMEOUT, limit)], busy());
        assert_eq!(
            status_after(&snapshot),
            (expected.0.to_owned(), expected.1),
            "{limit}"
        );
    }
    let snapshot = leaving(&[(annotation::BMAC_DRAIN_TIMEOUT, "soon")], busy());
    assert!(mistakes(&plan(&snapshot))[0].contains("drain-timeout"));
    let (status, waits) = status_after(&snapshot);
    assert!(status.contains("soon") && waits, "{status}");
}

#[test]
fn pods_of_a_node_that_does_not_answer_are_not_waited_for_for_ever() {
    for (ready, minutes, expected) in [
        ("Unknown", 6, "drain succeeded"),
        ("Unknown", 4, "draining in progress"),
        ("True", 6, "draining in progress"),
    ] {
        let pods = vec![asked("web", SignedDuration::from_mins(minutes))];
        let snapshot = leaving(
            &[],
            Ok(Drained {
                node: node(true, ready),
                pods,
            }),
        );
        assert_eq!(status_after(&snapshot).0, expected, "{ready} {minutes}");
    }
}

#[test]
fn what_keeps_a_node_from_being_drained_is_said() {
    let down = leaving(&[], Err(NoSpoke::Failed("it does not answer".into())));
    assert_eq!(
        status_after(&down),
        ("not drained yet: it does not answer".into(), true)
    );
    let mut refused = leaving(&[], busy());
    refused.failure = Some("forbidden".into());
    assert_eq!(
        status_after(&refused),
        ("not drained yet: forbidden".into(), true)
    );
    assert!(deeds(&plan(&refused)).is_empty(), "not again at once");
    assert_eq!(
        status_after(&leaving(&[], Ok(Drained::default()))),
        ("drain succeeded".into(), false)
    );
}

/// A closed node with a pod that has not been asked to go.
fn busy() -> Result<Drained, NoSpoke> {
    Ok(Drained {
        node: node(true, "True"),
        pods: vec![plain("web"), plain("db")],
    })
}

fn tenant(change: impl FnOnce(&mut ClusterDeployment)) -> Option<Tenant> {
    let mut deployment = ClusterDeployment::default();
    deployment.spec.installed = true;
    change(&mut deployment);
    Some(Tenant {
        key: Key::new("clusters", "blue"),
        deployment: Arc::new(deployment),
        install: None,
    })
}

#[test]
fn a_cluster_that_is_not_there_or_not_installed_or_goes_keeps_nobody() {
    for tenant in [
        None,
        tenant(|deployment| deployment.spec.installed = false),
        tenant(|deployment| deployment.metadata.deletion_timestamp = Some(clock::time(now()))),
    ] {
        let mut gone = leaving(&[], Err(NoSpoke::NoKubeconfig));
        gone.tenant = tenant;
        let (status, waits) = status_after(&gone);
        assert!(status.starts_with("not drained: ") && !waits, "{status}");
    }
}

#[test]
fn a_running_cluster_whose_kubeconfig_was_lost_is_waited_for_until_the_limit() {
    let mut lost = leaving(&[], Err(NoSpoke::NoKubeconfig));
    lost.tenant = tenant(|_| ());
    let (status, waits) = status_after(&lost);
    assert!(status.starts_with("not drained yet: ") && waits, "{status}");
    let waiting = reconciled(&lost);
    assert_eq!(plan(&waiting).then, WAIT);
    assert!(question(&waiting).is_some(), "and it is asked again");
    let mut late = waiting;
    let limit = [(annotation::BMAC_DRAIN_TIMEOUT, "10m")];
    late.host = Arc::new(annotated((*late.host).clone(), &limit));
    late.now = now() + SignedDuration::from_mins(10);
    assert_eq!(status_after(&late), ("drain timed out".into(), false));
}

/// The reconcile after one that could not carry out its plan.
fn refused(snapshot: &Snapshot, why: &str) -> Snapshot {
    let mut next = after(snapshot, &plan(snapshot));
    next.failure = Some(why.into());
    next
}

#[test]
fn a_refused_eviction_is_noted_once_and_tried_again_without_a_word() {
    let first = leaving(&[], busy());
    let both = Deed::Evict(vec![Key::new("apps", "web"), Key::new("apps", "db")]);
    assert_eq!(deeds(&plan(&first)), std::slice::from_ref(&both), "all in one go");
    let held_up = refused(&first, "two budgets");
    assert_eq!(status_after(&held_up).0, "not drained yet: two budgets");

    let mut again = after(&held_up, &plan(&held_up));
    again.failure = None;
    let tries = plan(&again);
    assert_eq!(
        (tries.steps.as_slice(), tries.then),
        (&[Step::Drain(both)][..], WAIT)
    );
    let rests = plan(&refused(&again, "two budgets"));
    assert_eq!((rests.steps.len(), rests.then), (0, WAIT));

    // Accepted at last: nobody is left who was not asked.
    again.node = Some(Ok(Drained {
        node: node(true, "True"),
        pods: vec![asked("web", SignedDuration::ZERO)],
    }));
    assert_eq!(status_after(&again), ("draining in progress".into(), true));
}

#[test]
fn a_node_that_cannot_be_closed_is_noted_once_too() {
    let open = Ok(Drained {
        node: node(false, "True"),
        pods: Vec::new(),
    });
    let held_up = refused(&leaving(&[], open), "forbidden");
    let mut again = after(&held_up, &plan(&held_up));
    again.failure = None;
    assert_eq!(plan(&again).steps, [Step::Drain(Deed::Cordon("rack-one".into()))]);
    assert_eq!(plan(&refused(&again, "forbidden")).steps, []);
}

#[test]
fn notes_from_before_the_deletion_belong_to_another_drain() {
    let before = (now() - SignedDuration::from_hours(2)).to_string();
    for status in [
        "drain succeeded",
        "drain timed out",
        "not drained: the cluster has no kubeconfig",
    ] {
        let old = [
            (annotation::BMAC_DRAIN_STARTED_AT, before.as_str()),
            (annotation::BMAC_DRAIN_STATUS, status),
            (annotation::BMAC_DRAIN_TIMEOUT, "5m"),
        ];
        for notes in [&old[..], &old[1..]] {
            let snapshot = leaving(notes, busy());
            assert!(question(&snapshot).is_some(), "{status}");
            assert_eq!(
                status_after(&snapshot),
                ("draining in progress".into(), true),
                "{status}"
            );
            let begun = after(&snapshot, &plan(&snapshot));
            assert_eq!(
                noted(&begun, annotation::BMAC_DRAIN_STARTED_AT),
                Some(now().to_string().as_str())
            );
        }
    }
}

#[test]
fn a_drain_is_not_begun_again_and_again_when_the_clock_of_the_api_server_is_ahead() {
    let mut ahead = leaving(&[], Err(NoSpoke::Failed("it does not answer".into())));
    let mut host = (*ahead.host).clone();
    host.metadata.deletion_timestamp = Some(clock::time(now() + SignedDuration::from_mins(1)));
    ahead.host = Arc::new(host);
    assert_eq!(plan(&reconciled(&ahead)).steps, []);
}
