//! One simulated machine with its agent: a state machine that knows the time only from its caller.

mod agent;
mod life;
mod steps;

use crate::fault::{self, HostFaults};
use crate::install::installer::Installer;
use crate::install::node::Node;
use crate::job::{Job, ReplyCache};
use crate::machine::Machine;
use crate::request::{Call, Next, Outcome, Request, Tag};
use crate::seed::{Draws, mix};
use crate::setup::Setup;
use http::Method;
use muster_contract::v2::BASE;
use serde::Serialize;
use std::sync::Arc;
use uuid::Uuid;

/// From power-on to the first registration, or to the first sign of an installed system.
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
    installer: Option<Box<Installer>>,
    /// The system on the disk, as long as the hub is to hear of it.
    node: Option<Box<Node>>,
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
    /// Whether it belonged to a cluster when it registered.
    is_bound: bool,
    /// Whether it runs, or boots, the system on its disk.
    is_on_disk: bool,
    installs: Installs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    RegisterAt(u64),
    Registering,
    PollAt(u64),
    Polling,
    /// The hub told the runner to end, and it still sleeps.
    ExitAt(u64),
    /// The agent gave up; only a reboot helps.
    BlockedUntil(u64),
    /// The installed system runs, and no agent; someone looks at this time.
    OnDisk(u64),
    /// The same, while someone looks.
    WatchingDisk,
    OffUntil(u64),
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
    /// Without power.
    Off,
}

/// How often a host was installed, and how often it failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Installs {
    pub done: u16,
    pub failed: u16,
}

impl SimHost {
    /// The host with this index, which registers for the first time at `start_ms`. All times are milliseconds since
    /// 1970; only their differences matter, but the hub gets the host's clock.
    pub fn new(setup: Arc<Setup>, index: u32, start_ms: u64) -> Self {
        let board = fault::board(&setup, index);
        let id = Machine::new(&setup, index, board).id();
        Self {
            version: setup.agent_version.clone(),
            runner_infra_env: setup.infra_env_id,
            runner_host: id,
            jobs: Vec::new(),
            sent: ReplyCache::default(),
            installer: None,
            node: None,
            faults: HostFaults::of(&setup, index),
            phase: Phase::RegisterAt(start_ms),
            started_ms: start_ms,
            failing_since_ms: 0,
            draws: Draws::new(mix(&[setup.seed, u64::from(index), 6])),
            index,
            board,
            backoff_ms: agent::BACKOFF_MS,
            run: 0,
            boot: 0,
            attempt: 0,
            is_bound: false,
            is_on_disk: false,
            installs: Installs::default(),
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
            // What polls on an installed system is there to reclaim it.
            Phase::PollAt(_) | Phase::Polling | Phase::ExitAt(_) if self.is_on_disk => Condition::Installed,
            Phase::PollAt(_) | Phase::Polling | Phase::ExitAt(_) => Condition::Running,
            Phase::BlockedUntil(_) => Condition::Blocked,
            Phase::OnDisk(_) | Phase::WatchingDisk => Condition::Installed,
            Phase::OffUntil(_) => Condition::Off,
        }
    }

    pub fn installs(&self) -> Installs {
        self.installs
    }

    /// Whether an installer runs there at this moment, and may write to the disk.
    pub fn is_installing(&self) -> bool {
        self.installer.is_some()
    }

    /// Power-cycles the machine, or switches it on; it boots what it booted before.
    pub fn reboot(&mut self, now_ms: u64) {
        if self.is_on_disk {
            self.boot_disk(now_ms);
        } else {
            self.boot_discovery(now_ms);
        }
    }

    /// Boots the discovery image, whatever is on the disk; the agent registers again.
    pub fn boot_discovery(&mut self, now_ms: u64) {
        self.stop_everything();
        self.is_on_disk = false;
        self.phase = Phase::RegisterAt(now_ms + self.setup.install_work_ms(BOOT_MS));
    }

    /// Boots from the disk, as after a corrected boot order; what was installed there goes on.
    pub fn boot_disk(&mut self, now_ms: u64) {
        self.stop_everything();
        self.is_on_disk = true;
        if let Some(node) = &mut self.node {
            node.due_ms = now_ms + self.setup.install_work_ms(BOOT_MS);
        }
        self.phase = Phase::OnDisk(self.next_watch_ms(now_ms));
    }

    /// Takes the power away, until `reboot` or a boot gives it back.
    pub fn power_off(&mut self) {
        self.stop_everything();
        self.phase = Phase::OffUntil(u64::MAX);
    }

    /// What the host wants at this time.
    pub fn poll(&mut self, now_ms: u64) -> Next {
        loop {
            if let Some(until) = self.silent_until(now_ms) {
                return wait(until);
            }
            self.pass_time(now_ms);
            let Some(request) = self.wanted(now_ms) else {
                return wait(self.wake_ms());
            };
            if !self.is_cut_off(now_ms) {
                return Next::Send(request);
            }
            // Every kind of call that is lost waits before it is repeated, so this ends.
            self.receive(now_ms, request.tag, Outcome::Lost);
        }
    }

    fn wanted(&mut self, now_ms: u64) -> Option<Request> {
        if matches!(self.phase, Phase::OffUntil(_)) {
            return None;
        }
        self.agent_request(now_ms)
            .or_else(|| self.job_request(now_ms))
            .or_else(|| self.install_request(now_ms))
            .or_else(|| self.watch_request(now_ms))
    }

    /// What became of a request.
    pub fn receive(&mut self, now_ms: u64, tag: Tag, outcome: Outcome) {
        let is_current = match &tag.call {
            // These go on beside the runner and outlive it.
            Call::Progress | Call::Install | Call::Watch => tag.boot == self.boot,
            Call::Register | Call::Poll | Call::Reply(_) | Call::Logs => tag.run == self.run,
        };
        if !is_current {
            return;
        }
        match tag.call {
            Call::Register => self.registered(now_ms, &outcome),
            Call::Poll => self.polled(now_ms, &outcome),
            Call::Reply(job) => self.replied(now_ms, *job, &outcome),
            Call::Progress | Call::Install => self.install_answered(now_ms, &outcome),
            Call::Watch => self.watched(now_ms, &outcome),
            Call::Logs => {}
        }
    }

    fn silent_until(&self, now_ms: u64) -> Option<u64> {
        let (from, until) = self.faults.as_ref()?.silent?;
        let until = self.started_ms.saturating_add(until);
        (now_ms >= self.started_ms + from && now_ms < until).then_some(until)
    }

    fn is_cut_off(&self, now_ms: u64) -> bool {
        let window = self.faults.as_ref().and_then(|faults| faults.cut_off);
        window.is_some_and(|(from, until)| {
            now_ms >= self.started_ms.saturating_add(from) && now_ms < self.started_ms.saturating_add(until)
        })
    }

    /// What happens by itself.
    fn pass_time(&mut self, now_ms: u64) {
        if let Some(faults) = &mut self.faults {
            let since_start = now_ms.saturating_sub(self.started_ms);
            let reboots = faults.reboot_after_ms.take_if(|ms| *ms <= since_start).is_some();
            let off = faults.power_off_after.take_if(|(ms, _)| *ms <= since_start);
            if reboots {
                self.reboot(now_ms);
            }
            if let Some((_, for_ms)) = off {
                self.lose_power(now_ms, for_ms);
            }
        }
        match self.phase {
            Phase::ExitAt(at) if at <= now_ms => self.end_runner(now_ms),
            Phase::BlockedUntil(at) if at <= now_ms => self.boot_discovery(now_ms),
            Phase::OffUntil(at) if at <= now_ms => self.reboot(now_ms),
            Phase::ExitAt(_)
            | Phase::BlockedUntil(_)
            | Phase::OffUntil(_)
            | Phase::RegisterAt(_)
            | Phase::Registering
            | Phase::PollAt(_)
            | Phase::Polling
            | Phase::OnDisk(_)
            | Phase::WatchingDisk => {}
        }
    }

    fn lose_power(&mut self, now_ms: u64, for_ms: Option<u64>) {
        self.power_off();
        self.phase = Phase::OffUntil(for_ms.map_or(u64::MAX, |ms| now_ms.saturating_add(ms)));
    }

    /// When something happens to the machine.
    fn fault_due_ms(&self) -> u64 {
        let Some(faults) = &self.faults else {
            return u64::MAX;
        };
        let off = faults.power_off_after.map(|(ms, _)| ms);
        let next = faults.reboot_after_ms.into_iter().chain(off).min();
        next.map_or(u64::MAX, |ms| self.started_ms.saturating_add(ms))
    }

    fn wake_ms(&self) -> u64 {
        let phase = match self.phase {
            Phase::OffUntil(at) => return at.min(self.fault_due_ms()),
            Phase::RegisterAt(at)
            | Phase::PollAt(at)
            | Phase::ExitAt(at)
            | Phase::BlockedUntil(at)
            | Phase::OnDisk(at) => at,
            Phase::Registering | Phase::Polling | Phase::WatchingDisk => u64::MAX,
        };
        let job = self.jobs.iter().map(|job| job.due_ms).min().unwrap_or(u64::MAX);
        phase.min(job).min(self.install_due_ms()).min(self.fault_due_ms())
    }

    /// The machine goes down, and with it all that runs on it.
    fn stop_everything(&mut self) {
        self.boot = self.boot.wrapping_add(1);
        self.installer = None;
        self.stop_runner();
    }

    fn stop_runner(&mut self) {
        self.run = self.run.wrapping_add(1);
        self.jobs = Vec::new();
        self.sent.flush();
        self.failing_since_ms = 0;
        self.backoff_ms = agent::BACKOFF_MS;
        self.attempt = 0;
    }

    /// The runner ends, and with it all steps; the agent registers again at `at_ms`. A system on the disk has no agent.
    fn end_runner(&mut self, at_ms: u64) {
        self.stop_runner();
        self.phase = if self.is_on_disk {
            Phase::OnDisk(self.next_watch_ms(at_ms))
        } else {
            Phase::RegisterAt(at_ms)
        };
    }

    /// The agent gives up. On an installed system that only ends what was to reclaim it.
    fn block(&mut self, now_ms: u64) {
        if self.is_on_disk {
            return self.end_runner(now_ms);
        }
        self.jobs = Vec::new();
        self.run = self.run.wrapping_add(1);
        let until = self
            .setup
            .revive_ms
            .map_or(u64::MAX, |ms| now_ms.saturating_add(ms));
        self.phase = Phase::BlockedUntil(until);
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
