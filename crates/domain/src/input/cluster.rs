//! The small options of a cluster: hyperthreading, tags, load balancer, and the role of a host in it.

use super::error::{Checked, Invalid, quoted};
use super::platform::Platform;
use super::schema;
use crate::host::Role;

/// Groups of roles an option can be switched on for.
pub const ROLE_GROUPS: [&str; 9] = [
    "none",
    "masters",
    "arbiters",
    "workers",
    "masters,arbiters",
    "masters,workers",
    "arbiters,workers",
    "masters,arbiters,workers",
    "all",
];

pub fn hyperthreading(word: &str) -> Checked {
    schema::one_of("hyperthreading", word, &ROLE_GROUPS)
}

pub fn host_role(word: &str) -> Checked {
    let words: Vec<_> = Role::ALL.iter().map(|role| role.word()).collect();
    schema::one_of("host_role", word, &words)
}

/// A comma list of words; an empty text clears.
pub fn tags(text: &str) -> Checked {
    let word = |tag: &str| {
        !tag.is_empty()
            && tag
                .split(' ')
                .all(|part| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_'))
    };
    if text.is_empty() || text.split(',').all(word) {
        return Ok(());
    }
    Err(Invalid::rule(
        "tags",
        format!("cannot be {}", quoted(text)),
        "list words of letters, digits and underscores, separated by commas without blanks around them",
    ))
}

/// A load balancer of one's own needs virtual addresses to point at, hence a managed network and several nodes.
pub fn load_balancer(kind: &str, platform: Platform, single_node: bool) -> Checked {
    let field = "load_balancer.type";
    schema::one_of(field, kind, &["cluster-managed", "user-managed"])?;
    let has_vips = match platform {
        Platform::Baremetal | Platform::Vsphere | Platform::Nutanix => !single_node,
        Platform::None | Platform::External => false,
    };
    if kind == "cluster-managed" || has_vips {
        return Ok(());
    }
    Err(Invalid::rule(
        field,
        format!(
            "is user-managed, which platform {} has no use for",
            platform.word()
        ),
        "leave it out",
    ))
}
