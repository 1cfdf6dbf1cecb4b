//! What recorded clients have to say otherwise to another hub: the time, the steps they answer, what was cut out.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::mask::inside;
use super::recording::Request;

/// Stands where a recording was kept without a certificate.
const DROPPED: &str = "<pem dropped>";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----";
const IMAGES: &str = "container-image-availability";

/// The steps each agent was given, the newest of each type.
#[derive(Debug, Default)]
pub struct Agents {
    given: BTreeMap<String, BTreeMap<String, Value>>,
}

impl Agents {
    /// Remembers what a poll was answered.
    pub fn note(&mut self, poll: &Request, answer: &Value) {
        let given = self.given.entry(host(poll).to_owned()).or_default();
        for step in answer
            .get("instructions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let Some(kind) = step.get("step_type").and_then(Value::as_str) {
                given.insert(kind.to_owned(), step.clone());
            }
        }
    }

    /// The newest step of a type that this agent was given.
    pub fn given(&self, request: &Request, kind: &str) -> Option<&Value> {
        self.given.get(host(request))?.get(kind)
    }

    /// A body as it has to be sent, in the recording's ids.
    pub fn body(&self, request: &Request) -> Option<String> {
        let text = request.text()?;
        let is_reply = request.method == "POST" && request.route().ends_with("/instructions");
        if is_reply && let Some(reply) = self.reply(request) {
            return Some(reply.to_string());
        }
        Some(text.replace(DROPPED, &json!(CERTIFICATE).to_string().replace('"', "")))
    }

    /// A reply belongs to the step of our hub, and tells of the images our hub asked for.
    fn reply(&self, request: &Request) -> Option<Value> {
        let kind = request.body.get("step_type")?.as_str()?;
        let step = self.given(request, kind)?;
        let mut reply = request.body.clone();
        if let (Some(id), Some(_)) = (step.get("step_id"), reply.get("step_id")) {
            reply["step_id"] = id.clone();
        }
        if kind == IMAGES
            && let Some(output) = images(step, reply.get("output")?.as_str()?)
        {
            reply["output"] = json!(output);
        }
        Some(reply)
    }
}

/// The recorded results in their order, under the names of the images that were asked for.
fn images(step: &Value, output: &str) -> Option<String> {
    let asked = inside(step.pointer("/args/0")?.as_str()?)?;
    let mut told = inside(output)?;
    let results = told.get("images")?.as_array()?.clone();
    let names = asked.get("images")?.as_array()?.iter();
    let renamed = |(at, name): (usize, &Value)| {
        let mut result = results
            .get(at % results.len().max(1))
            .cloned()
            .unwrap_or_default();
        result["name"] = name.clone();
        result
    };
    told["images"] = names.enumerate().map(renamed).collect();
    Some(told.to_string())
}

fn host(request: &Request) -> &str {
    request.route().trim_end_matches("/instructions")
}

/// Recorded hosts told the right time; it must be right now, too.
pub fn at_present(path: &str) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    match path.split_once("timestamp=") {
        Some((head, rest)) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{head}timestamp={now}{rest}")
        }
        None => path.to_owned(),
    }
}
