//! Proxy settings: where requests go out, and what stays direct.

use std::net::IpAddr;

use ipnet::IpNet;

use super::error::{Checked, Invalid, quoted};
use super::name::is_dns_name;
use crate::infra_env::Proxy;

/// True when traffic goes through a proxy at all.
pub fn is_set(proxy: &Proxy) -> bool {
    !proxy.http.is_empty() || !proxy.https.is_empty()
}

/// `place` is where the three fields stand in the body: "" in a cluster, "proxy." in an InfraEnv.
pub fn proxy(place: &str, proxy: &Proxy) -> Checked {
    url(&format!("{place}http_proxy"), &proxy.http, &["http"])?;
    url(&format!("{place}https_proxy"), &proxy.https, &["http", "https"])?;
    no_proxy(&format!("{place}no_proxy"), &proxy.no)
}

fn url(field: &str, text: &str, schemes: &[&str]) -> Checked {
    if text.is_empty() {
        return Ok(());
    }
    let fix = format!("write {}://host:port", schemes.join("://host:port or "));
    // The value may hold a password, so it is not quoted.
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(Invalid::rule(field, "is not a URL", fix));
    };
    if !schemes.contains(&scheme) {
        return Err(Invalid::rule(
            field,
            format!("has the scheme {}", quoted(scheme)),
            fix,
        ));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let clean = text
        .chars()
        .all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`' | '\\' | '$'));
    if clean && is_host_port(host_port) {
        Ok(())
    } else {
        Err(Invalid::rule(field, "has no usable host", fix))
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`.
pub(crate) fn is_host_port(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((v6, port)) => {
            return v6.parse::<std::net::Ipv6Addr>().is_ok()
                && (port.is_empty() || is_port(port.strip_prefix(':')));
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    (host.parse::<IpAddr>().is_ok() || is_dns_name(host)) && (port.is_none() || is_port(port))
}

fn is_port(text: Option<&str>) -> bool {
    text.is_some_and(|port| port.parse::<u16>().is_ok_and(|n| n > 0))
}

/// A comma list of domains, addresses and networks, or a lone `*`.
fn no_proxy(field: &str, text: &str) -> Checked {
    if text.is_empty() || text == "*" {
        return Ok(());
    }
    for entry in text.split(',') {
        let entry = entry.trim();
        let domain = entry.strip_prefix('.').unwrap_or(entry);
        let known = entry.parse::<IpAddr>().is_ok() || entry.parse::<IpNet>().is_ok() || is_host_port(domain);
        if !known {
            return Err(Invalid::rule(
                field,
                format!(
                    "has an entry that is no domain, address or network ({})",
                    quoted(entry)
                ),
                "separate entries by commas, start a domain with a dot to mean all below it, or use * alone for everything",
            ));
        }
    }
    Ok(())
}
