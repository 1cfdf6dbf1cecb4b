//! Who plays the bootstrap host: ours takes the one with the smallest id, the recorded service took any.
//!
//! Ids of hosts are the agents' choice, so the recording is played with two of them exchanged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ids;
use super::recording::{Exchange, objects, word};

/// The recording's text with ids exchanged where the recorded bootstrap host has not the smallest one.
pub fn recast(text: &str, exchanges: &[Exchange]) -> Option<String> {
    let mut recast = None;
    for (from, to) in exchanged(exchanges) {
        let text = recast.as_deref().unwrap_or(text);
        // No id looks like this one.
        let aside = text.replace(&from, "\u{1}").replace(&to, &from);
        recast = Some(aside.replace('\u{1}', &to));
    }
    recast
}

fn exchanged(exchanges: &[Exchange]) -> Vec<(String, String)> {
    let mut clusters: BTreeMap<String, (BTreeSet<String>, BTreeSet<String>)> = BTreeMap::new();
    for exchange in exchanges {
        objects(&exchange.response.body, &mut |view| {
            let cluster = word(view, "cluster_id");
            if word(view, "kind") != "Host" || cluster.is_empty() || !ids::is_uuid(word(view, "id")) {
                return;
            }
            let (members, chosen) = clusters.entry(cluster.to_owned()).or_default();
            members.insert(word(view, "id").to_owned());
            if view.get("bootstrap") == Some(&Value::Bool(true)) {
                chosen.insert(word(view, "id").to_owned());
            }
        });
    }
    let pair = |(members, chosen): (BTreeSet<String>, BTreeSet<String>)| {
        let (smallest, chosen) = (members.into_iter().next()?, chosen.into_iter().next()?);
        (smallest != chosen).then_some((chosen, smallest))
    };
    clusters.into_values().filter_map(pair).collect()
}
