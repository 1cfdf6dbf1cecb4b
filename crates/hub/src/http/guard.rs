//! Keeps other sites' pages from using people's browsers against the hub: which names it answers to, and from where
//! changes may come. Programs are not concerned: they name the hub as their settings do, and say nothing of sites.

use crate::http::problem;
use crate::http::v1::input;
use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

const FETCH_SITE: &str = "sec-fetch-site";
/// Names that no stranger can register: this machine, and Services of the Kubernetes cluster the hub runs in.
const RESERVED: [&str; 3] = [".localhost", ".svc", ".svc.cluster.local"];

/// The names under which a hub is reached.
#[derive(Debug, Clone, Default)]
pub struct Names(Arc<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Of its own URLs.
    own: Vec<Authority>,
    /// As people write them: a name, or `*.` and a domain for all names in it.
    allowed: Vec<String>,
}

impl Names {
    /// `urls` are those that the hub itself hands out.
    pub fn new<'a>(urls: impl IntoIterator<Item = &'a str>, allowed: &[String]) -> anyhow::Result<Self> {
        let own = urls
            .into_iter()
            .filter_map(|url| url.parse::<Uri>().ok()?.into_parts().authority)
            .collect();
        let allowed = allowed
            .iter()
            .map(|name| judged(name))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self(Arc::new(Known { own, allowed })))
    }

    /// Whether the hub answers to what stands in `Host`. Whoever gives none, as HTTP/1.0 allows, is no browser.
    pub fn admit(&self, host: &str) -> bool {
        host.is_empty()
            || host
                .parse::<Authority>()
                .is_ok_and(|host| self.is_ours(&name(&host)))
    }

    /// Addresses cannot be made to mean another machine, nor can names that are no domain.
    fn is_ours(&self, name: &str) -> bool {
        is_address(name) || !name.contains('.') || is_reserved(name) || self.is_named(name)
    }

    fn is_named(&self, host: &str) -> bool {
        self.0.own.iter().any(|own| name(own) == host) || self.is_allowed(host)
    }

    fn is_allowed(&self, host: &str) -> bool {
        self.0
            .allowed
            .iter()
            .any(|allowed| match allowed.strip_prefix('*') {
                Some(domain) => host.ends_with(domain) && host.len() > domain.len(),
                None => host == allowed,
            })
    }

    /// Whether a page from there is one of ours: from where this request goes, from the hub's own URLs, or from a name
    /// that was allowed.
    fn is_own_origin(&self, origin: &str, host: &str) -> bool {
        let Some(from) = origin
            .parse::<Uri>()
            .ok()
            .and_then(|uri| Some((port(&uri), uri.into_parts().authority?)))
        else {
            return false;
        };
        let (port, from) = (from.0, from.1);
        let same = |other: &Authority| {
            name(other) == name(&from) && other.port_u16().or(port) == from.port_u16().or(port)
        };
        let here = host.parse::<Authority>().is_ok_and(|host| same(&host));
        here || self.0.own.iter().any(same) || self.is_allowed(&name(&from))
    }
}

fn judged(given: &str) -> anyhow::Result<String> {
    let name = given.trim().trim_end_matches('.').to_ascii_lowercase();
    let plain = name.strip_prefix("*.").unwrap_or(&name);
    let right = plain
        .parse::<Authority>()
        .is_ok_and(|authority| authority.host() == plain);
    if right && !plain.contains(['*', '@']) {
        return Ok(name);
    }
    anyhow::bail!(
        "--allowed-host: {given:?} is no host name; write muster.example.com, or *.example.com for all names in it"
    )
}

/// In small letters, without port, brackets and the dot of the root.
fn name(authority: &Authority) -> String {
    let host = authority.host().to_ascii_lowercase();
    host.trim_matches(['[', ']']).trim_end_matches('.').to_owned()
}

fn is_address(name: &str) -> bool {
    let v6 = name.split('%').next().unwrap_or_default();
    name.parse::<IpAddr>().is_ok() || v6.parse::<Ipv6Addr>().is_ok()
}

fn is_reserved(name: &str) -> bool {
    name == "localhost" || RESERVED.iter().any(|end| name.ends_with(end))
}

/// What the scheme means when no port is given.
fn port(uri: &Uri) -> Option<u16> {
    match uri.scheme_str() {
        Some("https") => Some(443),
        Some("http") => Some(80),
        _ => None,
    }
}

/// The refusal of a request under a name that is not ours, or from a page that is not.
pub fn judge(names: &Names, request: &Request) -> Option<Response> {
    let path = request.uri().path();
    let host = text(request.headers(), header::HOST.as_str());
    // A request through a proxy names it twice.
    let target = request.uri().authority().map(Authority::as_str);
    let strange = [Some(host), target]
        .into_iter()
        .flatten()
        .find(|host| !names.admit(host));
    if let Some(host) = strange {
        let detail = format!("this hub does not answer to the name {}", shown(host));
        let fix = "Use its base URL, or start it with --allowed-host and this name if it is one of its own.";
        return Some(refusal(
            path,
            StatusCode::MISDIRECTED_REQUEST,
            "unknown-host",
            detail,
            fix,
        ));
    }
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return None;
    }
    let site = other_site(names, request.headers(), target.unwrap_or(host))?;
    let detail = format!("a browser sent this from another site ({})", shown(site));
    let fix = "Use the hub's own address, or start it with --allowed-host and the name of that site if it is one of its own.";
    Some(refusal(path, StatusCode::FORBIDDEN, "other-site", detail, fix))
}

/// The site that a browser says this comes from, when it is not ours. Browsers tell it in one header or the other.
fn other_site<'a>(names: &Names, headers: &'a HeaderMap, host: &str) -> Option<&'a str> {
    let (site, origin) = (text(headers, FETCH_SITE), text(headers, header::ORIGIN.as_str()));
    if matches!(site, "same-origin" | "none") {
        return None;
    }
    match (site, origin) {
        ("", "") => None,
        (site, "") => Some(site),
        (_, origin) => (!names.is_own_origin(origin, host)).then_some(origin),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    // What is no text is no name of ours.
    let value = |value: &'a HeaderValue| value.to_str().unwrap_or("?.");
    headers.get(name).map_or("", value)
}

fn shown(name: &str) -> String {
    const LONGEST: usize = 100;
    name.chars().take(LONGEST).collect()
}

/// In the shape of the API that was asked.
fn refusal(path: &str, status: StatusCode, code: &'static str, detail: String, fix: &str) -> Response {
    if path.starts_with(muster_contract::v1::BASE) {
        return input::problem(status, code, detail, fix).into_response();
    }
    problem::framework(status, format!("{detail}. {fix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let urls = ["https://muster.example.com", "http://images.example.com:8091"];
        let allowed = ["Hub.Proxy.example.".to_owned(), "*.lab.example".to_owned()];
        Names::new(urls, &allowed).unwrap()
    }

    #[test]
    fn the_hub_answers_to_its_own_names_and_to_what_no_stranger_can_own() {
        for (host, admitted) in [
            ("", true),
            ("10.0.0.5:8090", true),
            ("[fd00::5]:8090", true),
            ("[::1]", true),
            ("localhost:8090", true),
            ("LOCALHOST", true),
            ("x.localhost", true),
            ("hub", true),
            ("muster.muster.svc:8090", true),
            ("muster.muster.svc.cluster.local", true),
            ("muster.example.com", true),
            ("muster.example.com:443", true),
            ("MUSTER.example.com.", true),
            ("images.example.com:8091", true),
            ("hub.proxy.example", true),
            ("a.lab.example", true),
            ("a.b.lab.example:1", true),
            ("lab.example", false),
            ("evil-lab.example", false),
            ("evil.example", false),
            ("10.0.0.5.evil.example", false),
            ("localhost.evil.example", false),
            ("svc.evil.example", false),
            ("muster.example.com.evil.example", false),
            ("?.", false),
            ("a b", false),
        ] {
            assert_eq!(names().admit(host), admitted, "{host}");
        }
    }

    #[test]
    fn changes_come_from_programs_or_from_pages_of_the_hub() {
        let here = "10.0.0.5:8090";
        for (site, origin, own) in [
            ("", "", true),
            ("same-origin", "", true),
            ("none", "", true),
            ("same-origin", "http://10.0.0.5:8090", true),
            ("", "http://10.0.0.5:8090", true),
            ("", "https://muster.example.com", true),
            ("cross-site", "https://hub.proxy.example", true),
            ("same-site", "https://console.lab.example:9000", true),
            ("cross-site", "", false),
            ("same-site", "", false),
            ("something-new", "", false),
            ("cross-site", "https://evil.example", false),
            ("", "https://evil.example", false),
            ("", "null", false),
            ("", "http://10.0.0.5:3000", false),
            ("", "http://10.0.0.6:8090", false),
            ("", "http://localhost:8090", false),
            ("", "http://muster.example.com:3000", false),
            ("", "file://", false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(FETCH_SITE, site), ("origin", origin)] {
                if !value.is_empty() {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(
                other_site(&names(), &headers, here).is_none(),
                own,
                "{site:?} {origin:?}"
            );
        }
    }

    #[test]
    fn a_default_port_is_the_same_with_and_without_being_written() {
        assert!(names().is_own_origin("https://a.example", "a.example:443"));
        assert!(names().is_own_origin("http://a.example:80", "a.example"));
        assert!(!names().is_own_origin("http://a.example", "a.example:8090"));
    }

    #[test]
    fn what_is_no_name_is_refused_at_the_start() {
        for wrong in [
            "",
            "http://hub.example.com",
            "hub:8090",
            "*",
            "a b",
            "*.*.example",
            "user@hub",
        ] {
            assert!(Names::new([], &[wrong.to_owned()]).is_err(), "{wrong:?}");
        }
    }
}
