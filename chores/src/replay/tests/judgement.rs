//! What counts as a difference, and what does not.

use serde_json::{Value, json};

use super::super::ids::IdMap;
use super::super::intended::Intended;
use super::super::report::{Difference, What};
use super::super::shape::Comparer;
use super::super::states::Timeline;
use super::super::{mask, recording, steps};
use super::{differences, recording as synthetic};

const HOST: &str = "2517ea5a-9491-5566-b206-bd1d51be055b";
const POOL: &str = "4772638c-6a54-4130-981b-ba8b071f7855";
const CLUSTER: &str = "753ffaf6-82d9-4e70-95b8-70c8a4ce2560";

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn the_same_shape_with_other_contents_is_no_difference() {
    let recorded = json!({ "name": "a", "count": 1, "tags": ["x"], "platform": { "type": "baremetal" } });
    let ours = json!({ "name": "b", "count": 2, "tags": ["y"], "platform": { "type": "baremetal" } });
    assert_eq!(differences(&recorded, &ours), none());
}

#[test]
fn keys_types_and_lengths_are_compared_all_the_way_down() {
    let recorded = json!({ "a": { "b": 1, "gone": true }, "list": [{ "c": "x" }], "n": null });
    let ours = json!({ "a": { "b": "1", "new": 1 }, "list": [{ "c": 1 }, { "c": "x" }], "n": null });
    assert_eq!(
        differences(&recorded, &ours),
        [
            "missing $.a.gone: recorded boolean, ours absent",
            "type $.a.b: recorded number, ours string",
            "extra $.a.new: recorded absent, ours number",
            "length $.list: recorded 1, ours 2",
            "type $.list[].c: recorded string, ours number",
        ]
    );
}

#[test]
fn an_absent_key_is_not_a_null() {
    assert_eq!(
        differences(&json!({ "id": "x" }), &json!({ "id": "x", "cluster_id": null })),
        ["extra $.cluster_id: recorded absent, ours null"]
    );
}

#[test]
fn elements_of_a_list_share_the_union_of_their_shapes() {
    let recorded = json!([{ "ip": "a", "mask": 1 }, { "ip": "b" }]);
    assert_eq!(
        differences(&recorded, &json!([{ "ip": "c" }, { "ip": "d", "mask": 2 }])),
        none()
    );
    assert_eq!(
        differences(&recorded, &json!([{ "mask": 2 }, { "ip": "d" }])),
        ["missing $[].ip: recorded string, ours absent"]
    );
}

#[test]
fn named_elements_are_paired_whatever_their_order() {
    let recorded = json!([{ "name": "a", "x": 1 }, { "name": "b", "y": 1 }]);
    assert_eq!(
        differences(
            &recorded,
            &json!([{ "name": "b", "y": 2 }, { "name": "a", "x": 2 }])
        ),
        none()
    );
    assert_eq!(
        differences(
            &recorded,
            &json!([{ "name": "a", "x": 1 }, { "name": "c", "y": 1 }])
        ),
        [
            "extra $[c]: recorded absent, ours present",
            "missing $[b]: recorded present, ours absent"
        ]
    );
}

#[test]
fn json_in_strings_is_compared_as_json() {
    let recorded = json!({ "inventory": "{\"disks\":[{\"id\":\"sda\",\"size\":1}]}" });
    let ours = json!({ "inventory": "{\"disks\":[{\"id\":\"sda\",\"size\":\"1\"}]}" });
    assert_eq!(
        differences(&recorded, &ours),
        ["type $.inventory:.disks[sda].size: recorded number, ours string"]
    );
    assert_eq!(
        differences(&recorded, &json!({ "inventory": "text" })),
        ["type $.inventory: recorded JSON in a string, ours another string"]
    );
}

#[test]
fn checks_are_compared_by_id_and_their_results_by_vocabulary() {
    let body = |checks: Value| json!({ "validations_info": checks.to_string() });
    let recorded =
        body(json!({ "hardware": [{ "id": "a", "status": "success" }, { "id": "b", "status": "success" }] }));
    let other_results =
        body(json!({ "hardware": [{ "id": "b", "status": "pending" }, { "id": "a", "status": "failure" }] }));
    assert_eq!(differences(&recorded, &other_results), none());
    let wrong = body(json!({ "hardware": [{ "id": "a", "status": "fine" }], "network": [] }));
    assert_eq!(
        differences(&recorded, &wrong),
        [
            "word $.validations_info:[a].status: recorded the status of a check, ours fine",
            "missing $.validations_info:.hardware[b]: recorded present, ours absent",
        ]
    );
}

#[test]
fn words_are_compared_and_texts_only_have_to_be_there() {
    let recorded = json!({ "kind": "Error", "reason": "(text)", "message": "" });
    assert_eq!(
        differences(
            &recorded,
            &json!({ "kind": "Error", "reason": "no", "message": "" })
        ),
        none()
    );
    assert_eq!(
        differences(
            &recorded,
            &json!({ "kind": "Fault", "reason": "", "message": "x" })
        ),
        [
            "word $.kind: recorded Error, ours Fault",
            "text $.reason: recorded a text, ours an empty string"
        ]
    );
}

#[test]
fn stages_are_words() {
    for key in ["current_stage", "finalizing_stage"] {
        let stage = |word: &str| json!({ "progress": { key: word } });
        assert_eq!(differences(&stage("Done"), &stage("Done")), none());
        assert_eq!(
            differences(&stage("Done"), &stage("Joined")),
            [format!("word $.progress.{key}: recorded Done, ours Joined")]
        );
    }
}

#[test]
fn dates_keep_their_class() {
    let never = "0001-01-01T00:00:00.000Z";
    let recorded = json!({ "expires_at": never, "registered_at": "2026-11-15T19:34:18.321Z", "created_at": "2026-11-15T19:34:18.3Z" });
    let ours = json!({ "expires_at": never, "registered_at": "2030-01-01T00:00:00.000Z", "created_at": "2030-01-01T00:00:00.123456Z" });
    assert_eq!(differences(&recorded, &ours), none());
    let wrong = json!({ "expires_at": "2030-01-01T00:00:00.000Z", "registered_at": "2030-01-01T00:00:00Z", "created_at": "yesterday" });
    assert_eq!(
        differences(&recorded, &wrong),
        [
            "date $.expires_at: recorded zero date with three digits, ours date with three digits",
            "date $.registered_at: recorded date with three digits, ours date",
            "date $.created_at: recorded date, ours no date",
        ]
    );
}

#[test]
fn ids_are_learned_where_they_appear_and_put_into_later_requests() {
    let ours = "aaaaaaaa-0000-4000-8000-000000000001";
    let story = synthetic(&[(
        "POST",
        &format!("/infra-envs/{POOL}/hosts"),
        json!({ "host_id": HOST }),
        201,
        json!({}),
    )]);
    let mut ids = IdMap::default();
    ids.learn(
        &json!({ "id": POOL, "href": format!("/v2/{POOL}") }),
        &json!({ "id": ours, "href": "" }),
    );
    ids.note_request(&story.exchanges[0].request);
    ids.learn(&json!({ "id": HOST }), &json!({ "id": CLUSTER }));
    assert_eq!(
        ids.to_ours(&format!("/infra-envs/{POOL}/hosts/{HOST}")),
        format!("/infra-envs/{ours}/hosts/{HOST}")
    );
    assert_eq!(
        ids.to_recorded(&format!("{{\"id\":\"{ours}\"}}")),
        format!("{{\"id\":\"{POOL}\"}}")
    );
}

fn host(status: &str) -> Value {
    json!({ "kind": "Host", "id": HOST, "href": "", "infra_env_id": POOL, "cluster_id": CLUSTER, "status": status })
}

/// The judgement of our state at the first sighting of a story.
fn judged(between: &[(&str, &str, Value, u16, Value)], our: &str) -> Vec<String> {
    let get = format!("/infra-envs/{POOL}/hosts/{HOST}");
    let mut exchanges = vec![("GET", get.as_str(), Value::Null, 200, host("binding"))];
    exchanges.extend_from_slice(between);
    exchanges.push(("GET", get.as_str(), Value::Null, 200, host("discovering")));
    let story = synthetic(&exchanges);
    Comparer {
        timeline: &Timeline::of(&story),
        index: 0,
    }
    .bodies("", &host("binding"), &host(our))
    .iter()
    .map(Difference::to_string)
    .collect()
}

#[test]
fn a_state_the_recording_reaches_next_on_its_own_is_no_difference() {
    assert_eq!(judged(&[], "binding"), none());
    assert_eq!(judged(&[], "discovering"), none());
    assert_eq!(
        judged(&[], "known"),
        ["state $.status: recorded binding, ours known"]
    );
}

#[test]
fn a_request_that_could_have_moved_the_object_ends_the_look_ahead() {
    let wrong = ["state $.status: recorded binding, ours discovering"];
    let register = format!("/infra-envs/{POOL}/hosts");
    assert_eq!(
        judged(
            &[("POST", &register, json!({ "host_id": HOST }), 201, Value::Null)],
            "discovering"
        ),
        wrong
    );
    let cluster = format!("/clusters/{CLUSTER}");
    assert_eq!(
        judged(&[("PATCH", &cluster, json!({}), 201, Value::Null)], "discovering"),
        wrong
    );
    // Refused, about another host, or only looking: nothing moved.
    assert_eq!(
        judged(
            &[("POST", &register, json!({ "host_id": HOST }), 500, Value::Null)],
            "discovering"
        ),
        none()
    );
    assert_eq!(
        judged(
            &[("POST", &register, json!({ "host_id": "other" }), 201, Value::Null)],
            "discovering"
        ),
        none()
    );
    let poll = format!("/infra-envs/{POOL}/hosts/{HOST}/instructions");
    assert_eq!(
        judged(&[("GET", &poll, Value::Null, 200, Value::Null)], "discovering"),
        none()
    );
}

#[test]
fn an_inventory_nobody_looked_at_yet_explains_a_state_further_on() {
    let story = synthetic(&[]);
    let timeline = Timeline::of(&story);
    let comparer = Comparer {
        timeline: &timeline,
        index: 0,
    };
    let mut recorded = host("discovering-unbound");
    assert_eq!(comparer.bodies("", &recorded, &host("known-unbound")).len(), 1);
    recorded["inventory"] = json!("{}");
    let mut ours = recorded.clone();
    ours["status"] = json!("known-unbound");
    assert_eq!(comparer.bodies("", &recorded, &ours), []);
    ours["status"] = json!("binding");
    assert_eq!(comparer.bodies("", &recorded, &ours).len(), 1);
}

#[test]
fn steps_have_to_fit_the_state() {
    let poll = |steps: &[&str], action: &str| {
        let steps: Vec<Value> = steps.iter().map(|step| json!({ "step_type": step })).collect();
        json!({ "instructions": steps, "post_step_action": action })
    };
    assert!(steps::fit(
        "known-unbound",
        &poll(&["inventory", "ntp-synchronizer"], "continue")
    ));
    assert!(!steps::fit(
        "known-unbound",
        &poll(&["ntp-synchronizer"], "continue")
    ));
    assert!(!steps::fit(
        "known-unbound",
        &poll(&["inventory", "install"], "continue")
    ));
    assert!(!steps::fit("binding", &poll(&[], "continue")));
    assert!(steps::fit("binding", &poll(&[], "exit")));
}

#[test]
fn an_intended_difference_covers_its_place_and_nothing_else() {
    let list = Intended::parse(
        r#"
        [[difference]]
        method = "POST"
        path = "/infra-envs/{}/hosts/{}/actions/bind"
        exchange = "0-1"
        what = "status"
        theirs = "500"
        ours = "409"
        reason = "a conflict"
        [[difference]]
        what = "missing"
        key = "*validations_info:.operators"
        reason = "later"
        "#,
    )
    .unwrap();
    let path = format!("/infra-envs/{POOL}/hosts/{HOST}/actions/bind");
    let request = &synthetic(&[("POST", &path, json!({}), 500, json!({}))]).exchanges[0].request;
    let status = |ours| Difference::new(What::Status, "$", "500", ours);
    assert_eq!(list.allows("any", 0, request, &status("409")), Some(0));
    assert_eq!(list.allows("any", 2, request, &status("409")), None);
    assert_eq!(list.allows("any", 0, request, &status("500")), None);
    let missing = |key| Difference::new(What::Missing, key, "present", "absent");
    assert_eq!(
        list.allows("any", 9, request, &missing("$[x].validations_info:.operators")),
        Some(1)
    );
    assert_eq!(
        list.allows("any", 9, request, &missing("$.validations_info:.network")),
        None
    );
    assert_eq!(
        list.stale(&[(0, 3)].into()),
        ["what missing, key *validations_info:.operators, later"]
    );
}

#[test]
fn the_list_of_the_project_is_complete_in_itself() {
    for entry in Intended::load().unwrap().entries {
        assert!(
            entry.reason.ends_with('.') && entry.reason.len() > 20,
            "{entry:?}"
        );
        assert!(
            entry.withhold != entry.what.is_some(),
            "{entry:?} must withhold or name a difference"
        );
        assert!(
            !entry.withhold || entry.file.is_some() && entry.exchange.is_some(),
            "{entry:?}"
        );
        assert!(
            entry.path.is_some() || entry.file.is_some(),
            "{entry:?} must say where"
        );
    }
}

#[test]
fn bodies_are_sent_as_they_were_recorded() {
    let mut request = synthetic(&[("POST", "/x", json!("{\"cut\":"), 400, json!({}))]).exchanges[0]
        .request
        .clone();
    assert_eq!(request.text().as_deref(), Some("{\"cut\":"));
    request.path.push_str("/install-config");
    assert_eq!(request.text().as_deref(), Some("\"{\\\"cut\\\":\""));
    request.body = Value::Null;
    assert_eq!(request.text(), None);
    request.headers.insert("Content-Length".into(), "4".into());
    assert_eq!(request.text().as_deref(), Some("null"));
}

#[test]
fn no_recording_of_the_project_carries_free_texts() {
    for file in super::super::project_recordings().unwrap() {
        recording::Recording::load(&file).unwrap();
        let exchanges: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for exchange in exchanges {
            let mut masked = exchange.clone();
            mask::exchange(&mut masked);
            assert_eq!(masked, exchange, "{}", file.display());
        }
    }
}
