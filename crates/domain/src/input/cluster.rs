//! The small options of a cluster: hyperthreading, tags, load balancer, and the role of a host in it.

use super::error::{Checked, Invalid, quoted};
use super::platform::Platform;
use super::schema;
use crate::host::Role;
use muster_vocabulary::{LoadBalancerType, RoleSet};

pub fn hyperthreading(word: &str) -> Checked {
    schema::word::<RoleSet>("hyperthreading", word).map(drop)
}

pub fn host_role(word: &str) -> Checked {
    schema::word::<Role>("host_role", word).map(drop)
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
    let kind = schema::word::<LoadBalancerType>(field, kind)?;
    let has_vips = match platform {
        Platform::Baremetal | Platform::Vsphere | Platform::Nutanix => !single_node,
        Platform::None | Platform::External => false,
    };
    if kind == LoadBalancerType::ClusterManaged || has_vips {
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
