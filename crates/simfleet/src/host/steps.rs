//! How a simulated host runs steps and sends what came of them.

use super::agent::CALL_RETRIES;
use super::{SimHost, to_json};
use crate::answer::{self, Answer, MEDIA_LOST, Oddities};
use crate::install::installer::Installer;
use crate::install::logs::{self, LogsPart};
use crate::install::{Ask, Ids};
use crate::inventory::SHRUNK;
use crate::job::{self, Job, Work};
use crate::request::{Call, Outcome, Request};
use http::Method;
use muster_contract::v2::agent::args::{InstallArgs, LogsGatherArgs, UpgradeAgentArgs};
use muster_contract::v2::step::StepType;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How fast a step ends that does nothing.
const INSTANT_MS: u64 = 100;

#[derive(Deserialize)]
pub(super) struct Step<'a> {
    #[serde(borrow)]
    step_type: Cow<'a, str>,
    #[serde(borrow, default)]
    step_id: Cow<'a, str>,
    #[serde(default)]
    args: Option<Vec<String>>,
}

/// Agents leave out what is zero or empty.
#[derive(Serialize)]
struct ReplyBody<'a> {
    step_type: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    step_id: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    exit_code: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    output: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    error: &'a str,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl SimHost {
    pub(super) fn start_step(&mut self, now_ms: u64, step: Step<'_>) {
        let mut work = Work::of(&step.step_type);
        let pause = match work {
            Work::Step(kind) => self.setup.work_ms(job::duration_ms(kind, &mut self.draws)),
            Work::Busy(_) | Work::Unknown(_) | Work::SendLogs(_) => self.setup.work_ms(INSTANT_MS),
        };
        if let Work::Step(kind) = work
            && self.is_busy_with(kind)
        {
            work = Work::Busy(kind);
        }
        let slow = self.faults.as_ref().map_or(0, |faults| {
            let images = work == Work::Step(StepType::ContainerImageAvailability);
            faults.slow_ms + if images { faults.slow_images_ms } else { 0 }
        });
        let due_ms = now_ms + pause + slow;
        let job = Job::new(work, &step.step_id, &step.args.unwrap_or_default(), due_ms);
        // A step that only looks, and whose answer would not be sent, needs no wake-up. This is what makes large
        // fleets cheap: nearly every poll ends here.
        if !(self.is_known(&job, due_ms) && job_only_looks(&job)) {
            self.jobs.push(job);
        }
    }

    fn is_busy_with(&self, kind: StepType) -> bool {
        let runs = || self.jobs.iter().any(|job| job.work == Work::Step(kind));
        (job::runs_alone(kind) && runs())
            || (kind == StepType::Install && (self.installer.is_some() || runs()))
    }

    /// Whether the hub took the same answer not long ago. With broken media there is another answer.
    fn is_known(&self, job: &Job, at_ms: u64) -> bool {
        let Work::Step(kind) = job.work else { return false };
        let key = job.key(self.inventory_revision(at_ms));
        !self.media_is_lost(at_ms) && self.sent.holds(kind, key, at_ms, self.setup.reply_cache_ms)
    }

    fn media_is_lost(&self, at_ms: u64) -> bool {
        let after = self.faults.as_ref().and_then(|faults| faults.media_loss_after_ms);
        after.is_some_and(|ms| at_ms >= self.started_ms.saturating_add(ms))
    }

    fn inventory_revision(&self, at_ms: u64) -> u64 {
        let every = self.faults.as_ref().and_then(|faults| faults.flap_every_ms);
        let flapped = every.map_or(0, |ms| at_ms.saturating_sub(self.started_ms) / ms % 2);
        let shrunk = self.is_bound && self.faults.as_ref().is_some_and(|faults| faults.shrinks);
        flapped | if shrunk { SHRUNK } else { 0 }
    }

    /// The reply of the step that ended first, if one has and its reply is to be sent.
    pub(super) fn job_request(&mut self, now_ms: u64) -> Option<Request> {
        loop {
            let ended = (0..self.jobs.len()).min_by_key(|at| self.jobs[*at].due_ms)?;
            if self.jobs[ended].due_ms > now_ms {
                return None;
            }
            let job = self.jobs.remove(ended);
            if self.jobs.is_empty() {
                self.jobs = Vec::new(); // Gives the memory back: most hosts run nothing most of the time.
            }
            if let Some(request) = self.end_job(now_ms, job) {
                return Some(request);
            }
        }
    }

    fn end_job(&mut self, now_ms: u64, mut job: Job) -> Option<Request> {
        if let Work::SendLogs(part) = job.work {
            return self.send_logs(&job, part);
        }
        if job.attempt == 0 && !job.is_copy {
            job.spoilt = self.spoil(&job);
            self.take_effect(now_ms, &job);
        }
        if self.is_known(&job, now_ms) && !job.is_copy {
            self.after_reply(now_ms, &job);
            return None;
        }
        let (lost, doubled) = self
            .faults
            .as_ref()
            .map_or((0.0, 0.0), |f| (f.lost_share, f.doubled_share));
        if lost > 0.0 && self.draws.chance(lost) {
            self.after_reply(now_ms, &job);
            return None;
        }
        if doubled > 0.0 && !job.is_copy && self.draws.chance(doubled) {
            let copy = Job::new(job.work.clone(), &job.step_id, &job.args, now_ms);
            self.jobs.push(Job {
                is_copy: true,
                spoilt: job.spoilt,
                ..copy
            });
        }
        Some(self.reply(now_ms, job))
    }

    fn answer(&self, now_ms: u64, job: &Job) -> Answer {
        if self.media_is_lost(now_ms) {
            return Answer::failed(MEDIA_LOST, "cannot read the discovery image");
        }
        if let Some(code) = job.spoilt.filter(|code| *code != 0) {
            return Answer::failed(code, "the simulation was asked to fail here");
        }
        let odd = Oddities {
            revision: self.inventory_revision(now_ms),
            io_sync_ms: self.faults.as_ref().and_then(|faults| faults.io_sync_ms),
            images_fail: job.spoilt.is_some(),
        };
        answer::answer(&self.machine(), &job.work, &job.args, odd)
    }

    fn reply(&mut self, now_ms: u64, job: Job) -> Request {
        let answer = self.answer(now_ms, &job);
        let body = to_json(&ReplyBody {
            step_type: job.work.word(),
            step_id: &job.step_id,
            exit_code: answer.exit_code,
            output: &answer.output,
            error: &answer.error,
        });
        let key = job.key(self.inventory_revision(now_ms));
        let remember = (answer.exit_code == 0).then_some(key);
        let job = Job { remember, ..job };
        self.request(
            Method::POST,
            format!("{}/instructions", self.host_path()),
            body,
            Call::Reply(Box::new(job)),
        )
    }

    pub(super) fn replied(&mut self, now_ms: u64, mut job: Job, outcome: &Outcome) {
        if outcome.transient() && job.attempt < CALL_RETRIES {
            job.attempt += 1;
            job.due_ms = self.call_retry_ms(now_ms);
            self.jobs.push(job);
            return;
        }
        if let (Work::Step(kind), Some(key)) = (&job.work, job.remember)
            && outcome.ok()
        {
            self.sent.remember(*kind, key, now_ms);
        }
        self.after_reply(now_ms, &job);
    }

    /// Whether a fault makes this run of a step fail, and with which code. Each failure is used up.
    fn spoil(&mut self, job: &Job) -> Option<i64> {
        let faults = self.faults.as_mut()?;
        let (left, code) = match job.work {
            Work::Step(StepType::Install) => return faults.install_exit.take(),
            Work::Step(StepType::ContainerImageAvailability) => (&mut faults.image_failures, 0),
            Work::Step(StepType::DownloadBootArtifacts) => (&mut faults.reclaim_failures, 1),
            Work::Step(_) | Work::Busy(_) | Work::Unknown(_) | Work::SendLogs(_) => return None,
        };
        *left = left.checked_sub(1)?;
        Some(code)
    }

    /// What a step does to the machine.
    fn take_effect(&mut self, now_ms: u64, job: &Job) {
        if self.media_is_lost(now_ms) || job.spoilt.is_some() {
            return;
        }
        match job.work {
            Work::Step(StepType::Install) => {
                let args = answer::one::<InstallArgs>(&job.args).ok();
                self.installer = args.map(|args| Box::new(Installer::new(&args, now_ms)));
            }
            Work::Step(StepType::StopInstallation) => self.installer = None,
            Work::Step(StepType::LogsGather) => {
                let sendings = LogsPart::ALL.map(Work::SendLogs);
                // One after the other: jobs of one moment have no order.
                self.jobs.extend(
                    (now_ms..)
                        .zip(sendings)
                        .map(|(due_ms, work)| Job::new(work, &job.step_id, &job.args, due_ms)),
                );
            }
            Work::Step(_) | Work::Busy(_) | Work::Unknown(_) | Work::SendLogs(_) => {}
        }
    }

    /// What a step does once its reply is out, whether or not it arrived.
    fn after_reply(&mut self, now_ms: u64, job: &Job) {
        match job.work {
            Work::Step(StepType::UpgradeAgent) => {
                if let Ok(args) = answer::one::<UpgradeAgentArgs>(&job.args) {
                    self.become_version(&args.agent_image);
                    self.end_runner(now_ms);
                }
            }
            Work::Step(StepType::RebootForReclaim) => self.boot_discovery(now_ms),
            Work::Step(_) | Work::Busy(_) | Work::Unknown(_) | Work::SendLogs(_) => {}
        }
    }

    fn send_logs(&mut self, job: &Job, part: LogsPart) -> Option<Request> {
        let args = answer::one::<LogsGatherArgs>(&job.args).ok()?;
        let ids = Ids {
            cluster: args.cluster_id,
            infra_env: args.infra_env_id,
            host: args.host_id,
        };
        let ask = Ask {
            call: Call::Logs,
            ..logs::of_host(&ids, part)
        };
        Some(self.request_of(ask))
    }
}

fn job_only_looks(job: &Job) -> bool {
    matches!(job.work, Work::Step(kind) if job::only_looks(kind))
}
