//! Labels that queries give to Agents.

use crate::world::World;
use kube::ResourceExt;
use kube::api::DeleteParams;
use muster_operator::crd::agent_classification::{AgentClassificationSpec, QUERY_ERRORS};
use muster_operator::crd::condition::find_service;
use muster_operator::crd::keys::finalizer;
use muster_operator::crd::{Agent, AgentClassification};
use serde_json::json;

const SIZE: &str = "agentclassification.agent-install.openshift.io/size";

fn classification(name: &str, value: &str, query: &str) -> AgentClassification {
    let spec = AgentClassificationSpec {
        label_key: "size".into(),
        label_value: value.into(),
        query: query.into(),
    };
    AgentClassification::new(name, spec)
}

fn label(agent: &Agent) -> Option<&str> {
    agent.labels().get(SIZE).map(String::as_str)
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_labelled_by_what_they_are_and_lose_the_label_with_its_reason() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    let large = classification(
        "large",
        "large",
        ".cpu.count >= 2 and ([.disks[] | .sizeBytes] | add > 0)",
    );
    world.create(&world.pool, &large).await;
    world
        .agent_when(&name, "labelled", |agent| label(agent) == Some("large"))
        .await;
    let counted = |classification: &AgentClassification| {
        let status = classification.status.clone().unwrap_or_default();
        let errors = find_service(&status.conditions, QUERY_ERRORS).map(|found| found.status.clone());
        status.matched_count == Some(1) && status.error_count == Some(0) && errors.as_deref() == Some("False")
    };
    let shown = world
        .when::<AgentClassification>(&world.pool, "large", "counted", counted)
        .await;
    assert_eq!(shown.finalizers(), [finalizer::AGENT_CLASSIFICATION]);
    world.assert_converged().await;
    let never = json!({ "spec": { "query": ".cpu.count > 100000" } });
    world
        .patch::<AgentClassification>(&world.pool, "large", never)
        .await
        .unwrap();
    world
        .agent_when(&name, "not labelled", |agent| label(agent).is_none())
        .await;
    let broken = json!({ "spec": { "query": ".cpu.count.nothing" } });
    world
        .patch::<AgentClassification>(&world.pool, "large", broken)
        .await
        .unwrap();
    world
        .agent_when(&name, "marked", |agent| label(agent) == Some("QUERYERROR-large"))
        .await;
    let failing = |classification: &AgentClassification| {
        let status = classification.status.clone().unwrap_or_default();
        let errors = find_service(&status.conditions, QUERY_ERRORS);
        status.error_count == Some(1) && errors.is_some_and(|found| found.reason == "HasQueryErrors")
    };
    world
        .when::<AgentClassification>(&world.pool, "large", "failing", failing)
        .await;
    world.delete::<AgentClassification>(&world.pool, "large").await;
    world.gone::<AgentClassification>(&world.pool, "large").await;
    world
        .agent_when(&name, "clean", |agent| label(agent).is_none())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_never_ends_marks_the_agent_and_holds_nobody_up() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    for (name, query) in [
        ("loop", "def f: f; f"),
        ("deep", "def f: [f]; f"),
        ("wide", "[range(1e15)] | length > 1"),
    ] {
        let mut hostile = classification(name, name, query);
        hostile.spec.label_key = name.into();
        world.create(&world.pool, &hostile).await;
    }
    world
        .create(&world.pool, &classification("large", "large", ".cpu.count >= 2"))
        .await;
    let name = world.free_host(pool).await;
    let agent = world
        .agent_when(&name, "labelled", |agent| label(agent) == Some("large"))
        .await;
    for key in ["loop", "deep", "wide"] {
        let label = format!("agentclassification.agent-install.openshift.io/{key}");
        assert_eq!(agent.labels()[&label], format!("QUERYERROR-{key}"));
    }
    world.operator().idle().await;
    world.assert_converged().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_label_is_refused_and_label_and_value_stay() {
    let world = World::start().await;
    let api = world.api::<AgentClassification>(&world.pool);
    let too_long = "x".repeat(64);
    for (name, value) in [("a", "QUERYERROR-x"), ("b", "not legal"), ("d", &*too_long)] {
        let refused = api
            .create(&Default::default(), &classification(name, value, "true"))
            .await;
        assert!(refused.is_err(), "{value}");
    }
    world
        .create(&world.pool, &classification("c", "fine", "true"))
        .await;
    let change = json!({ "spec": { "labelValue": "other" } });
    assert!(
        world
            .patch::<AgentClassification>(&world.pool, "c", change)
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_value_can_be_marked_too() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    let longest = "x".repeat(63);
    let broken = classification("long", &longest, ".cpu.count.nothing");
    world.create(&world.pool, &broken).await;
    // As much of it as a label holds.
    let mark = format!("QUERYERROR-{}", "x".repeat(52));
    world
        .agent_when(&name, "marked", |agent| label(agent) == Some(&*mark))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_classification_does_not_wait_for_an_agent_that_cannot_go() {
    let mut world = World::start().await;
    let pool = world.pool_of("lab", |_| ()).await;
    let name = world.free_host(pool).await;
    world
        .create(&world.pool, &classification("large", "large", "true"))
        .await;
    world
        .agent_when(&name, "labelled", |agent| label(agent) == Some("large"))
        .await;
    let hold = |holders: serde_json::Value| json!({ "metadata": { "finalizers": holders } });
    let held = hold(json!([finalizer::AGENT, "example.com/hold"]));
    world.change_agent(&name, held).await.unwrap();
    let agents = world.api::<Agent>(&world.pool);
    agents.delete(&name, &DeleteParams::default()).await.unwrap();
    let all = world.api::<AgentClassification>(&world.pool);
    all.delete("large", &DeleteParams::default()).await.unwrap();
    world.gone::<AgentClassification>(&world.pool, "large").await;
    assert_eq!(label(&world.agent(&name).await), Some("large"));
    world.change_agent(&name, hold(json!(null))).await.unwrap();
}
