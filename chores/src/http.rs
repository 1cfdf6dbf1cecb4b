//! The few HTTP calls this tool makes itself, always to servers on this machine.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use ureq::typestate::WithBody;
use ureq::{Agent, RequestBuilder};

/// Long enough for a busy machine, short enough that a hanging server is noticed.
const LIMIT: Duration = Duration::from_secs(10);

fn agent() -> Agent {
    Agent::config_builder()
        .timeout_global(Some(LIMIT))
        .proxy(None)
        .build()
        .into()
}

/// Whether the URL answers with a success.
pub fn answers(url: &str) -> bool {
    agent().get(url).call().is_ok()
}

/// An answer that does not end, to be read line by line.
pub fn lines(url: &str, accept: &str) -> Result<impl BufRead + Send + use<>> {
    let agent: Agent = Agent::config_builder().proxy(None).build().into();
    let reply = agent.get(url).header("Accept", accept).call();
    let reply = reply.with_context(|| format!("GET {url}"))?;
    Ok(BufReader::new(reply.into_body().into_reader()))
}

pub fn text(url: &str) -> Result<String> {
    let mut reply = agent().get(url).call().with_context(|| format!("GET {url}"))?;
    reply
        .body_mut()
        .read_to_string()
        .with_context(|| format!("reading {url}"))
}

pub fn get(url: &str) -> Result<Value> {
    let text = text(url)?;
    serde_json::from_str(&text).with_context(|| format!("{url} did not answer with JSON"))
}

/// The same with a header of ours.
pub fn get_with(url: &str, (name, value): (&str, &str)) -> Result<Value> {
    let reply = agent().get(url).header(name, value).call();
    let mut reply = reply.with_context(|| format!("GET {url}"))?;
    let text = reply.body_mut().read_to_string();
    let text = text.with_context(|| format!("reading {url}"))?;
    serde_json::from_str(&text).with_context(|| format!("{url} did not answer with JSON"))
}

pub fn post(url: &str, body: &Value) -> Result<Value> {
    send("POST", agent().post(url), url, body)
}

pub fn patch(url: &str, body: &Value) -> Result<Value> {
    send("PATCH", agent().patch(url), url, body)
}

fn send(verb: &str, request: RequestBuilder<WithBody>, url: &str, body: &Value) -> Result<Value> {
    let request = request.header("Content-Type", "application/json");
    let mut reply = request
        .send(body.to_string())
        .with_context(|| format!("{verb} {url}"))?;
    let text = reply
        .body_mut()
        .read_to_string()
        .with_context(|| format!("reading {url}"))?;
    // 204 has no body.
    if text.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(&text).with_context(|| format!("{url} did not answer with JSON"))
}
