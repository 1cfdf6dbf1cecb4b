//! Which headers of an answer clients rely on, and whether ours has them too.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{Difference, What};

/// Clients read the file name, the cache key and the counts; values are the hub's own.
const PRESENT: &[&str] = &[
    "Content-Disposition",
    "Last-Modified",
    "Event-Count",
    "Severity-Count-Info",
    "Severity-Count-Warning",
    "Severity-Count-Error",
    "Severity-Count-Critical",
];

pub fn compare(recorded: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> Vec<Difference> {
    let mut found = Vec::new();
    let get = |name: &str| ours.get(&name.to_lowercase()).map(String::as_str);
    if let Some(theirs) = recorded.get("Content-Type") {
        let media = |text: &str| text.split(';').next().unwrap_or_default().trim().to_lowercase();
        let our = get("Content-Type").unwrap_or_default();
        if media(theirs) != media(our) {
            found.push(Difference::new(What::Header, "Content-Type", theirs, our));
        }
    }
    for name in PRESENT {
        if recorded.contains_key(*name) && get(name).is_none() {
            found.push(Difference::new(What::Header, name, "present", "absent"));
        }
    }
    if let Some(theirs) = recorded.get("Allow") {
        let words = |text: &str| {
            text.split(',')
                .map(|word| word.trim().to_owned())
                .collect::<BTreeSet<String>>()
        };
        let our = get("Allow").unwrap_or_default();
        // HEAD and OPTIONS come free with ours.
        if !words(theirs).is_subset(&words(our)) {
            found.push(Difference::new(What::Header, "Allow", theirs, our));
        }
    }
    found
}
