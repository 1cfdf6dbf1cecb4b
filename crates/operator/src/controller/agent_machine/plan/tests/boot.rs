//! What it boots with.

use super::*;
use crate::crd::reference::FullRef;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

fn user_data(value: &Value) -> Arc<Secret> {
    Arc::new(parse(json!({
        "metadata": {
            "name": "user-data", "namespace": "hcp", "uid": "uid-of-data",
            "labels": { label::WATCH: "true", label::BACKUP: "true" },
        },
        "data": { "value": BASE64_STANDARD.encode(value.to_string()) },
    })))
}

fn token(value: &str) -> Arc<Secret> {
    Arc::new(parse(json!({
        "metadata": {
            "name": "agent-user-data", "namespace": "hcp",
            "labels": { label::WATCH: "true", label::BACKUP: "true" },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Secret", "name": "user-data", "uid": "uid-of-data" }],
        },
        "data": { "ignition-token": BASE64_STANDARD.encode(value) },
    })))
}

fn ignition() -> Value {
    json!({ "ignition": { "version": "3.2.0", "config": { "merge": [{
        "source": "https://ignition.example.com/ignition",
        "httpHeaders": [
            { "name": "Authorization", "value": "Bearer hunter2" },
            { "name": "NodePool", "value": "clusters/blue" },
            { "name": "TargetConfigVersionHash", "value": "abc" },
        ],
    }] } } })
}

fn with(secret: Arc<Secret>, token: Option<Arc<Secret>>) -> Snapshot {
    Snapshot {
        data: Data::Found { secret, token },
        ..snapshot(vec![agent("a", 16)])
    }
}

#[test]
fn the_token_is_kept_before_anything_is_claimed_and_goes_with_its_source() {
    let plan = plan(&with(user_data(&ignition()), None));
    let [Step::CreateToken(desired)] = &plan.steps[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(desired.key, Key::new("hcp", "agent-user-data"));
    assert_eq!(desired.owner.uid, "uid-of-data");
    assert_eq!(desired.token.0, "hunter2");
    assert!(!format!("{plan:?}").contains("hunter2"));
}

#[test]
fn the_last_part_of_the_address_is_the_pool_and_other_headers_are_passed_on() {
    let done = converged(with(user_data(&ignition()), Some(token("hunter2"))));
    let spec = &done.agent.as_ref().unwrap().spec;
    assert_eq!(spec.machine_config_pool, "ignition");
    assert_eq!(
        spec.ignition_endpoint_token_reference,
        Some(FullRef {
            namespace: "hcp".into(),
            name: "agent-user-data".into()
        })
    );
    let headers: Vec<_> = spec.ignition_endpoint_http_headers.iter().collect();
    assert_eq!(headers.len(), 2);
    assert!(!format!("{headers:?}").contains("hunter2"));
}

#[test]
fn a_token_that_was_renewed_is_written_even_when_the_machine_is_ready() {
    let mut ready = converged(with(user_data(&ignition()), Some(token("hunter2"))));
    ready = ready.change(|machine| machine.status.as_mut().unwrap().ready = true);
    assert_eq!(plan(&ready), Plan::default());
    ready.data = Data::Found {
        secret: user_data(&ignition()),
        token: Some(token("old")),
    };
    let plan = plan(&ready);
    assert!(
        matches!(&plan.steps[..], [Step::ChangeToken(_, token)] if token.0 == "hunter2"),
        "{plan:?}"
    );
}

#[test]
fn a_token_of_another_provider_is_used_as_it_is() {
    let mut old = token("hunter2");
    Arc::make_mut(&mut old).metadata.owner_references = None;
    let mine = plan(&with(user_data(&ignition()), Some(token("hunter2"))));
    assert_eq!(plan(&with(user_data(&ignition()), Some(old.clone()))), mine);
    Arc::make_mut(&mut old).metadata.labels = None;
    let first = plan(&with(user_data(&ignition()), Some(old)));
    assert!(matches!(&first.steps[..], [Step::LabelSecret(..)]), "{first:?}");
}

#[test]
fn data_that_is_used_is_watched_from_then_on() {
    let mut secret = user_data(&ignition());
    Arc::make_mut(&mut secret).metadata.labels = None;
    let plan = plan(&with(secret, Some(token("hunter2"))));
    assert!(
        matches!(&plan.steps[..], [Step::LabelSecret(key, labels)] if key.name == "user-data" && labels.len() == 2),
        "{plan:?}"
    );
}

#[test]
fn user_data_that_cannot_be_read_keeps_the_machine_waiting_and_is_not_quoted() {
    let mut none = ignition();
    none["ignition"]["config"]["merge"] = json!([]);
    let mut two = ignition();
    let one = two["ignition"]["config"]["merge"][0].clone();
    two["ignition"]["config"]["merge"] = json!([one, one]);
    let mut basic = ignition();
    basic["ignition"]["config"]["merge"][0]["httpHeaders"][0]["value"] = json!("Basic hunter2");
    let mut bare = ignition();
    bare["ignition"]["config"]["merge"][0]["httpHeaders"] = json!([]);
    let mut slash = ignition();
    slash["ignition"]["config"]["merge"][0]["source"] = json!("https://x/");
    for (data, part) in [
        (none, "exactly one"),
        (two, "exactly one"),
        (basic, "without a token"),
        (bare, "no Authorization header"),
        (slash, "without a path"),
        (json!("hunter2"), "is not an Ignition config"),
    ] {
        let waits = converged(with(user_data(&data), None));
        assert_eq!(waits.agent, None);
        let (_, reason, text) = found(&waits, "Ready");
        assert_eq!(reason, "AgentNotYetFound");
        assert!(text.contains(part) && !text.contains("hunter2"), "{text}");
    }
}

#[test]
fn data_that_is_not_there_yet_is_read_again() {
    let mut waits = snapshot(vec![agent("a", 1)]);
    waits.data = Data::Absent(Key::new("hcp", "user-data"));
    let plan = plan(&waits);
    assert_eq!(plan.then, Then::After(waits.retry));
    assert!(
        matches!(&plan.steps[..], [Step::Status(_), Step::Tell(_)]),
        "{plan:?}"
    );
}

#[test]
fn a_machine_that_is_ready_does_not_poll_for_data_that_went() {
    let mut ready = converged(with(user_data(&ignition()), Some(token("hunter2"))));
    ready.data = Data::Absent(Key::new("hcp", "user-data"));
    assert_eq!(plan(&ready).then, Then::After(ready.retry), "it may still boot");
    let ready = ready.change(|machine| machine.status.as_mut().unwrap().ready = true);
    assert_eq!(plan(&ready), Plan::default());
}

#[test]
fn nothing_is_claimed_before_the_bootstrap_provider_has_named_the_data() {
    let mut early = snapshot(vec![agent("a", 1)]);
    early.data = Data::Promised;
    let waits = converged(early);
    assert_eq!(waits.agent, None);
    let (_, reason, text) = found(&waits, "AgentReserved");
    assert_eq!(reason, "AgentNotYetFound");
    assert!(text.contains("bootstrap provider"), "{text}");
    assert_eq!(plan(&waits), Plan::default(), "the Machine is watched");
    // What was claimed before stays claimed.
    let mut lent = claimed();
    lent.data = Data::Promised;
    assert_eq!(plan(&lent), Plan::default());
}

#[test]
fn without_named_data_what_people_wrote_stays() {
    let mut own = agent("a", 1);
    own.spec.machine_config_pool = "mine".into();
    let done = converged(snapshot(vec![own]));
    assert_eq!(done.agent.unwrap().spec.machine_config_pool, "mine");
}
