//! The discovery document of an issuer: where its keys are, and where people log in.

use crate::jws::Algorithm;
use crate::strict_json::{self, Fault};
use crate::told::Told;
use serde_json::{Map, Value};
use std::fmt;

/// Those of large issuers take a tenth of this.
const LONGEST: usize = 64 * 1024;
const LONGEST_URL: usize = 2048;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDiscovery {
    #[error(
        "the issuer has to be an https URL without query, user and fragment; http is accepted on loopback only"
    )]
    Issuer,
    #[error("the discovery document is longer than {LONGEST} bytes")]
    TooLong,
    #[error("the discovery document {0}")]
    Json(Fault),
    #[error("the discovery document has no `{0}`")]
    Missing(&'static str),
    #[error(
        "`{0}` in the discovery document is not an address that can be trusted: it has to be an https URL"
    )]
    Address(&'static str),
    /// The document of somebody else, or a slash too many.
    #[error(
        "the discovery document is that of the issuer {0}; the issuer has to be configured exactly as it calls itself"
    )]
    OtherIssuer(Told),
    #[error("the issuer signs with none of RS256 and ES256")]
    Algorithms,
}

/// The name of an issuer, which is its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer(String);

impl Issuer {
    pub fn new(url: &str) -> Result<Self, BadDiscovery> {
        match is_trusted(url, true) && !url.contains('?') {
            true => Ok(Self(url.to_owned())),
            false => Err(BadDiscovery::Issuer),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn discovery_url(&self) -> String {
        format!(
            "{}/.well-known/openid-configuration",
            self.0.trim_end_matches('/')
        )
    }

    /// An issuer for tests and the first steps, on the same machine.
    fn is_plain(&self) -> bool {
        self.0.starts_with("http://")
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `plain`: without TLS as well, on this machine.
fn is_trusted(url: &str, plain: bool) -> bool {
    let (rest, secure) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, false),
        (None, None) => return false,
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let printable = rest.bytes().all(|byte| byte.is_ascii_graphic());
    let loopback = matches!(host, "127.0.0.1" | "::1" | "localhost");
    let whole = !host.is_empty() && printable && !rest.contains(['#', '\\', '"', '<', '>']);
    whole && !authority.contains('@') && url.len() <= LONGEST_URL && (secure || (plain && loopback))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovery {
    pub issuer: Issuer,
    pub jwks_uri: String,
    pub token_endpoint: Option<String>,
    /// Present if people can log in with the device flow.
    pub device_authorization_endpoint: Option<String>,
}

impl Discovery {
    pub fn read(document: &[u8], issuer: &Issuer) -> Result<Self, BadDiscovery> {
        if document.len() > LONGEST {
            return Err(BadDiscovery::TooLong);
        }
        let map = strict_json::object(document).map_err(BadDiscovery::Json)?;
        let named = map
            .get("issuer")
            .and_then(Value::as_str)
            .ok_or(BadDiscovery::Missing("issuer"))?;
        if named != issuer.as_str() {
            return Err(BadDiscovery::OtherIssuer(Told::new(named)));
        }
        let address = |name| address(&map, name, issuer.is_plain());
        signs_as_wanted(&map)?;
        Ok(Self {
            issuer: issuer.clone(),
            jwks_uri: address("jwks_uri")?.ok_or(BadDiscovery::Missing("jwks_uri"))?,
            token_endpoint: address("token_endpoint")?,
            device_authorization_endpoint: address("device_authorization_endpoint")?,
        })
    }
}

fn address(
    map: &Map<String, Value>,
    name: &'static str,
    plain: bool,
) -> Result<Option<String>, BadDiscovery> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(url)) if is_trusted(url, plain) => Ok(Some(url.clone())),
        Some(_) => Err(BadDiscovery::Address(name)),
    }
}

/// An issuer that does not say how it signs may sign as we want.
fn signs_as_wanted(map: &Map<String, Value>) -> Result<(), BadDiscovery> {
    let Some(told) = map
        .get("id_token_signing_alg_values_supported")
        .and_then(Value::as_array)
    else {
        return Ok(());
    };
    let wanted = [Algorithm::Rs256.word(), Algorithm::Es256.word()];
    match told
        .iter()
        .filter_map(Value::as_str)
        .any(|word| wanted.contains(&word))
    {
        true => Ok(()),
        false => Err(BadDiscovery::Algorithms),
    }
}
