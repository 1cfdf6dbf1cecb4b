//! Replays one recording: seed, send, compare, judge by the list of intended differences.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::adapt::{Agents, at_present};
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

/// Longer than the hub takes to look at a few clusters and to make their files on a busy machine.
const REST_WITHIN: Duration = Duration::from_secs(20);
/// What the hub's metrics say while it has something to do.
const WAITING: &[&str] = &["muster_cluster_files_waiting ", "muster_clusters_to_reconcile "];
/// A limit that passes a little later than recorded is still the same limit.
const SLACK: Duration = Duration::from_secs(8);

pub fn replay(recording: &Recording, client: &Client, intended: &Intended) -> FileReport {
    let mut replay = Replay {
        recording,
        client,
        intended,
        timeline: Timeline::of(recording),
        ids: IdMap::default(),
        agents: Agents::default(),
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
        replay.step(index, exchange);
    }
    replay.report
}

struct Replay<'a> {
    recording: &'a Recording,
    client: &'a Client,
    intended: &'a Intended,
    timeline: Timeline<'a>,
    ids: IdMap,
    agents: Agents,
    report: FileReport,
}

impl Replay<'_> {
    fn step(&mut self, index: usize, exchange: &Exchange) {
        let request = &exchange.request;
        if let Some(entry) = self.intended.withholds(&self.recording.name, index, request) {
            self.report.withheld.push((index, entry));
            return;
        }
        self.ids.note_request(request);
        if self.depends_on_ticks(index, request) {
            self.wait_for_rest();
        }
        let reply = self.send(request);
        self.report.compared += 1;
        self.ids.learn(&exchange.response.body, &reply.body());
        let findings = self.settled(index, exchange, reply);
        self.report.findings.extend(findings);
    }

    /// The recorded service moves by a tick, ours at once but in the background: before such an exchange ours gets
    /// the time to arrive where the recorded one is, or further on the same way.
    fn depends_on_ticks(&self, index: usize, request: &Request) -> bool {
        let acts = request.method != "GET" && !request.route().ends_with("/instructions");
        // History is compared when it is complete, or which events there are would depend on the machine.
        acts || !self.pause_before(index).is_zero() || request.is_poll() || request.route() == "/events"
    }

    /// How long the recording let time pass here, for a tick to come.
    fn pause_before(&self, index: usize) -> Duration {
        let second = |at: usize| {
            let date = self.recording.exchanges[at].response.headers.get("Date")?;
            let clock = date.split(' ').find(|word| word.contains(':'))?;
            let parts = clock.split(':').map(|part| part.parse::<u64>().ok());
            parts.reduce(|sum, part| Some(sum? * 60 + part?)).flatten()
        };
        match (index.checked_sub(1).and_then(second), second(index)) {
            (Some(before), Some(now)) => Duration::from_secs(now.saturating_sub(before)),
            (_, _) => Duration::ZERO,
        }
    }

    /// The findings on an answer. What is only read is asked for again if it does not fit: once, for clusters are
    /// looked at in the background, or until a limit passes for which the recording waited, too.
    fn settled(&mut self, index: usize, exchange: &Exchange, reply: Reply) -> Vec<Finding> {
        let mut findings = self.findings(index, exchange, &reply);
        if exchange.request.is_poll() {
            self.agents.note(&exchange.request, &reply.body());
        }
        if exchange.request.method != "GET" || exchange.request.is_poll() || fit(&findings) {
            return findings;
        }
        let mut again = exchange.request.clone();
        again.headers.insert("User-Agent".to_owned(), "again".to_owned());
        self.wait_for_rest();
        findings = self.findings(index, exchange, &self.send(&again));
        let pause = self.pause_before(index);
        let of_state = |finding: &Finding| finding.difference.what == What::State;
        if fit(&findings) || pause.is_zero() || !findings.iter().any(of_state) {
            return findings;
        }
        // In vain is told by the differences.
        let _ = wait::until("a limit to pass", pause + SLACK, || {
            findings = self.findings(index, exchange, &self.send(&again));
            Ok(fit(&findings).then_some(()))
        });
        findings
    }

    /// Until the hub has looked at every cluster that changed and made all files. One that does not tell is taken
    /// to be done.
    fn wait_for_rest(&self) {
        let none_waits = || {
            let page = self.client.send("GET", "/metrics", &BTreeMap::new(), None).text;
            let is_none = |name: &&str| {
                let count = page.lines().find_map(|line| line.strip_prefix(*name));
                count.is_none_or(|count| count.trim() == "0")
            };
            Ok(WAITING.iter().all(is_none).then_some(()))
        };
        // In vain is told by the differences that follow.
        let _ = wait::until("the hub to rest", REST_WITHIN, none_waits);
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
        let body = self.agents.body(request).map(|text| self.ids.to_ours(&text));
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
        let ours = body_of(&exchange.request, reply);
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
        // A long step is handed out once: it is compared when the recording shows it, early as it came.
        let mut ours = ours.clone();
        let given = their_steps.iter().filter(|kind| !our_steps.contains(kind));
        let given: Vec<Value> = given
            .filter_map(|kind| self.agents.given(request, kind).cloned())
            .collect();
        match ours.get_mut("instructions").and_then(Value::as_array_mut) {
            Some(steps) => steps.extend(given),
            None => ours["instructions"] = Value::from(given),
        }
        let our_steps = steps::types(&ours);
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
        let mut found = comparer.bodies("", &common(recorded), &common(&ours));
        // What is worth doing once must have been asked for once.
        let never = their_steps
            .iter()
            .filter(|kind| steps::ONCE.contains(&kind.as_str()) && !our_steps.contains(kind));
        found.extend(never.map(|kind| {
            Difference::new(
                What::Missing,
                &format!("$.instructions[{kind}]"),
                "present",
                "absent",
            )
        }));
        found
    }
}

/// The recorded install config is JSON, which is YAML, too; ours is written as people do.
fn body_of(request: &Request, reply: &Reply) -> Value {
    let is_yaml = request.path.contains("install-config.yaml") && reply.status == 200;
    let parsed = is_yaml
        .then(|| serde_norway::from_str(&reply.text).ok())
        .flatten();
    parsed.unwrap_or_else(|| reply.body())
}

fn fit(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.intended.is_some())
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
