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

/// Stands where a password is.
const HIDDEN: &str = "***";

/// A proxy's address as people and clients are shown it: all but its password.
pub fn shown(url: &str) -> String {
    match password(url) {
        None => url.to_owned(),
        Some(place) => format!("{}{HIDDEN}{}", &url[..place.start], &url[place.end..]),
    }
}

/// The address a request sets. Whoever reads one, changes something else and writes it back says that it stays; with
/// any other address the stars would become the password.
pub fn given(field: &str, url: &str, stored: &str) -> Checked<String> {
    if password(url).is_none_or(|place| &url[place] != HIDDEN) {
        return Ok(url.to_owned());
    }
    if url == shown(stored) {
        return Ok(stored.to_owned());
    }
    Err(Invalid::rule(
        field,
        format!("has {HIDDEN} where its password belongs"),
        "give the password, or leave the field out to keep the address as it is",
    ))
}

/// Where in the text it is.
fn password(url: &str) -> Option<std::ops::Range<usize>> {
    let start = url.find("://")? + "://".len();
    let end = url[start..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |length| start + length);
    let at = start + url[start..end].rfind('@')?;
    let colon = start + url[start..at].find(':')?;
    Some(colon + 1..at)
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
        return Err(Invalid::rule(field, "has another scheme", fix));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_of_a_proxy_is_hidden() {
        for (url, seen) in [
            ("", ""),
            ("http://proxy:3128", "http://proxy:3128"),
            ("http://user@proxy:3128", "http://user@proxy:3128"),
            ("http://user:pass@proxy:3128", "http://user:***@proxy:3128"),
            (
                "https://user:p:a@ss@[fd00::1]:1/x?a=b@c",
                "https://user:***@[fd00::1]:1/x?a=b@c",
            ),
            ("http://:@proxy", "http://:***@proxy"),
        ] {
            assert_eq!(shown(url), seen);
        }
    }

    #[test]
    fn what_was_shown_can_be_written_back_and_stars_never_become_a_password() {
        let stored = "http://user:pass@proxy:3128";
        assert_eq!(
            given("http_proxy", "http://user:***@proxy:3128", stored),
            Ok(stored.into())
        );
        assert_eq!(
            given("http_proxy", "http://user:new@proxy", stored),
            Ok("http://user:new@proxy".into())
        );
        assert_eq!(given("http_proxy", "", stored), Ok(String::new()));
        for stored in ["http://user:pass@other:3128", ""] {
            let refused = given("http_proxy", "http://user:***@proxy:3128", stored).unwrap_err();
            assert_eq!(refused.field, "http_proxy");
        }
    }
}
