//! Replays one recording: seed, send, compare, judge by the list of intended differences.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::client::{Client, Reply};
use super::headers;
use super::ids::IdMap;
use super::intended::Intended;
use super::recording::{BASE, Exchange, Recording, Request};
use super::report::{Difference, FileReport, Finding, What};
use super::seed;
use super::shape::Comparer;
use super::states::Timeline;
use super::steps;
use crate::wait;

/// How much of a recording is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// Up to the first request that starts an installation; its operations are left out while the hub answers 501.
    UntilInstall,
    /// To the end, but without the operations of an installation while the hub answers 501 to them.
    WhatIsOffered,
}

impl Extent {
    pub fn of_file(name: &str) -> Self {
        if name.starts_with("flow_error_paths") {
            Extent::WhatIsOffered
        } else if name.starts_with("flow_") {
            Extent::UntilInstall
        } else {
            Extent::Whole
        }
    }
}

/// Longer than the hub takes to look at a few clusters on a busy machine.
const LOOKS_WITHIN: Duration = Duration::from_secs(10);
const LOOKS_WAITING: &str = "muster_cluster_looks_waiting ";

/// The part of a route that tells that an operation belongs to installing.
const INSTALLING: &[&str] = &[
    "/actions/install",
    "/actions/cancel",
    "/actions/reset",
    "/actions/complete-installation",
    "/actions/allow-add-",
    "/progress",
    "/logs",
    "/install-config",
    "/manifests",
    "/credentials",
    "/clusters/{}/downloads/",
    "/downloads/ignition",
    "/hosts/{}/ignition",
    "/monitored-operators",
    "/uploads/ingress-cert",
    "/preflight-requirements",
];

pub fn replay(recording: &Recording, client: &Client, intended: &Intended, extent: Extent) -> FileReport {
    let mut replay = Replay {
        recording,
        client,
        intended,
        timeline: Timeline::of(recording),
        ids: IdMap::default(),
        report: FileReport {
            name: recording.name.clone(),
            ..FileReport::default()
        },
    };
    if let Err(error) = seed::sow(recording, client, &mut replay.ids) {
        let difference = Difference::new(What::Seed, "$", "a state to start from", &format!("{error:#}"));
        let operation = "SEED".to_owned();
        replay.report.findings.push(Finding {
            index: 0,
            operation,
            difference,
            intended: None,
        });
        return replay.report;
    }
    for (index, exchange) in recording.exchanges.iter().enumerate() {
        if extent == Extent::UntilInstall && exchange.starts_installation()
            || !replay.step(index, exchange, extent)
        {
            replay.report.after_install = recording.exchanges.len() - index;
            break;
        }
    }
    replay.report
}

struct Replay<'a> {
    recording: &'a Recording,
    client: &'a Client,
    intended: &'a Intended,
    timeline: Timeline<'a>,
    ids: IdMap,
    report: FileReport,
}

impl Replay<'_> {
    /// One exchange; false when the rest of the recording makes no sense any more.
    fn step(&mut self, index: usize, exchange: &Exchange, extent: Extent) -> bool {
        let request = &exchange.request;
        if let Some(entry) = self.intended.withholds(&self.recording.name, index, request) {
            self.report.withheld.push((index, entry));
            return true;
        }
        self.ids.note_request(request);
        // History is compared when it is complete, or which events there are would depend on the machine.
        if self.waited_before(index) || request.route() == "/events" {
            self.wait_for_looks();
        }
        let reply = self.send(request);
        let operation = request.operation();
        if extent != Extent::Whole && reply.status == 501 && installs(&operation) {
            if exchange.starts_installation() {
                return false;
            }
            *self.report.skipped.entry(operation).or_default() += 1;
            return true;
        }
        self.report.compared += 1;
        self.ids.learn(&exchange.response.body, &reply.body());
        let findings = self.settled(index, exchange, reply);
        self.report.findings.extend(findings);
        true
    }

    /// The recording let time pass here, for a tick to come.
    fn waited_before(&self, index: usize) -> bool {
        let second = |at: usize| self.recording.exchanges[at].response.headers.get("Date");
        index > 0 && second(index - 1) != second(index)
    }

    /// The findings on an answer. What is only read is asked for once more if it does not fit: clusters are looked
    /// at in the background, a moment after the change.
    fn settled(&self, index: usize, exchange: &Exchange, reply: Reply) -> Vec<Finding> {
        let findings = self.findings(index, exchange, &reply);
        let fits = findings.iter().all(|finding| finding.intended.is_some());
        if fits || exchange.request.method != "GET" {
            return findings;
        }
        self.wait_for_looks();
        let mut again = exchange.request.clone();
        again.headers.insert("User-Agent".to_owned(), "again".to_owned());
        self.findings(index, exchange, &self.send(&again))
    }

    /// Until the hub has looked at every cluster that changed. One that does not tell is taken to be done.
    fn wait_for_looks(&self) {
        let none_waits = || {
            let page = self.client.send("GET", "/metrics", &BTreeMap::new(), None).text;
            let waiting = page.lines().find_map(|line| line.strip_prefix(LOOKS_WAITING));
            Ok(waiting.is_none_or(|count| count.trim() == "0").then_some(()))
        };
        // In vain is told by the differences that follow.
        let _ = wait::until("the hub's looks at clusters", LOOKS_WITHIN, none_waits);
    }

    fn findings(&self, index: usize, exchange: &Exchange, reply: &Reply) -> Vec<Finding> {
        let request = &exchange.request;
        let judge = |difference: Difference| Finding {
            index,
            operation: request.operation(),
            intended: self
                .intended
                .allows(&self.recording.name, index, request, &difference),
            difference,
        };
        self.compare(index, exchange, reply)
            .into_iter()
            .map(judge)
            .collect()
    }

    fn send(&self, request: &Request) -> Reply {
        let body = request.text().map(|text| self.ids.to_ours(&text));
        let path = at_present(&self.ids.to_ours(&request.path));
        let mut reply = self
            .client
            .send(&request.method, &path, &request.headers, body.as_deref());
        reply.text = self.ids.to_recorded(&reply.text);
        reply
    }

    fn compare(&self, index: usize, exchange: &Exchange, reply: &Reply) -> Vec<Difference> {
        // A recorded crash is answered as what it is: input that cannot be right.
        let expected = if exchange.response.status == 0 {
            400
        } else {
            exchange.response.status
        };
        let ours = reply.body();
        if reply.status != expected {
            let mut found = vec![Difference::new(
                What::Status,
                "$",
                &expected.to_string(),
                &reply.status.to_string(),
            )];
            found.extend(misshapen_error(reply.status, &ours));
            return found;
        }
        if exchange.response.status == 0 {
            return misshapen_error(reply.status, &ours).into_iter().collect();
        }
        let mut found = headers::compare(&exchange.response.headers, &reply.headers);
        let comparer = Comparer {
            timeline: &self.timeline,
            index,
        };
        let recorded = &exchange.response.body;
        if exchange.request.is_poll() && reply.status == 200 {
            found.extend(self.compare_poll(&comparer, &exchange.request, recorded, &ours));
        } else {
            let name = exchange.request.route().trim_start_matches('/');
            found.extend(comparer.bodies(name, recorded, &ours));
        }
        found
    }

    /// Steps follow the host's state, and ours may be a state further than the recorded one.
    fn compare_poll(
        &self,
        comparer: &Comparer<'_>,
        request: &Request,
        recorded: &Value,
        ours: &Value,
    ) -> Vec<Difference> {
        let action = |answer: &Value| answer.get("post_step_action").cloned();
        let (their_steps, our_steps) = (steps::types(recorded), steps::types(ours));
        if their_steps == our_steps && action(recorded) == action(ours) {
            return comparer.bodies("", recorded, ours);
        }
        let host = request.route().trim_end_matches("/instructions");
        let view = self.client.send(
            "GET",
            &self.ids.to_ours(&format!("{BASE}{host}")),
            &Default::default(),
            None,
        );
        let status = view
            .body()
            .get("status")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if !steps::fit(&status, ours) {
            let told = |steps: &[String], answer: &Value| {
                format!("{} ({})", steps.join(" "), action(answer).unwrap_or_default())
            };
            let ours = format!("{} in {status}", told(&our_steps, ours));
            return vec![Difference::new(
                What::Steps,
                "$.instructions",
                &told(&their_steps, recorded),
                &ours,
            )];
        }
        let common = |answer: &Value| {
            let steps = answer
                .get("instructions")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let kept = |step: &Value| {
                step["step_type"].as_str().is_some_and(|kind| {
                    their_steps.iter().any(|s| s == kind) && our_steps.iter().any(|s| s == kind)
                })
            };
            json!({ "instructions": steps.into_iter().filter(kept).collect::<Vec<_>>() })
        };
        comparer.bodies("", &common(recorded), &common(ours))
    }
}

/// Recorded hosts told the right time; it must be right now, too.
fn at_present(path: &str) -> String {
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

fn installs(operation: &str) -> bool {
    INSTALLING.iter().any(|part| operation.contains(part))
}

/// Whatever the status, an error has one of the two bodies that clients can read.
fn misshapen_error(status: u16, body: &Value) -> Option<Difference> {
    let has = |keys: &[&str]| keys.iter().all(|key| body.get(*key).is_some());
    let readable = has(&["kind", "id", "href", "code", "reason"]) || has(&["code", "message"]);
    (status >= 400 && !readable).then(|| {
        Difference::new(
            What::Body,
            "$",
            "an error's body",
            &body.to_string().chars().take(80).collect::<String>(),
        )
    })
}
