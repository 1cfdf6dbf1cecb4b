//! The agent of a simulated host: it registers, asks for steps, and knows when to give up.

use super::steps::Step;
use super::{Phase, SimHost, to_json};
use crate::request::{Call, Outcome, Request};
use http::Method;
use muster_contract::v2::BASE;
use muster_contract::v2::host::{NextStepRunnerCommand, RegisterHost};
use muster_contract::v2::step::{NextStepRunnerArgs, PostStepAction};
use serde::Deserialize;
use std::borrow::Cow;

/// Between registrations that failed in a way that may pass.
const REGISTER_RETRY_MS: u64 = 60_000;
/// What an agent does when it is not told what to run.
pub(super) const NOTHING_TO_RUN_MS: u64 = 3_600_000;
/// Inside one call: so many repetitions, with such a pause.
pub(super) const CALL_RETRIES: u8 = 3;
const CALL_RETRY_MS: (u64, u64) = (2_000, 10_000);
/// Between polls that fail: from half a second, half more each time, to a minute; for a quarter of an hour.
pub(super) const BACKOFF_MS: u32 = 500;
const BACKOFF_MOST_MS: u32 = 60_000;
pub(super) const GIVE_UP_MS: u64 = 900_000;

/// Of the answer to a registration, the part agents read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Registered<'a> {
    next_step_runner_command: Option<NextStepRunnerCommand>,
    #[serde(borrow)]
    cluster_id: Option<Cow<'a, str>>,
}

/// Like `StepsView`, but with types of steps this agent does not know.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Steps<'a> {
    next_instruction_seconds: i64,
    post_step_action: PostStepAction,
    #[serde(borrow)]
    instructions: Option<Vec<Step<'a>>>,
}

impl SimHost {
    /// Whether to repeat the call that came to this outcome, and when.
    pub(super) fn repeat_at(&mut self, now_ms: u64, outcome: &Outcome) -> Option<u64> {
        if outcome.transient() && self.attempt < CALL_RETRIES {
            self.attempt += 1;
            return Some(self.call_retry_ms(now_ms));
        }
        self.attempt = 0;
        None
    }

    pub(super) fn call_retry_ms(&mut self, now_ms: u64) -> u64 {
        let pause = self.draws.between(CALL_RETRY_MS.0, CALL_RETRY_MS.1);
        now_ms + self.setup.retry_ms(pause)
    }

    pub(super) fn registered(&mut self, now_ms: u64, outcome: &Outcome) {
        if let Some(at) = self.repeat_at(now_ms, outcome) {
            self.phase = Phase::RegisterAt(at);
            return;
        }
        match outcome {
            Outcome::Response {
                status: 200..=299,
                body,
            } => self.start_runner(now_ms, body),
            Outcome::Response {
                status: 401 | 403 | 404 | 409,
                ..
            } => self.block(now_ms),
            Outcome::Response { .. } | Outcome::Lost => {
                self.phase = Phase::RegisterAt(now_ms + self.setup.retry_ms(REGISTER_RETRY_MS));
            }
        }
    }

    fn start_runner(&mut self, now_ms: u64, body: &[u8]) {
        let answer: Registered<'_> = serde_json::from_slice(body).unwrap_or_default();
        let Some(command) = answer.next_step_runner_command else {
            self.phase = Phase::RegisterAt(now_ms + NOTHING_TO_RUN_MS);
            return;
        };
        let args = command
            .args
            .first()
            .and_then(|arg| serde_json::from_str::<NextStepRunnerArgs>(arg).ok());
        if let Some(args) = args {
            self.runner_infra_env = args.infra_env_id;
            self.runner_host = args.host_id;
            self.become_version(&args.agent_version);
        }
        self.is_bound = answer.cluster_id.is_some_and(|id| !id.is_empty());
        self.phase = Phase::PollAt(now_ms);
    }

    /// The text is shared where it can be: most hosts run the version of the fleet.
    pub(super) fn become_version(&mut self, version: &str) {
        if version == &*self.setup.agent_version {
            self.version = self.setup.agent_version.clone();
        } else if !version.is_empty() && version != &*self.version {
            self.version = version.into();
        }
    }

    pub(super) fn polled(&mut self, now_ms: u64, outcome: &Outcome) {
        if let Some(at) = self.repeat_at(now_ms, outcome) {
            self.phase = Phase::PollAt(at);
            return;
        }
        match outcome {
            Outcome::Response {
                status: 200..=299,
                body,
            } => match serde_json::from_slice(body) {
                Ok(steps) => self.follow(now_ms, steps),
                Err(_) => self.poll_failed(now_ms),
            },
            Outcome::Response { status: 404, .. } => self.block(now_ms),
            Outcome::Response { .. } | Outcome::Lost => self.poll_failed(now_ms),
        }
    }

    fn poll_failed(&mut self, now_ms: u64) {
        self.sent.flush();
        if self.failing_since_ms == 0 {
            self.failing_since_ms = now_ms.max(1);
        }
        if now_ms - self.failing_since_ms.min(now_ms) >= GIVE_UP_MS {
            self.end_runner(now_ms);
            return;
        }
        self.phase = Phase::PollAt(now_ms + u64::from(self.backoff_ms));
        self.backoff_ms = (self.backoff_ms + self.backoff_ms / 2).min(BACKOFF_MOST_MS);
    }

    fn follow(&mut self, now_ms: u64, steps: Steps<'_>) {
        self.failing_since_ms = 0;
        self.backoff_ms = BACKOFF_MS;
        for step in steps.instructions.unwrap_or_default() {
            self.start_step(now_ms, step);
        }
        let at = now_ms.saturating_add(self.setup.pause_ms(steps.next_instruction_seconds));
        self.phase = match steps.post_step_action {
            PostStepAction::Exit => Phase::ExitAt(at),
            PostStepAction::Continue => Phase::PollAt(at),
        };
    }

    pub(super) fn agent_request(&mut self, now_ms: u64) -> Option<Request> {
        match self.phase {
            Phase::RegisterAt(at) if at <= now_ms => {
                self.phase = Phase::Registering;
                Some(self.register())
            }
            Phase::PollAt(at) if at <= now_ms => {
                self.phase = Phase::Polling;
                Some(self.ask_for_steps(now_ms))
            }
            Phase::RegisterAt(_)
            | Phase::PollAt(_)
            | Phase::Registering
            | Phase::Polling
            | Phase::ExitAt(_)
            | Phase::BlockedUntil(_)
            | Phase::OnDisk(_)
            | Phase::WatchingDisk
            | Phase::OffUntil(_) => None,
        }
    }

    fn register(&mut self) -> Request {
        let body = RegisterHost {
            host_id: self.id(),
            discovery_agent_version: Some(self.version.to_string()),
        };
        let path = format!("{BASE}/infra-envs/{}/hosts", self.setup.infra_env_id);
        let request = self.request(Method::POST, path, to_json(&body), Call::Register);
        Request {
            agent_version: Some(self.version.clone()),
            ..request
        }
    }

    fn ask_for_steps(&mut self, now_ms: u64) -> Request {
        let skew = self.faults.as_ref().map_or(0, |faults| faults.clock_skew_ms);
        let clock_s = now_ms.saturating_add_signed(skew) / 1000;
        let path = format!("{}/instructions?timestamp={clock_s}", self.host_path());
        let request = self.request(Method::GET, path, Vec::new(), Call::Poll);
        Request {
            agent_version: Some(self.version.clone()),
            ..request
        }
    }
}
