//! Operators a cluster can be asked to bring along.

use std::collections::BTreeSet;

use super::error::{Checked, Invalid, quoted};
use crate::catalog::OPERATORS;

/// Every name must be one the hub knows, and only once.
pub fn operators(names: &[&str]) -> Checked {
    let mut seen = BTreeSet::new();
    for name in names {
        if !OPERATORS.contains(name) {
            return Err(Invalid::rule(
                "olm_operators",
                format!("names {}, which this hub does not know", quoted(name)),
                format!("use any of {}", OPERATORS.join(", ")),
            ));
        }
        if !seen.insert(name) {
            return Err(Invalid::rule(
                "olm_operators",
                format!("names {} twice", quoted(name)),
                "name it once",
            ));
        }
    }
    Ok(())
}
