//! One simulated machine with its agent: a state machine that knows the time only from its caller.

use crate::fault::{self, HostFaults};
use crate::install::{Install, Progress};
use crate::job::{Job, ReplyCache};
use crate::machine::Machine;
use crate::request::{Call, Next, Outcome, Request, Tag};
use crate::seed::{Draws, mix};
use crate::setup::Setup;
use http::Method;
use muster_contract::v2::BASE;
use muster_contract::v2::host::{NextStepRunnerCommand, RegisterHost};
use muster_contract::v2::install::HostStage;
use muster_contract::v2::step::{NextStepRunnerArgs, PostStepAction};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use steps::Step;
use uuid::Uuid;

mod steps;

/// Between registrations that failed in a way that may pass.
const REGISTER_RETRY_MS: u64 = 60_000;
/// What an agent does when it is not told what to run.
const NOTHING_TO_RUN_MS: u64 = 3_600_000;
/// Inside one call: so many repetitions, with such a pause.
const CALL_RETRIES: u8 = 3;
const CALL_RETRY_MS: (u64, u64) = (2_000, 10_000);
/// Between polls that fail: from half a second, half more each time, to a minute; for a quarter of an hour.
const BACKOFF_MS: u32 = 500;
const BACKOFF_MOST_MS: u32 = 60_000;
const GIVE_UP_MS: u64 = 900_000;
/// From power-on to the first registration.
const BOOT_MS: u64 = 120_000;
/// A machine and its agent. About 200 bytes; the inventory is made when asked for.
#[derive(Debug)]
pub struct SimHost {
    setup: Arc<Setup>,
    version: Arc<str>,
    /// What the hub told the runner to be, usually what the agent said.
    runner_infra_env: Uuid,
    runner_host: Uuid,
    jobs: Vec<Job>,
    sent: ReplyCache,
    install: Option<Box<Install>>,
    faults: Option<Box<HostFaults>>,
    phase: Phase,
    started_ms: u64,
    /// Since when polls fail; 0 when they do not.
    failing_since_ms: u64,
    draws: Draws,
    index: u32,
    board: u32,
    backoff_ms: u32,
    run: u16,
    boot: u16,
    /// How often the call in progress was repeated.
    attempt: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    RegisterAt(u64),
    Registering,
    PollAt(u64),
    Polling,
    /// The runner was told to end and still sleeps.
    ExitAt(u64),
    /// The agent gave up; only a reboot helps.
    BlockedUntil(u64),
    /// The installed system runs, and no agent.
    Installed,
}

/// What an onlooker sees of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Booting, or not registered yet.
    Registering,
    /// Asks the hub for steps.
    Running,
    /// The hub's answer made the agent give up.
    Blocked,
    /// Installed, and rebooted into its own system.
    Installed,
}

/// Of the answer to a registration, the part agents read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Registered {
    next_step_runner_command: Option<NextStepRunnerCommand>,
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
    /// The host with this index, which registers for the first time at `start_ms`. All times are milliseconds since
    /// 1970; only their differences matter, but the hub is told the host's clock.
    pub fn new(setup: Arc<Setup>, index: u32, start_ms: u64) -> Self {
        let board = fault::board(&setup, index);
        let id = Machine::new(&setup, index, board).id();
        Self {
            version: setup.agent_version.clone(),
            runner_infra_env: setup.infra_env_id,
            runner_host: id,
            jobs: Vec::new(),
            sent: ReplyCache::default(),
            install: None,
            faults: HostFaults::of(&setup, index),
            phase: Phase::RegisterAt(start_ms),
            started_ms: start_ms,
            failing_since_ms: 0,
            draws: Draws::new(mix(&[setup.seed, u64::from(index), 6])),
            index,
            board,
            backoff_ms: BACKOFF_MS,
            run: 0,
            boot: 0,
            attempt: 0,
            setup,
        }
    }

    pub fn index(&self) -> u32 {
        self.index
    }

    pub fn machine(&self) -> Machine {
        Machine::new(&self.setup, self.index, self.board)
    }

    /// The id under which it registers.
    pub fn id(&self) -> Uuid {
        self.machine().id()
    }

    pub fn agent_version(&self) -> &str {
        &self.version
    }

    pub fn condition(&self) -> Condition {
        match self.phase {
            Phase::RegisterAt(_) | Phase::Registering => Condition::Registering,
            Phase::PollAt(_) | Phase::Polling | Phase::ExitAt(_) => Condition::Running,
            Phase::BlockedUntil(_) => Condition::Blocked,
            Phase::Installed => Condition::Installed,
        }
    }

    /// Power-cycles the machine; it boots the discovery image and registers again.
    pub fn reboot(&mut self, now_ms: u64) {
        self.boot = self.boot.wrapping_add(1);
        self.install = None;
        self.end_runner(now_ms + self.setup.work_ms(BOOT_MS));
    }

    /// What the host wants at this time.
    pub fn poll(&mut self, now_ms: u64) -> Next {
        if let Some(until) = self.silent_until(now_ms) {
            return wait(until);
        }
        self.pass_time(now_ms);
        let wanted = self.agent_request(now_ms).or_else(|| self.job_request(now_ms));
        match wanted.or_else(|| self.progress_request(now_ms)) {
            Some(request) => Next::Send(request),
            None => wait(self.wake_ms()),
        }
    }

    /// What became of a request.
    pub fn receive(&mut self, now_ms: u64, tag: Tag, outcome: Outcome) {
        let is_current = match &tag.call {
            // The installer runs beside the runner and outlives it.
            Call::Progress => tag.boot == self.boot,
            Call::Register | Call::Poll | Call::Reply(_) | Call::Logs => tag.run == self.run,
        };
        if !is_current {
            return;
        }
        match tag.call {
            Call::Register => self.registered(now_ms, &outcome),
            Call::Poll => self.polled(now_ms, &outcome),
            Call::Reply(job) => self.replied(now_ms, *job, &outcome),
            Call::Progress => self.progressed(now_ms, &outcome),
            Call::Logs => {}
        }
    }

    fn silent_until(&self, now_ms: u64) -> Option<u64> {
        let (from, until) = self.faults.as_ref()?.silent?;
        let until = self.started_ms.saturating_add(until);
        (now_ms >= self.started_ms + from && now_ms < until).then_some(until)
    }

    /// What happens by itself.
    fn pass_time(&mut self, now_ms: u64) {
        if self.reboot_due_ms() <= now_ms {
            if let Some(faults) = &mut self.faults {
                faults.reboot_after_ms = None;
            }
            self.reboot(now_ms);
        }
        match self.phase {
            Phase::ExitAt(at) if at <= now_ms => self.end_runner(now_ms),
            Phase::BlockedUntil(at) if at <= now_ms => self.reboot(now_ms),
            Phase::ExitAt(_)
            | Phase::BlockedUntil(_)
            | Phase::RegisterAt(_)
            | Phase::Registering
            | Phase::PollAt(_)
            | Phase::Polling
            | Phase::Installed => {}
        }
    }

    fn reboot_due_ms(&self) -> u64 {
        let after = self.faults.as_ref().and_then(|faults| faults.reboot_after_ms);
        after.map_or(u64::MAX, |ms| self.started_ms.saturating_add(ms))
    }

    fn wake_ms(&self) -> u64 {
        let phase = match self.phase {
            Phase::RegisterAt(at) | Phase::PollAt(at) | Phase::ExitAt(at) | Phase::BlockedUntil(at) => at,
            Phase::Registering | Phase::Polling | Phase::Installed => u64::MAX,
        };
        let job = self.jobs.iter().map(|job| job.due_ms).min().unwrap_or(u64::MAX);
        let report = self.install.as_ref().map_or(u64::MAX, |install| install.due_ms);
        phase.min(job).min(report).min(self.reboot_due_ms())
    }

    /// The runner ends, and with it all steps; the agent registers again at `at_ms`.
    fn end_runner(&mut self, at_ms: u64) {
        self.run = self.run.wrapping_add(1);
        self.jobs = Vec::new();
        self.sent.flush();
        self.failing_since_ms = 0;
        self.backoff_ms = BACKOFF_MS;
        self.attempt = 0;
        self.phase = Phase::RegisterAt(at_ms);
    }

    fn block(&mut self, now_ms: u64) {
        self.jobs = Vec::new();
        self.run = self.run.wrapping_add(1);
        let until = self
            .setup
            .revive_ms
            .map_or(u64::MAX, |ms| now_ms.saturating_add(ms));
        self.phase = Phase::BlockedUntil(until);
    }

    /// Whether to repeat the call that came to this outcome, and when.
    fn repeat_at(&mut self, now_ms: u64, outcome: &Outcome) -> Option<u64> {
        if outcome.transient() && self.attempt < CALL_RETRIES {
            self.attempt += 1;
            return Some(self.call_retry_ms(now_ms));
        }
        self.attempt = 0;
        None
    }

    fn call_retry_ms(&mut self, now_ms: u64) -> u64 {
        let pause = self.draws.between(CALL_RETRY_MS.0, CALL_RETRY_MS.1);
        now_ms + self.setup.retry_ms(pause)
    }

    fn registered(&mut self, now_ms: u64, outcome: &Outcome) {
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
        let answer: Registered = serde_json::from_slice(body).unwrap_or_default();
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
        self.phase = Phase::PollAt(now_ms);
    }

    /// The text is shared where it can be: most hosts run the version of the fleet.
    fn become_version(&mut self, version: &str) {
        if version == &*self.setup.agent_version {
            self.version = self.setup.agent_version.clone();
        } else if !version.is_empty() && version != &*self.version {
            self.version = version.into();
        }
    }

    fn polled(&mut self, now_ms: u64, outcome: &Outcome) {
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

    fn agent_request(&mut self, now_ms: u64) -> Option<Request> {
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
            | Phase::Installed => None,
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

    fn host_path(&self) -> String {
        format!(
            "{BASE}/infra-envs/{}/hosts/{}",
            self.runner_infra_env, self.runner_host
        )
    }

    fn request(&mut self, method: Method, path: String, body: Vec<u8>, call: Call) -> Request {
        let request_id = Uuid::from_u64_pair(self.draws.draw(), self.draws.draw());
        let tag = Tag {
            call,
            run: self.run,
            boot: self.boot,
        };
        let content_type = "application/json";
        Request {
            method,
            path,
            body,
            content_type,
            agent_version: None,
            request_id,
            tag,
        }
    }

    fn progress_request(&mut self, now_ms: u64) -> Option<Request> {
        let install = self.install.as_mut().filter(|install| install.due_ms <= now_ms)?;
        let body = to_json(&install.report());
        let path = format!(
            "{BASE}/infra-envs/{}/hosts/{}/progress",
            install.infra_env_id, install.host_id
        );
        Some(self.request(Method::PUT, path, body, Call::Progress))
    }

    fn progressed(&mut self, now_ms: u64, outcome: &Outcome) {
        let Some(install) = &mut self.install else { return };
        match install.receive(now_ms, &self.setup, &mut self.draws, outcome) {
            Progress::Goes => {}
            Progress::Ends => self.install = None,
            Progress::Reached(stage) => self.reached(now_ms, stage),
        }
    }

    fn reached(&mut self, now_ms: u64, stage: HostStage) {
        if let Some(faults) = &mut self.faults
            && faults.reboot_at == Some(stage)
        {
            faults.reboot_at = None;
            self.reboot(now_ms);
        } else if stage == HostStage::Rebooting {
            self.reboot(now_ms);
            self.phase = Phase::Installed;
        }
    }
}

fn wait(until_ms: u64) -> Next {
    if until_ms == u64::MAX {
        Next::Idle
    } else {
        Next::WaitUntil(until_ms)
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("wire types always serialise")
}

#[cfg(test)]
mod tests;
