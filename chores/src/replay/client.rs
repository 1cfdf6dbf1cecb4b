//! The HTTP side: sends what was recorded, as it was recorded, and takes any answer as an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;

/// Longer than any answer of a healthy hub takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The connection's own business, not the request's.
const NOT_FORWARDED: &[&str] = &[
    "host",
    "content-length",
    "accept-encoding",
    "connection",
    "transfer-encoding",
];

pub struct Client {
    agent: Agent,
    url: String,
}

/// An answer; status 0 when there was none.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub text: String,
}

impl Reply {
    pub fn body(&self) -> Value {
        if self.text.trim().is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&self.text).unwrap_or_else(|_| Value::from(self.text.clone()))
    }
}

impl Client {
    pub fn new(url: &str) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_global(Some(PATIENCE))
            .build();
        Self {
            agent: config.new_agent(),
            url: url.trim_end_matches('/').to_owned(),
        }
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &BTreeMap<String, String>,
        body: Option<&str>,
    ) -> Reply {
        let url = format!("{}{path}", self.url);
        let sent = match (method, body) {
            ("POST", _) => with_body(self.agent.post(url), headers, body),
            ("PUT", _) => with_body(self.agent.put(url), headers, body),
            ("PATCH", _) => with_body(self.agent.patch(url), headers, body),
            ("DELETE", Some(_)) => with_body(self.agent.delete(url).force_send_body(), headers, body),
            ("DELETE", None) => forwarded(headers)
                .fold(self.agent.delete(url), |r, (k, v)| r.header(k, v))
                .call(),
            ("HEAD", _) => forwarded(headers)
                .fold(self.agent.head(url), |r, (k, v)| r.header(k, v))
                .call(),
            (_, _) => forwarded(headers)
                .fold(self.agent.get(url), |r, (k, v)| r.header(k, v))
                .call(),
        };
        sent.map_or_else(
            |error| Reply {
                text: error.to_string(),
                ..Reply::default()
            },
            read,
        )
    }
}

fn with_body(
    request: ureq::RequestBuilder<ureq::typestate::WithBody>,
    headers: &BTreeMap<String, String>,
    body: Option<&str>,
) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
    let request = forwarded(headers).fold(request, |request, (key, value)| request.header(key, value));
    match body {
        Some(body) => request.send(body.as_bytes()),
        None => request.send_empty(),
    }
}

fn forwarded(headers: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    headers
        .iter()
        .filter(|(key, _)| !NOT_FORWARDED.contains(&key.to_lowercase().as_str()))
}

fn read(mut response: ureq::http::Response<ureq::Body>) -> Reply {
    let headers = response.headers().iter();
    let headers = headers
        .map(|(key, value)| {
            (
                key.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let status = response.status().as_u16();
    match response.body_mut().read_to_vec() {
        Ok(bytes) => Reply {
            status,
            headers,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        },
        // An answer that breaks off is no answer.
        Err(error) => Reply {
            text: error.to_string(),
            ..Reply::default()
        },
    }
}
