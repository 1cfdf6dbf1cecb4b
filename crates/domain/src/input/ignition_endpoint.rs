//! Where day-2 hosts fetch their Ignition: address, CA, token and headers.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::error::{Checked, Invalid, quoted};
use super::proxy::is_host_port;

/// The cluster-wide endpoint. `ca_certificate` is the base64 of a PEM text.
pub fn ignition_endpoint(url: Option<&str>, ca_certificate: Option<&str>) -> Checked {
    if let Some(url) = url.filter(|url| !url.is_empty()) {
        let rest = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"));
        let host = rest.and_then(|rest| rest.split(['/', '?']).next());
        if !host.is_some_and(is_host_port) || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(Invalid::rule(
                "ignition_endpoint.url",
                "is not a web address",
                "give http://host:port/path or https://host:port/path",
            ));
        }
    }
    let Some(text) = ca_certificate.filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let pem = STANDARD
        .decode(text.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    if pem.is_some_and(|pem| pem.contains("-----BEGIN CERTIFICATE-----")) {
        return Ok(());
    }
    Err(Invalid::rule(
        "ignition_endpoint.ca_certificate",
        "is not the base64 of a PEM certificate",
        "encode the whole PEM file with base64",
    ))
}

/// Headers sent with the fetch. Values may be secret and are not quoted.
pub fn ignition_headers(headers: &[(String, String)]) -> Checked<BTreeMap<String, String>> {
    let field = "ignition_endpoint_http_headers";
    let mut result = BTreeMap::new();
    for (key, value) in headers {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if key.is_empty() || !key.bytes().all(token) {
            return Err(Invalid::rule(
                field,
                format!("has the impossible header name {}", quoted(key)),
                "use letters, digits and hyphens",
            ));
        }
        if value.chars().any(char::is_control) {
            return Err(Invalid::rule(
                field,
                format!("has control characters in the value of {}", quoted(key)),
                "give the value on one line",
            ));
        }
        if result.insert(key.clone(), value.clone()).is_some() {
            return Err(Invalid::rule(
                field,
                format!("names {} twice", quoted(key)),
                "give every header once",
            ));
        }
    }
    Ok(result)
}

/// The token goes into a header, so it must be one line; it is never quoted.
pub fn ignition_token(token: &str) -> Checked {
    if token.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Invalid::rule(
            "ignition_endpoint_token",
            "holds blanks or line breaks",
            "give the bare token",
        ));
    }
    Ok(())
}
