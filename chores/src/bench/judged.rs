//! When hosts were judged under their cluster: the feed of changes, followed as anybody could.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;

use super::fleet::Fleet;
use super::load::Work;
use crate::{http, wait};

/// A host whose checks have run under a cluster is in one of these.
const JUDGED: [&str; 3] = ["known", "insufficient", "pending-for-input"];

/// A hub that has not judged a host after so long never will.
const LIMIT: Duration = Duration::from_secs(120);

/// What the feed has told since it was followed: for each host, when it was judged.
pub struct Feed(Arc<Mutex<HashMap<String, Vec<Instant>>>>);

impl Feed {
    /// From now on.
    pub fn follow(url: &str) -> Result<Self> {
        let status = http::get(&format!("{url}/api/muster/v1/status"))?;
        let newest = status["newest_change"].as_i64().context("no place in the feed")?;
        let from = format!("{url}/api/muster/v1/changes?after={newest}");
        let mut lines = http::lines(&from, "text/event-stream")?.lines();
        let judged: Arc<Mutex<HashMap<String, Vec<Instant>>>> = Arc::default();
        let shared = judged.clone();
        // Ends with the connection, which ends with the hub.
        thread::spawn(move || {
            while let Some(Ok(line)) = lines.next() {
                if let Some(host) = judged_in(&line) {
                    let mut judged = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    judged.entry(host).or_default().push(Instant::now());
                }
            }
        });
        Ok(Self(judged))
    }

    /// How long after its bind each host was judged, once all are.
    pub fn after(&self, binds: &Binds<'_>) -> Result<Vec<Duration>> {
        wait::until("all hosts to be judged", LIMIT, || {
            let judged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let answered = binds.answered.borrow();
            let first = |host: &u32, bound: &Instant| {
                let times = judged.get(&binds.fleet.ids[*host as usize])?;
                let first = times.iter().find(|time| *time >= bound)?;
                Some(first.duration_since(*bound))
            };
            Ok(answered.iter().map(|(host, bound)| first(host, bound)).collect())
        })
    }
}

/// The host that a line of the stream says is judged.
fn judged_in(line: &str) -> Option<String> {
    let change: Value = serde_json::from_str(line.strip_prefix("data:")?).ok()?;
    let is_judged = change["kind"] == "host" && JUDGED.iter().any(|status| change["status"] == *status);
    is_judged.then(|| change["id"].as_str().map(str::to_owned))?
}

/// Hosts that are bound, and whose agents do at once what they are told: end, register, ask, report.
pub struct Binds<'a> {
    pub fleet: &'a Fleet,
    pub clusters: &'a [String],
    /// Hosts of each cluster.
    pub size: u32,
    /// When the bind of each host was answered.
    pub answered: RefCell<HashMap<u32, Instant>>,
}

impl Work for Binds<'_> {
    fn request(&self, item: u64, step: usize, out: &mut Vec<u8>) -> bool {
        let host = item as u32;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        match step {
            0 => self
                .fleet
                .bind(host, &self.clusters[(host / self.size) as usize], out),
            1 => {
                self.answered.borrow_mut().insert(host, Instant::now());
                self.fleet.ask(host, now, out);
            }
            2 => self.fleet.register(host, out),
            3 => self.fleet.ask(host, now, out),
            4 => self.fleet.reply(host, out),
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_with_findings_under_a_cluster_is_judged() {
        let line = |kind: &str, status: &str| {
            format!(r#"data: {{"seq":1,"kind":"{kind}","id":"h","op":"put","status":"{status}"}}"#)
        };
        for status in JUDGED {
            assert_eq!(judged_in(&line("host", status)).as_deref(), Some("h"));
        }
        for status in ["binding", "discovering", "known-unbound", "insufficient-unbound"] {
            assert_eq!(judged_in(&line("host", status)), None);
        }
        assert_eq!(judged_in(&line("cluster", "pending-for-input")), None);
        for other in ["", ": keep-alive", "id: 7", "event: change", "data: no JSON"] {
            assert_eq!(judged_in(other), None);
        }
    }
}
