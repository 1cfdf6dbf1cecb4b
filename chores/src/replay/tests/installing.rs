//! What the judgement knows about installations: the recorded service follows with its next tick.

use serde_json::{Value, json};

use super::super::report::Difference;
use super::super::shape::Comparer;
use super::super::states::Timeline;
use super::recording;

const POOL: &str = "4772638c-6a54-4130-981b-ba8b071f7855";
const HOST: &str = "2517ea5a-9491-5566-b206-bd1d51be055b";
const CLUSTER: &str = "753ffaf6-82d9-4e70-95b8-70c8a4ce2560";

fn host(status: &str) -> Value {
    json!({ "kind": "Host", "id": HOST, "href": "", "infra_env_id": POOL, "cluster_id": CLUSTER, "status": status })
}

fn with_checks(stage: &str, ids: &[&str]) -> Value {
    let checks: Vec<Value> = ids
        .iter()
        .map(|id| json!({ "id": id, "status": "success" }))
        .collect();
    let mut host = host("installing-in-progress");
    host["progress"] = json!({ "current_stage": stage });
    host["validations_info"] = json!(json!({ "network": checks }).to_string());
    host
}

/// The differences of what the last exchange of a story shows.
fn judged(story: &[(&str, &str, Value, u16, Value)], recorded: &Value, ours: &Value) -> Vec<String> {
    let story = recording(story);
    let comparer = Comparer {
        timeline: &Timeline::of(&story),
        index: story.exchanges.len().saturating_sub(1),
    };
    let found = comparer.bodies("", recorded, ours);
    found.iter().map(Difference::to_string).collect()
}

#[test]
fn hosts_of_a_cluster_that_was_just_started_may_be_preparing() {
    let look = format!("/infra-envs/{POOL}/hosts/{HOST}");
    let action = |verb: &str| format!("/clusters/{CLUSTER}/actions/{verb}");
    let (install, cancel) = (action("install"), action("cancel"));
    let seen = ("GET", look.as_str(), Value::Null, 200, host("known"));
    let started = ("POST", install.as_str(), Value::Null, 202, Value::Null);
    let refused = ("POST", install.as_str(), Value::Null, 409, Value::Null);
    let cancelled = ("POST", cancel.as_str(), Value::Null, 202, Value::Null);
    let (known, preparing) = (host("known"), host("preparing-for-installation"));
    let none = Vec::<String>::new();
    assert_eq!(judged(&[started.clone(), seen.clone()], &known, &preparing), none);
    let wrong = ["state $.status: recorded known, ours preparing-for-installation"];
    assert_eq!(judged(&[refused, seen.clone()], &known, &preparing), wrong);
    assert_eq!(
        judged(&[started.clone(), cancelled, seen.clone()], &known, &preparing),
        wrong
    );
    assert_eq!(judged(&[started, seen], &known, &host("installing")).len(), 1);
}

#[test]
fn a_cluster_with_nothing_left_to_report_may_be_installed() {
    let cluster = |status: &str, stage: &str| json!({ "kind": "Cluster", "id": CLUSTER, "href": "", "status": status, "progress": { "finalizing_stage": stage } });
    let done = cluster("installed", "Done");
    assert_eq!(
        judged(&[], &cluster("finalizing", "Done"), &done),
        Vec::<String>::new()
    );
    assert_eq!(
        judged(&[], &cluster("finalizing", "Adding router ca"), &done).len(),
        1
    );
}

#[test]
fn checks_of_an_agent_that_is_gone_may_still_be_there_on_the_recorded_side_only() {
    let (all, left) = (["connected", "machine-cidr-defined"], ["machine-cidr-defined"]);
    let stale =
        ["stale $.validations_info:.network[connected]: recorded those of the last tick, ours those of now"];
    assert_eq!(
        judged(
            &[],
            &with_checks("Rebooting", &all),
            &with_checks("Rebooting", &left)
        ),
        stale
    );
    for (recorded, ours) in [
        (with_checks("Installing", &all), with_checks("Installing", &left)),
        (with_checks("Rebooting", &left), with_checks("Rebooting", &all)),
        (
            with_checks("Rebooting", &all),
            with_checks("Rebooting", &["connected", "machine-cidr-defined", "mtu-valid"]),
        ),
    ] {
        let found = judged(&[], &recorded, &ours);
        assert!(found.len() == 1 && !found[0].starts_with("stale"), "{found:?}");
    }
}
