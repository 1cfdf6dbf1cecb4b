//! The life of the agent: register, poll, do steps, register again; for ever.

use crate::clock::{Backoff, Clock};
use crate::collect::Machine;
use crate::http::{Trust, client};
use crate::hub::{CallError, Hub, Ids};
use crate::replies::ReplyCache;
use crate::settings::Settings;
use crate::steps::{self, Context, MEDIA_LOST, Outcome, Shared};
use crate::{identity, media, note};
use muster_contract::v2::host::{NextStepRunnerCommand, RegisterHost};
use muster_contract::v2::step::{NextStepRunnerArgs, PostStepAction, PostStepReply, StepType};
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// From half a second, half more each time, to a minute.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// What the hub refuses may be put right by a person; asking costs little.
const REFUSED_PAUSE: Duration = Duration::from_secs(300);
/// A hub that names no time to wait does not want to be asked without pause.
const SHORTEST_POLL: Duration = Duration::from_secs(1);
/// A reply that cannot be delivered is tried so often; hubs hand the step out again anyway.
const REPLY_TRIES: u32 = 6;
/// A host that is on its way back in some other way needs nothing from its old system.
const WATCH_PAUSE: Duration = Duration::from_secs(60);
/// An hour, as the reference does, would keep a machine away for nothing.
const NOTHING_TO_RUN: Duration = Duration::from_secs(60);

pub struct Agent {
    pub settings: Arc<Settings>,
    pub host: uuid::Uuid,
    pub hub: Hub,
    pub machine: Machine,
    pub clock: Arc<dyn Clock>,
    pub shared: Arc<Shared>,
    replies: Arc<ReplyCache>,
    /// Counts sessions: what an earlier one left running tells nobody any more.
    session: Arc<AtomicU64>,
}

/// Why a session ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The hub wants a new registration.
    Exit,
    /// The hub does not know this host.
    Unknown,
    /// The machine is rebooting.
    Gone,
}

/// Like `StepsView`, but with types of steps this agent does not know.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Steps {
    next_instruction_seconds: i64,
    post_step_action: PostStepAction,
    instructions: Option<Vec<Step>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    step_type: String,
    step_id: String,
    args: Option<Vec<String>>,
}

impl Agent {
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let machine = Machine::at(&settings.root);
        let (host, from) = match settings.host_id {
            Some(id) => (id, "the flag --host-id"),
            None => identity::host_id(&machine, settings.identity),
        };
        note!(
            "host {host}, from {from}; hub {}, InfraEnv {}",
            settings.url,
            settings.infra_env_id
        );
        let hub = Hub {
            url: settings.url.clone(),
            token: settings.token.clone(),
            http: client(&Trust::of(&settings))?,
            clock: clock.clone(),
        };
        Ok(Self {
            settings: Arc::new(settings),
            host,
            hub,
            machine,
            clock,
            shared: Arc::default(),
            replies: Arc::default(),
            session: Arc::default(),
        })
    }

    /// Comes back only when the machine is, or would be, rebooting.
    pub fn run(&self) {
        loop {
            let ids = self.register();
            match self.poll(ids) {
                End::Gone => return,
                End::Exit | End::Unknown => {}
            }
        }
    }

    /// Takes orders without registering, as an installed system does: the host is not new, and only the hub can want it
    /// back. Comes back only when the machine is, or would be, rebooting.
    pub fn watch(&self) {
        let ids = Ids {
            infra_env: self.settings.infra_env_id,
            host: self.host,
        };
        while self.poll(ids) != End::Gone {
            let pause = self.settings.poll.map_or(WATCH_PAUSE, Duration::from_secs);
            self.clock.sleep(pause);
        }
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(self.settings.interval.max(1))
    }

    /// Tries until the hub accepts.
    fn register(&self) -> Ids {
        let mut backoff = Backoff::new(self.interval(), REFUSED_PAUSE);
        loop {
            let version = self.shared.version(&self.settings);
            let body = RegisterHost {
                host_id: self.host,
                discovery_agent_version: Some(version),
            };
            let answer = self.hub.register(self.settings.infra_env_id, &body);
            let pause = match answer.map(|body| self.runner_ids(&body)) {
                Ok(Some(ids)) => return ids,
                Ok(None) => {
                    note!("the hub registers this host but does not say how to go on");
                    NOTHING_TO_RUN
                }
                // A person has to change something first: ask slower and slower.
                Err(CallError::Refused {
                    status: status @ (401 | 403 | 404 | 409),
                    reason,
                }) => {
                    note!("the hub refuses this host ({status}): {reason}");
                    backoff.next_pause()
                }
                Err(error) => {
                    note!("registration failed: {error}");
                    self.interval()
                }
            };
            self.clock.sleep(pause);
        }
    }

    /// The hub may give other ids than we came with; the version is the one it wants to run.
    fn runner_ids(&self, body: &[u8]) -> Option<Ids> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Registered {
            next_step_runner_command: Option<NextStepRunnerCommand>,
        }
        let answer: Registered = serde_json::from_slice(body).ok()?;
        let command = answer.next_step_runner_command?;
        let args: NextStepRunnerArgs = serde_json::from_str(command.args.first()?).ok()?;
        self.shared.become_version(&args.agent_version);
        note!("registered");
        Some(Ids {
            infra_env: args.infra_env_id,
            host: args.host_id,
        })
    }

    fn poll(&self, ids: Ids) -> End {
        let session = self.session.fetch_add(1, Ordering::SeqCst) + 1;
        self.replies.forget();
        let mut backoff = Backoff::new(FIRST_PAUSE, self.interval());
        loop {
            let version = self.shared.version(&self.settings);
            let answer = self.hub.instructions(ids, &version).and_then(|body| {
                serde_json::from_slice::<Steps>(&body)
                    .map_err(|error| CallError::Unreadable(error.to_string()))
            });
            let pause = match answer {
                Ok(steps) => {
                    backoff = Backoff::new(FIRST_PAUSE, self.interval());
                    match self.follow(ids, session, steps) {
                        Some(end) => return end,
                        None => continue,
                    }
                }
                Err(error) => {
                    note!("polling failed: {error}");
                    // The hub may have lost earlier replies.
                    self.replies.forget();
                    // The reference freezes here. A hub that was restored needs us to come back by ourselves.
                    if error.status() == Some(404) && !self.shared.install.is_running() {
                        self.clock.sleep(self.interval());
                        return End::Unknown;
                    }
                    backoff.next_pause()
                }
            };
            if self.wait(pause) {
                return End::Gone;
            }
        }
    }

    /// Starts the steps and waits as long as the hub wants. `Some` when the session is over.
    fn follow(&self, ids: Ids, session: u64, steps: Steps) -> Option<End> {
        for step in steps.instructions.into_iter().flatten() {
            self.start(ids, session, step);
        }
        let seconds = u64::try_from(steps.next_instruction_seconds).unwrap_or_default();
        let wait = Duration::from_secs(seconds);
        match steps.post_step_action {
            PostStepAction::Exit => {
                let gone = self.wait(wait);
                // The host is bound, freed or taken back: nothing may be written any more.
                self.shared.install.cancel();
                self.session.fetch_add(1, Ordering::SeqCst);
                Some(if gone { End::Gone } else { End::Exit })
            }
            PostStepAction::Continue => {
                let wait = if seconds == 0 { self.interval() } else { wait };
                let wait = self
                    .settings
                    .poll
                    .map_or(wait, |most| wait.min(Duration::from_secs(most)));
                self.wait(wait.max(SHORTEST_POLL)).then_some(End::Gone)
            }
        }
    }

    /// True when the machine is gone.
    fn wait(&self, time: Duration) -> bool {
        if !self.shared.power.is_gone() {
            self.clock.sleep(time);
        }
        self.shared.power.is_gone()
    }

    fn start(&self, ids: Ids, session: u64, step: Step) {
        let runner = StepRunner {
            context: Context {
                settings: self.settings.clone(),
                hub: self.hub.clone(),
                machine: self.machine.clone(),
                clock: self.clock.clone(),
                ids,
                shared: self.shared.clone(),
            },
            replies: self.replies.clone(),
            current: self.session.clone(),
            session,
        };
        std::thread::spawn(move || runner.run(&step));
    }
}

/// One step in its own thread.
struct StepRunner {
    context: Context,
    replies: Arc<ReplyCache>,
    current: Arc<AtomicU64>,
    session: u64,
}

impl StepRunner {
    fn run(&self, step: &Step) {
        let known = StepType::ALL
            .iter()
            .copied()
            .find(|kind| kind.word() == step.step_type);
        let outcome = match known {
            Some(kind) => self.outcome(kind, step.args.as_deref().unwrap_or_default()),
            None => {
                let text = format!(
                    "failed to find action for step {}: this agent does not know it",
                    step.step_type
                );
                Outcome::failed(steps::NO_SUCH_ACTION, text)
            }
        };
        if outcome.exit_code != 0 {
            note!(
                "{} fails with {}: {}",
                step.step_type,
                outcome.exit_code,
                outcome.error
            );
        }
        self.tell(known, step, outcome);
    }

    fn outcome(&self, kind: StepType, args: &[String]) -> Outcome {
        let lost = || Outcome::failed(MEDIA_LOST, "cannot read the medium this machine was started from");
        if media::is_lost(&self.context.machine) {
            return lost();
        }
        // A step that panics is a step that failed: the machine stays.
        let run = std::panic::AssertUnwindSafe(|| steps::run(&self.context, kind, args));
        let outcome = std::panic::catch_unwind(run)
            .unwrap_or_else(|_| Outcome::failed(1, format!("internal error of the agent in {kind}")));
        if outcome.exit_code != 0 && media::is_lost(&self.context.machine) {
            lost()
        } else {
            outcome
        }
    }

    fn is_current(&self) -> bool {
        self.current.load(Ordering::SeqCst) == self.session
    }

    fn tell(&self, kind: Option<StepType>, step: &Step, outcome: Outcome) {
        let now = self.context.clock.now();
        let age = self.replies.age();
        let is_good = outcome.exit_code == 0;
        let is_known = kind.is_some_and(|kind| is_good && self.replies.is_known(kind, &outcome.output, now));
        if is_known || !self.is_current() {
            return;
        }
        let reply = PostStepReply {
            step_type: kind,
            step_id: Some(step.step_id.clone()),
            exit_code: Some(outcome.exit_code),
            output: Some(outcome.output),
            error: Some(outcome.error),
        };
        let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(60));
        for _ in 0..REPLY_TRIES {
            match self.context.hub.reply(self.context.ids, &reply) {
                Ok(()) => {
                    if let (Some(kind), true) = (kind, is_good) {
                        self.replies
                            .keep(kind, reply.output.as_deref().unwrap_or_default(), now, age);
                    }
                    return;
                }
                Err(
                    error @ CallError::Refused {
                        status: 400..=499, ..
                    },
                ) => {
                    note!("the hub refused the reply to {}: {error}", step.step_type);
                    return;
                }
                Err(error) => note!("cannot deliver the reply to {}: {error}", step.step_type),
            }
            self.context.clock.sleep(backoff.next_pause());
            if !self.is_current() {
                return;
            }
        }
    }
}
