//! Which labels an Agent gets and loses. Pure.

use super::query::{self, Verdict};
use crate::crd::keys::label;
use crate::crd::{Agent, AgentClassification};
use crate::runtime::merge;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::sync::Arc;

/// Before the value, when the query cannot be answered for this Agent.
const ERROR: &str = "QUERYERROR";
/// What a label can hold.
const LONGEST: usize = 63;

/// What an Agent is marked with when the query cannot be answered for it: the value after a word, as far as it fits.
pub fn failed_value(value: &str) -> String {
    let mark: String = format!("{ERROR}-{value}").chars().take(LONGEST).collect();
    mark.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric())
        .to_owned()
}

/// The patch, or nothing when the labels are right.
pub fn plan(agent: &Agent, classifications: &[Arc<AgentClassification>]) -> Option<Value> {
    if agent.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let inventory = inventory(agent);
    let mut labels = agent.labels().clone();
    // In the order of names: of two that say yes to the same key, always the same one wins.
    for classification in classifications {
        let spec = &classification.spec;
        let key = format!("{}{}", label::CLASSIFICATION_PREFIX, spec.label_key);
        let failed = failed_value(&spec.label_value);
        let verdict = match (&inventory, classification.metadata.deletion_timestamp.is_some()) {
            (_, true) => Verdict::No,
            // The host has no inventory yet: the query has no answer, and nothing is wrong with it.
            (None, false) => continue,
            (Some(inventory), false) => query::ask(&spec.query, inventory),
        };
        match verdict {
            Verdict::Yes => drop(labels.insert(key, spec.label_value.clone())),
            Verdict::Failed(_) => drop(labels.insert(key, failed)),
            Verdict::No => {
                let ours = labels
                    .get(&key)
                    .is_some_and(|value| *value == spec.label_value || *value == failed);
                if ours {
                    labels.remove(&key);
                }
            }
        }
    }
    labels.retain(|key, value| !is_orphan(key, value, classifications));
    let change = merge::diff(agent.labels(), &labels)?;
    Some(json!({ "metadata": { "labels": change } }))
}

/// The mark of a classification that is gone: failures do not hold up its deletion. Another with the same key does not
/// make it its own.
fn is_orphan(key: &str, value: &str, classifications: &[Arc<AgentClassification>]) -> bool {
    let Some(key) = key.strip_prefix(label::CLASSIFICATION_PREFIX) else {
        return false;
    };
    let is_its =
        |one: &AgentClassification| one.spec.label_key == key && failed_value(&one.spec.label_value) == value;
    value.starts_with(ERROR) && !classifications.iter().any(|one| is_its(one))
}

/// As the object shows it, not as the hub keeps it.
fn inventory(agent: &Agent) -> Option<Value> {
    let inventory = &agent.status.as_ref()?.inventory;
    if *inventory == crate::crd::agent::Inventory::default() {
        return None;
    }
    serde_json::to_value(inventory).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::agent::AgentStatus;
    use crate::crd::agent_classification::AgentClassificationSpec;

    const SIZE: &str = "agentclassification.agent-install.openshift.io/size";

    fn agent(cpus: i64, label: Option<&str>) -> Agent {
        let mut agent = Agent::default();
        let mut status = AgentStatus::default();
        status.inventory.cpu.count = cpus;
        agent.status = Some(status);
        if let Some(value) = label {
            agent.labels_mut().insert(SIZE.into(), value.into());
        }
        agent
    }

    fn classification(value: &str, query: &str) -> Arc<AgentClassification> {
        Arc::new(AgentClassification {
            spec: AgentClassificationSpec {
                label_key: "size".into(),
                label_value: value.into(),
                query: query.into(),
            },
            ..AgentClassification::default()
        })
    }

    fn leaving(value: &str, query: &str) -> Arc<AgentClassification> {
        let mut classification = AgentClassification::clone(&classification(value, query));
        classification.metadata.deletion_timestamp =
            Some(crate::runtime::clock::time(jiff::Timestamp::UNIX_EPOCH));
        Arc::new(classification)
    }

    fn label(patch: Option<Value>) -> Option<Value> {
        Some(patch?["metadata"]["labels"][SIZE].clone())
    }

    #[test]
    fn a_label_comes_with_yes_and_goes_with_no() {
        let large = [classification("large", ".cpu.count >= 16")];
        assert_eq!(label(plan(&agent(16, None), &large)), Some(json!("large")));
        assert_eq!(
            plan(&agent(16, Some("large")), &large),
            None,
            "nothing changes twice"
        );
        assert_eq!(label(plan(&agent(8, Some("large")), &large)), Some(Value::Null));
        assert_eq!(plan(&agent(8, None), &large), None);
    }

    #[test]
    fn a_query_that_cannot_be_answered_marks_the_agent_until_it_can() {
        let broken = [classification("large", ".disks[].sizeBytes > 1")];
        assert_eq!(
            label(plan(&agent(16, None), &broken)),
            Some(json!("QUERYERROR-large"))
        );
        let repaired = [classification("large", ".cpu.count >= 16")];
        assert_eq!(
            label(plan(&agent(16, Some("QUERYERROR-large")), &repaired)),
            Some(json!("large"))
        );
        assert_eq!(
            label(plan(&agent(1, Some("QUERYERROR-large")), &repaired)),
            Some(Value::Null)
        );
    }

    #[test]
    fn nobody_removes_a_label_that_somebody_else_set() {
        let both = [
            classification("large", ".cpu.count >= 16"),
            classification("small", ".cpu.count < 16"),
        ];
        assert_eq!(plan(&agent(16, Some("large")), &both), None);
        assert_eq!(label(plan(&agent(8, Some("large")), &both)), Some(json!("small")));
        assert_eq!(
            plan(&agent(8, Some("mine")), &[classification("large", "false")]),
            None
        );
        assert_eq!(plan(&agent(8, Some("mine")), &[leaving("large", "true")]), None);
    }

    #[test]
    fn a_classification_that_goes_takes_its_label_along() {
        let going = [leaving("large", "true")];
        for value in ["large", "QUERYERROR-large"] {
            assert_eq!(label(plan(&agent(16, Some(value)), &going)), Some(Value::Null));
        }
    }

    #[test]
    fn the_mark_of_a_classification_that_is_gone_goes_and_nothing_else() {
        let marked = agent(16, Some("QUERYERROR-large"));
        assert_eq!(label(plan(&marked, &[])), Some(Value::Null));
        assert_eq!(
            plan(&agent(16, Some("large")), &[]),
            None,
            "perhaps somebody set it"
        );
        let other = [classification("small", ".disks[].id == 1")];
        assert_eq!(label(plan(&marked, &other)), Some(json!("QUERYERROR-small")));
        let sibling = [classification("small", ".cpu.count < 16")];
        assert_eq!(label(plan(&marked, &sibling)), Some(Value::Null));
        let unseen = {
            let mut unseen = marked.clone();
            unseen.status = None;
            unseen
        };
        assert_eq!(label(plan(&unseen, &sibling)), Some(Value::Null));
        assert_eq!(plan(&unseen, &[classification("large", "true")]), None);
    }

    #[test]
    fn marks_are_legal_values_however_long_or_short_the_value_is() {
        assert_eq!(failed_value("large"), "QUERYERROR-large");
        assert_eq!(failed_value(""), "QUERYERROR");
        let long = failed_value(&"a-".repeat(30));
        assert!(long.len() <= LONGEST && long.ends_with('a'), "{long}");
    }

    #[test]
    fn a_host_without_an_inventory_is_not_judged() {
        assert_eq!(
            plan(&Agent::default(), &[classification("large", ".disks[].id == 1")]),
            None
        );
    }
}
