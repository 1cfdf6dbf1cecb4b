//! What Agents show of their hosts, and since when: a watch of the API as anybody could have it.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::http;

/// The columns that `kubectl get agents --output wide` shows, without the objects: watching must not cost more than
/// what is watched.
const AS_TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PATH: &str = "/apis/agent-install.openshift.io/v1beta1/agents?watch=true&includeObject=None";

pub struct Shown {
    seen: Arc<Mutex<HashMap<String, Seen>>>,
}

/// The names that one Agent has shown, and since when.
#[derive(Default)]
struct Seen(Vec<(String, Instant)>);

impl Shown {
    pub fn watch(kube_url: &str) -> Result<Self> {
        let mut lines = http::lines(&format!("{kube_url}{PATH}"), AS_TABLE)?.lines();
        let seen: Arc<Mutex<HashMap<String, Seen>>> = Arc::default();
        let shared = seen.clone();
        // Ends with the connection, which ends with the API server.
        thread::spawn(move || {
            let mut columns = None;
            while let Some(Ok(line)) = lines.next() {
                let told = serde_json::from_str(&line).context("no JSON").and_then(|event| {
                    let found = cells(&event, &mut columns)?;
                    let mut seen = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    found
                        .into_iter()
                        .for_each(|(agent, name)| note(&mut seen, agent, name));
                    Ok(())
                });
                if let Err(error) = told {
                    eprintln!("xtask: an event that cannot be read: {error:#}");
                }
            }
        });
        Ok(Self { seen })
    }

    /// How many Agents show the name of their host.
    pub fn named(&self) -> usize {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.len()
    }

    /// When an Agent showed a name for the first time since then.
    pub fn first_after(&self, agent: &str, name: &str, since: Instant) -> Option<Instant> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let all = seen.get(agent)?.0.iter();
        let mut after = all.filter(|(shown, at)| shown == name && *at >= since);
        after.next().map(|(_, at)| *at)
    }
}

fn note(seen: &mut HashMap<String, Seen>, agent: String, name: String) {
    let Seen(names) = seen.entry(agent).or_default();
    if names.last().is_none_or(|(last, _)| *last != name) {
        names.push((name, Instant::now()));
    }
}

/// Names of Agents and of their hosts in an event. Only the first one describes the columns.
fn cells(event: &Value, columns: &mut Option<(usize, usize)>) -> Result<Vec<(String, String)>> {
    if columns.is_none() {
        let all = event["object"]["columnDefinitions"]
            .as_array()
            .context("a table without columns")?;
        let place = |name: &str| all.iter().position(|column| column["name"] == name);
        *columns = place("Name").zip(place("Hostname"));
    }
    let (agent, host) = columns.context("the columns are not those of Agents")?;
    let rows = event["object"]["rows"].as_array().into_iter().flatten();
    let pair = |row: &Value| {
        let text = |at: usize| row["cells"][at].as_str().filter(|text| !text.is_empty());
        Some((text(agent)?.to_owned(), text(host)?.to_owned()))
    };
    Ok(rows.filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_first_event_describes_the_columns_and_unnamed_hosts_do_not_count() {
        let columns = json!([{ "name": "Name" }, { "name": "Role" }, { "name": "Hostname" }]);
        let first = json!({ "type": "ADDED", "object": { "columnDefinitions": columns,
            "rows": [{ "cells": ["a", "", ""] }] } });
        let second =
            json!({ "type": "MODIFIED", "object": { "rows": [{ "cells": ["a", "", "bench-000001"] }] } });
        let mut place = None;
        assert_eq!(cells(&first, &mut place).unwrap(), []);
        assert_eq!(
            cells(&second, &mut place).unwrap(),
            [("a".to_owned(), "bench-000001".to_owned())]
        );
        assert!(cells(&second, &mut None).is_err());
    }

    #[test]
    fn a_name_counts_from_when_it_was_shown_and_only_after_the_change() {
        let shown = Shown { seen: Arc::default() };
        let began = Instant::now();
        {
            let mut seen = shown.seen.lock().unwrap();
            note(&mut seen, "a".into(), "one".into());
            note(&mut seen, "a".into(), "one".into());
            note(&mut seen, "a".into(), "two".into());
        }
        assert_eq!(shown.named(), 1);
        let two = shown.first_after("a", "two", began).unwrap();
        assert!(shown.first_after("a", "one", two).is_none(), "that was before");
        assert!(shown.first_after("b", "one", began).is_none());
    }
}
