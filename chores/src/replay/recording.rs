//! Recorded exchanges: reading the file, and what a recorded request says about itself.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::{cast, ids};

pub const BASE: &str = "/api/assisted-install/v2";

/// Bodies of these are JSON *strings*; any other body recorded as a string was not JSON at all.
const STRING_BODIES: &[&str] = &["/uploads/ingress-cert", "/install-config", "/ui-settings"];

#[derive(Debug, Clone)]
pub struct Recording {
    pub name: String,
    pub exchanges: Vec<Exchange>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Exchange {
    pub request: Request,
    pub response: Response,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    pub method: String,
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Value,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Response {
    /// 0: the connection was closed without an answer.
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default)]
    pub body: Value,
}

impl Recording {
    pub fn load(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let parse = |text: &str| -> Result<Vec<Exchange>> {
            serde_json::from_str(text).with_context(|| format!("{} is not a recording", file.display()))
        };
        let mut exchanges = parse(&text)?;
        if let Some(text) = cast::recast(&text, &exchanges) {
            exchanges = parse(&text)?;
        }
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok(Self { name, exchanges })
    }
}

impl Exchange {
    /// The request changed something on the recorded side.
    pub fn accepted_change(&self) -> bool {
        self.request.method != "GET" && (200..300).contains(&self.response.status)
    }
}

impl Request {
    /// The path below the API's base, without the query.
    pub fn route(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        path.strip_prefix(BASE).unwrap_or(path)
    }

    /// Method and route with `{}` for each id, the name under which exchanges are counted and listed.
    pub fn operation(&self) -> String {
        let segments: Vec<&str> = self
            .route()
            .split('/')
            .map(|segment| if ids::is_uuid(segment) { "{}" } else { segment })
            .collect();
        format!("{} {}", self.method, segments.join("/"))
    }

    pub fn is_poll(&self) -> bool {
        self.method == "GET" && self.route().ends_with("/instructions")
    }

    /// The body as it went over the wire.
    pub fn text(&self) -> Option<String> {
        match &self.body {
            Value::Null => {
                let sent = self
                    .headers
                    .get("Content-Length")
                    .is_some_and(|length| length != "0");
                sent.then(|| "null".to_owned())
            }
            Value::String(text) if !STRING_BODIES.iter().any(|end| self.route().ends_with(end)) => {
                Some(text.clone())
            }
            json => Some(json.to_string()),
        }
    }

    /// Whether the id appears anywhere in the path or the body.
    pub fn mentions(&self, id: &str) -> bool {
        self.path.contains(id) || self.body.to_string().contains(id)
    }
}

/// Calls `see` for each infra-env, cluster and host in a body, also for those inside others.
pub fn objects<'a>(body: &'a Value, see: &mut impl FnMut(&'a serde_json::Map<String, Value>)) {
    match body {
        Value::Object(map) => {
            if map.get("id").is_some_and(Value::is_string) && map.contains_key("href") {
                see(map);
            }
            map.values().for_each(|value| objects(value, see));
        }
        Value::Array(elements) => elements.iter().for_each(|element| objects(element, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A string member, or "" when it is absent or something else.
pub fn word<'a>(map: &'a serde_json::Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}
