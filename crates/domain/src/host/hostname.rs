//! Names a host may have, and the one it goes by.

use crate::inventory::Inventory;

/// Longest name that still fits a node's label.
pub const LIMIT: usize = 63;

const PLACEHOLDERS: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error("the host has no name")]
    Empty,
    #[error("the name is longer than 63 characters")]
    TooLong,
    #[error("the name is a placeholder that every machine has")]
    Placeholder,
    #[error(
        "the name may hold lower-case letters, digits, dashes and dots only, and must start with a letter or digit"
    )]
    Characters,
}

/// The name a person gave, else the name the machine reports.
pub fn effective<'a>(given: Option<&'a str>, inventory: Option<&'a Inventory>) -> &'a str {
    let given = given.filter(|name| !name.is_empty());
    given
        .or(inventory.map(|inventory| inventory.hostname.as_str()))
        .unwrap_or_default()
}

pub fn validate(name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::Empty);
    }
    if name.len() > LIMIT {
        return Err(Invalid::TooLong);
    }
    if PLACEHOLDERS.contains(&name) {
        return Err(Invalid::Placeholder);
    }
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let labels_are_fine = name
        .split('.')
        .all(|label| !label.is_empty() && label.bytes().all(allowed));
    if name.starts_with('-') || !labels_are_fine {
        return Err(Invalid::Characters);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged() {
        let long = "a".repeat(64);
        let cases: &[(&str, Result<(), Invalid>)] = &[
            ("node-0", Ok(())),
            ("0node.example.com", Ok(())),
            ("a", Ok(())),
            ("", Err(Invalid::Empty)),
            (&long, Err(Invalid::TooLong)),
            ("localhost", Err(Invalid::Placeholder)),
            ("localhost6.localdomain6", Err(Invalid::Placeholder)),
            ("Node", Err(Invalid::Characters)),
            ("node_1", Err(Invalid::Characters)),
            ("-node", Err(Invalid::Characters)),
            ("node..com", Err(Invalid::Characters)),
            ("node.", Err(Invalid::Characters)),
        ];
        for (name, verdict) in cases {
            assert_eq!(validate(name), *verdict, "{name}");
        }
    }

    #[test]
    fn a_given_name_wins_over_the_reported_one() {
        let inventory = Inventory {
            hostname: "reported".into(),
            ..Inventory::default()
        };
        assert_eq!(effective(Some("given"), Some(&inventory)), "given");
        assert_eq!(effective(Some(""), Some(&inventory)), "reported");
        assert_eq!(effective(None, None), "");
    }
}
