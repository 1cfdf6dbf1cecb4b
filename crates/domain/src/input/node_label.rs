//! Kubernetes labels for nodes.

use std::collections::BTreeMap;

use super::error::{Checked, Invalid, quoted};

const FIELD: &str = "node_labels";
const PART_MAX: usize = 63;
const PREFIX_MAX: usize = 253;

/// A list of key and value replaces all labels; a key may occur once.
pub fn node_labels(labels: &[(String, String)]) -> Checked<BTreeMap<String, String>> {
    let mut result = BTreeMap::new();
    for (key, value) in labels {
        check_key(key)?;
        if !(value.is_empty() || is_part(value)) {
            return Err(Invalid::rule(
                FIELD,
                format!("has the impossible value {} for {}", quoted(value), quoted(key)),
                part_fix(),
            ));
        }
        if result.insert(key.clone(), value.clone()).is_some() {
            return Err(Invalid::rule(
                FIELD,
                format!("names {} twice", quoted(key)),
                "give every key once",
            ));
        }
    }
    Ok(result)
}

fn check_key(key: &str) -> Checked {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_right = prefix.is_none_or(|prefix| prefix.len() <= PREFIX_MAX && is_subdomain(prefix));
    if prefix_right && is_part(name) {
        return Ok(());
    }
    Err(Invalid::rule(
        FIELD,
        format!("has the impossible key {}", quoted(key)),
        part_fix(),
    ))
}

fn part_fix() -> String {
    format!(
        "use up to {PART_MAX} letters, digits, '-', '_' and '.', with a letter or digit at both ends; a key may have a domain and a slash before it"
    )
}

fn is_part(text: &str) -> bool {
    let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= PART_MAX
        && end(text.chars().next())
        && end(text.chars().last())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(|label| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    })
}
