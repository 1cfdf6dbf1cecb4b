//! How many pods of a release may be evicted at once.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::chart::NAMESPACE;
use crate::kube::Cluster;

/// The pods of each Deployment are counted by exactly one budget.
pub fn is_limited(cluster: &Cluster) -> Result<()> {
    let budgets = list(cluster, "poddisruptionbudgets")?;
    for deployment in list(cluster, "deployments")? {
        let name = &deployment["metadata"]["name"];
        let labels = &deployment["spec"]["template"]["metadata"]["labels"];
        let found = budgets.iter().filter(|budget| counts(budget, labels)).count();
        ensure!(found == 1, "the pods of {name} are counted by {found} budgets");
    }
    Ok(())
}

fn counts(budget: &Value, labels: &Value) -> bool {
    let selector = budget["spec"]["selector"]["matchLabels"].as_object();
    selector.is_some_and(|selector| selector.iter().all(|(key, value)| labels[key] == *value))
}

fn list(cluster: &Cluster, kind: &str) -> Result<Vec<Value>> {
    let words = ["get", kind, "--namespace", NAMESPACE, "--output=json"];
    let list: Value = serde_json::from_str(&cluster.ask(&words)?)?;
    list["items"].as_array().cloned().context("no list")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_budget_counts_pods_with_all_of_its_labels() {
        let budget = json!({"spec": {"selector": {"matchLabels": {"a": "1", "b": "2"}}}});
        assert!(counts(&budget, &json!({"a": "1", "b": "2", "c": "3"})));
        assert!(!counts(&budget, &json!({"a": "1", "b": "other"})));
        assert!(!counts(&json!({}), &json!({"a": "1"})));
    }
}
