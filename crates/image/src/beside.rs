//! What a separate image service reports of its clients: for the hub whose images it serves.

use crate::depot::Status;
use crate::serve::progress::Progress;
use serde::de::DeserializeOwned;
use std::time::Duration;
use ureq::Agent;

/// People wait for the answer, and without it they still see the rest.
const PATIENCE: Duration = Duration::from_secs(3);
/// Twenty thousand readers at some hundred bytes.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct Report {
    pub progress: Vec<Progress>,
    pub base_images: Vec<Status>,
}

/// Waits for the network; nothing when there is no such service at this address.
pub fn fetch(url: &str) -> Report {
    let agent = Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .build()
        .new_agent();
    let url = url.trim_end_matches('/');
    Report {
        progress: get(&agent, &format!("{url}/progress")),
        base_images: get(&agent, &format!("{url}/base-images")),
    }
}

fn get<T: DeserializeOwned>(agent: &Agent, url: &str) -> Vec<T> {
    let asked = agent.get(url).call().map_err(|error| error.to_string());
    let read = asked.and_then(|mut reply| {
        let body = reply.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        let body = body.map_err(|error| error.to_string())?;
        serde_json::from_slice(&body).map_err(|error| error.to_string())
    });
    read.unwrap_or_else(|error| {
        tracing::warn!(error, url, "the image service does not report its clients");
        Vec::new()
    })
}
