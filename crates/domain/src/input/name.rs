//! Names of clusters, domains and hosts.

use super::error::{Checked, Invalid, quoted};
use super::schema;

/// The longest cluster name that still leaves room for the records made from it.
pub const CLUSTER_NAME_MAX: usize = 54;
/// A host name is used as one DNS label and as a node name.
pub const HOSTNAME_MAX: usize = 63;
const DOMAIN_MAX: usize = 255;

/// Names every freshly booted machine may have; two of them in one cluster would collide.
pub const FORBIDDEN_HOSTNAMES: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
];

/// `dots` is true for platform none, where the name may carry subdomains.
pub fn cluster_name(name: &str, dots: bool) -> Checked {
    schema::length("name", name, 1, CLUSTER_NAME_MAX)?;
    let right = if dots {
        name.split('.').all(is_label)
    } else {
        is_label(name)
    };
    if right {
        return Ok(());
    }
    Err(Invalid::rule(
        "name",
        format!("cannot be {}", quoted(name)),
        "use lower-case letters, digits and inner hyphens (dots only with platform none)",
    ))
}

/// Any text people can read, since nothing is named after it.
pub fn infra_env_name(name: &str) -> Checked {
    if !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Invalid::rule(
        "name",
        "has characters that cannot be shown",
        "use letters, digits and signs",
    ))
}

/// The parent domain of a cluster, such as `example.com`; an empty text means "not set".
pub fn base_dns_domain(domain: &str) -> Checked {
    if domain.is_empty() {
        return Ok(());
    }
    let labels: Vec<&str> = domain.split('.').collect();
    let dotted_decimal = labels
        .iter()
        .all(|label| label.bytes().all(|b| b.is_ascii_digit()));
    let right = domain.len() <= DOMAIN_MAX
        && labels.len() >= 2
        && labels.iter().all(|label| is_label(label))
        && labels.last().is_some_and(|top| top.len() >= 2)
        && !dotted_decimal;
    if right {
        return Ok(());
    }
    Err(Invalid::rule(
        "base_dns_domain",
        format!("is not a domain ({})", quoted(domain)),
        "give at least two labels of lower-case letters, digits and inner hyphens, like example.com",
    ))
}

/// A host name a person asks for.
pub fn hostname(name: &str) -> Checked {
    let field = "host_name";
    let count = name.chars().count();
    if count > HOSTNAME_MAX {
        return Err(Invalid::rule(
            field,
            format!("has {count} characters"),
            format!("use at most {HOSTNAME_MAX}"),
        ));
    }
    if !is_hostname(name) {
        return Err(Invalid::rule(
            field,
            format!("cannot be {}", quoted(name)),
            "use lower-case letters, digits, hyphens and dots, beginning with a letter or digit",
        ));
    }
    if is_forbidden_hostname(name) {
        return Err(Invalid::rule(
            field,
            format!("cannot be {} because it is no machine's own name", quoted(name)),
            "choose a name that tells this host from others",
        ));
    }
    Ok(())
}

/// The form of a host name, also used by the check of the name a host reports itself.
pub fn is_hostname(name: &str) -> bool {
    let allowed = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.split('.').all(allowed) && !name.starts_with('-') && name.len() <= HOSTNAME_MAX
}

pub fn is_forbidden_hostname(name: &str) -> bool {
    FORBIDDEN_HOSTNAMES.contains(&name)
}

/// A DNS name in either case, as used for time sources, proxies and API names.
pub fn is_dns_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    !name.is_empty()
        && name.len() <= DOMAIN_MAX
        && name.split('.').all(|label| is_label(&label.to_ascii_lowercase()))
}

/// The API name of an existing cluster, given when importing it.
pub fn api_vip_dnsname(field: &str, name: &str) -> Checked {
    if is_dns_name(name) || name.parse::<std::net::IpAddr>().is_ok() {
        return Ok(());
    }
    Err(Invalid::rule(
        field,
        format!("is not a host name ({})", quoted(name)),
        "give the API name of the cluster, like api.prod.example.com",
    ))
}

/// The API name of a cluster that installs itself is derived, so only an imported cluster may change it.
pub fn api_vip_dns_name_update(name: &str, adds_hosts: bool) -> Checked {
    if !adds_hosts {
        return Err(Invalid::rule(
            "api_vip_dns_name",
            "can be set only on a cluster that takes in additional hosts",
            "leave it out; this cluster's API name follows from its name and base domain",
        ));
    }
    api_vip_dnsname("api_vip_dns_name", name)
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}
