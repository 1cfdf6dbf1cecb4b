//! What is to be done about an AgentClassification. Pure.

use crate::controller::agent_label::plan::failed_value;
use crate::controller::agent_label::query;
use crate::crd::agent_classification::{AgentClassificationStatus, QUERY_ERRORS, reason};
use crate::crd::condition::{Finding, set_service};
use crate::crd::keys::{self, finalizer, label};
use crate::crd::{Agent, AgentClassification};
use crate::runtime::merge;
use crate::runtime::patch::finalizers;
use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Patch(Value),
    Status(Value),
}

/// `agents` are those of the namespace.
pub fn plan(classification: &AgentClassification, agents: &[Arc<Agent>], now: Timestamp) -> Vec<Step> {
    let (matched, failed) = count(classification, agents);
    if classification.metadata.deletion_timestamp.is_some() {
        let done = matched == 0 && keys::has_finalizer(classification, finalizer::AGENT_CLASSIFICATION);
        let drop = finalizers(classification, None, Some(finalizer::AGENT_CLASSIFICATION));
        return done.then(|| guard(drop)).into_iter().collect();
    }
    let mut steps = Vec::new();
    if !keys::has_finalizer(classification, finalizer::AGENT_CLASSIFICATION) {
        steps.push(guard(finalizers(
            classification,
            Some(finalizer::AGENT_CLASSIFICATION),
            None,
        )));
    }
    let before = classification.status.clone().unwrap_or_default();
    let mut status = AgentClassificationStatus {
        matched_count: Some(matched),
        error_count: Some(failed),
        conditions: before.conditions.clone(),
    };
    set_service(&mut status.conditions, finding(classification, failed), now);
    steps.extend(merge::diff(&before, &status).map(Step::Status));
    steps
}

fn guard(finalizers: Value) -> Step {
    Step::Patch(json!({ "metadata": { "finalizers": finalizers } }))
}

/// Failures of this classification, not of others with the same key. Agents that go keep their labels to the end, and
/// nobody waits for them.
fn count(classification: &AgentClassification, agents: &[Arc<Agent>]) -> (i64, i64) {
    let spec = &classification.spec;
    let key = format!("{}{}", label::CLASSIFICATION_PREFIX, spec.label_key);
    let failed = failed_value(&spec.label_value);
    let with = |value: &str| {
        let has = agents
            .iter()
            .filter(|agent| agent.metadata.deletion_timestamp.is_none())
            .filter(|agent| agent.labels().get(&key).is_some_and(|own| own == value));
        has.count() as i64
    };
    (with(&spec.label_value), with(&failed))
}

fn finding(classification: &AgentClassification, failed: i64) -> Finding {
    let has = |text: String| Finding::new(QUERY_ERRORS, true, reason::HAS_QUERY_ERRORS, text);
    match query::check(&classification.spec.query) {
        Err(why) => has(format!("The query is not valid: {why}.")),
        Ok(()) if failed > 0 => has(format!("The query failed for {failed} Agents.")),
        Ok(()) => Finding::new(
            QUERY_ERRORS,
            false,
            reason::NO_QUERY_ERRORS,
            "The query works for all Agents.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::agent_classification::AgentClassificationSpec;

    const KEY: &str = "agentclassification.agent-install.openshift.io/size";

    fn classification(query: &str) -> AgentClassification {
        AgentClassification {
            spec: AgentClassificationSpec {
                label_key: "size".into(),
                label_value: "large".into(),
                query: query.into(),
            },
            ..AgentClassification::default()
        }
    }

    fn agents(values: &[&str]) -> Vec<Arc<Agent>> {
        let agent = |value: &&str| {
            let mut agent = Agent::default();
            agent.labels_mut().insert(KEY.into(), (*value).into());
            Arc::new(agent)
        };
        values.iter().map(agent).collect()
    }

    #[test]
    fn agents_that_go_do_not_count_and_hold_nobody_up() {
        let mut going = agents(&["large", "QUERYERROR-large"]);
        for agent in &mut going {
            Arc::make_mut(agent).metadata.deletion_timestamp = Some(crate::runtime::clock::time(now()));
        }
        let mut one = classification(".cpu.count > 1");
        let shown = status(&plan(&one, &going, now()));
        assert_eq!(
            (shown["matchedCount"].clone(), shown["errorCount"].clone()),
            (json!(0), json!(0))
        );
        one.metadata.finalizers = Some(vec![finalizer::AGENT_CLASSIFICATION.into()]);
        one.metadata.deletion_timestamp = Some(crate::runtime::clock::time(now()));
        let last = plan(&one, &going, now());
        assert_eq!(last, [Step::Patch(json!({ "metadata": { "finalizers": [] } }))]);
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn status(steps: &[Step]) -> Value {
        let found = steps.iter().find_map(|step| match step {
            Step::Status(status) => Some(status.clone()),
            Step::Patch(_) => None,
        });
        found.unwrap_or_default()
    }

    #[test]
    fn those_with_the_label_and_those_without_an_answer_are_counted_but_not_those_of_siblings() {
        let agents = agents(&["large", "large", "QUERYERROR-large", "QUERYERROR-small", "small"]);
        let shown = status(&plan(&classification(".cpu.count > 1"), &agents, now()));
        assert_eq!(
            (shown["matchedCount"].clone(), shown["errorCount"].clone()),
            (json!(2), json!(1))
        );
        assert_eq!(shown["conditions"][0]["reason"], "HasQueryErrors");
    }

    #[test]
    fn a_query_that_nobody_can_read_shows_without_any_agent() {
        let shown = status(&plan(&classification("(("), &[], now()));
        assert_eq!(
            (
                shown["conditions"][0]["status"].clone(),
                shown["errorCount"].clone()
            ),
            (json!("True"), json!(0))
        );
    }

    #[test]
    fn a_second_reconcile_changes_nothing() {
        let mut one = classification(".cpu.count > 1");
        one.metadata.finalizers = Some(vec![finalizer::AGENT_CLASSIFICATION.into()]);
        let steps = plan(&one, &[], now());
        one.status = serde_json::from_value(status(&steps)).unwrap();
        assert_eq!(plan(&one, &[], now()), []);
    }

    #[test]
    fn it_goes_after_its_labels_and_does_not_wait_for_failures() {
        let mut one = classification(".cpu.count > 1");
        one.metadata.finalizers = Some(vec![finalizer::AGENT_CLASSIFICATION.into()]);
        one.metadata.deletion_timestamp = Some(crate::runtime::clock::time(now()));
        assert_eq!(plan(&one, &agents(&["large"]), now()), []);
        let last = plan(&one, &agents(&["QUERYERROR-large"]), now());
        assert_eq!(last, [Step::Patch(json!({ "metadata": { "finalizers": [] } }))]);
    }
}
