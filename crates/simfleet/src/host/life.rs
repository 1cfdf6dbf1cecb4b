//! What becomes of a simulated machine while it is installed and afterwards, until it is free again.

use super::{Phase, SimHost};
use crate::fault::Mishap;
use crate::install::{Ask, Turn};
use crate::request::{Call, Outcome, Request};
use http::Method;
use muster_vocabulary::{HostStatus, Stage, Word};
use serde::Deserialize;

/// Of a host, the part people with a power controller read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Seen {
    status: Word<HostStatus>,
}

impl SimHost {
    /// When the installer, or the installed system, has something to say.
    pub(super) fn install_due_ms(&self) -> u64 {
        if self.is_on_disk {
            self.node.as_ref().map_or(u64::MAX, |node| node.due_ms)
        } else {
            self.installer
                .as_ref()
                .map_or(u64::MAX, |installer| installer.due_ms)
        }
    }

    pub(super) fn install_request(&mut self, now_ms: u64) -> Option<Request> {
        if self.install_due_ms() > now_ms {
            return None;
        }
        let ask = if self.is_on_disk {
            self.node.as_mut()?.ask(now_ms)
        } else {
            self.installer.as_mut()?.ask()
        };
        Some(self.request_of(ask))
    }

    pub(super) fn request_of(&mut self, ask: Ask) -> Request {
        let request = self.request(ask.method, ask.path, ask.body, ask.call);
        Request {
            content_type: ask.content_type,
            ..request
        }
    }

    pub(super) fn install_answered(&mut self, now_ms: u64, outcome: &Outcome) {
        let turn = if self.is_on_disk {
            let Some(node) = &mut self.node else { return };
            node.receive(now_ms, &self.setup, outcome)
        } else {
            let Some(installer) = &mut self.installer else {
                return;
            };
            installer.receive(now_ms, &self.setup, &mut self.draws, outcome)
        };
        match turn {
            Turn::Goes => {}
            Turn::Reached(stage) => self.reached(now_ms, stage),
            Turn::Failed => {
                self.installs.failed = self.installs.failed.wrapping_add(1);
                self.end_install();
            }
            Turn::Ended => self.end_install(),
        }
    }

    fn end_install(&mut self) {
        if self.is_on_disk {
            self.node = None;
        } else {
            self.installer = None;
        }
    }

    fn reached(&mut self, now_ms: u64, stage: Stage) {
        let mishap = self.faults.as_mut().and_then(|faults| faults.take_mishap(stage));
        if mishap == Some(Mishap::Fail) {
            return self.fail(now_ms);
        }
        match stage {
            Stage::Rebooting => self.leave_system(now_ms),
            Stage::Done => self.count_install(),
            Stage::Starting
            | Stage::WaitingForControlPlane
            | Stage::WaitingForBootkube
            | Stage::WaitingForController
            | Stage::Installing
            | Stage::Writing
            | Stage::Copying
            | Stage::WaitingForIgnition
            | Stage::Configuring
            | Stage::Joined
            | Stage::Failed => {}
        }
        if self.node.as_ref().is_some_and(|node| node.is_done()) {
            self.node = None;
        }
        match mishap {
            Some(Mishap::Reboot) => self.boot_discovery(now_ms),
            Some(Mishap::PowerOff { for_ms }) => {
                self.is_on_disk |= stage == Stage::Rebooting;
                self.lose_power(now_ms, for_ms);
            }
            Some(Mishap::CutOff { for_ms }) => self.cut_off(now_ms, stage, for_ms),
            Some(Mishap::Fail) | None if stage == Stage::Rebooting => self.boot_disk(now_ms),
            Some(Mishap::Fail) | None => {}
        }
    }

    fn cut_off(&mut self, now_ms: u64, stage: Stage, for_ms: Option<u64>) {
        let since_start = now_ms.saturating_sub(self.started_ms);
        if let Some(faults) = &mut self.faults {
            faults.cut_off_from(since_start, for_ms);
        }
        if stage == Stage::Rebooting {
            self.boot_disk(now_ms);
        }
    }

    fn count_install(&mut self) {
        self.installs.done = self.installs.done.wrapping_add(1);
    }

    /// From here on the disk holds what the installer has written.
    fn leave_system(&mut self, now_ms: u64) {
        let Some(installer) = &self.installer else { return };
        self.node = installer.node(now_ms).map(Box::new);
        // Nobody hears of a host that was added to a running cluster any more.
        if self.node.is_none() {
            self.count_install();
        }
    }

    fn fail(&mut self, now_ms: u64) {
        if self.is_on_disk {
            if let Some(node) = &mut self.node {
                node.fail(now_ms);
            }
        } else if let Some(installer) = &mut self.installer {
            installer.fail(now_ms);
        }
    }

    /// Starts what reclaims an installed system: a runner that asks for steps, without an agent to register.
    pub fn start_reclaim(&mut self, now_ms: u64) {
        if self.is_on_disk && !matches!(self.phase, Phase::OffUntil(_)) {
            self.stop_runner();
            self.phase = Phase::PollAt(now_ms);
        }
    }

    pub(super) fn next_watch_ms(&mut self, now_ms: u64) -> u64 {
        let Some(every) = self.setup.return_boots_ms else {
            return u64::MAX;
        };
        let pause = self.draws.between(every - every / 4, every + every / 4);
        now_ms + self.setup.retry_ms(pause)
    }

    pub(super) fn watch_request(&mut self, now_ms: u64) -> Option<Request> {
        match self.phase {
            Phase::OnDisk(at) if at <= now_ms => {
                self.phase = Phase::WatchingDisk;
                Some(self.request(Method::GET, self.host_path(), Vec::new(), Call::Watch))
            }
            Phase::OnDisk(_)
            | Phase::WatchingDisk
            | Phase::RegisterAt(_)
            | Phase::Registering
            | Phase::PollAt(_)
            | Phase::Polling
            | Phase::ExitAt(_)
            | Phase::BlockedUntil(_)
            | Phase::OffUntil(_) => None,
        }
    }

    pub(super) fn watched(&mut self, now_ms: u64, outcome: &Outcome) {
        if self.phase != Phase::WatchingDisk {
            return;
        }
        self.phase = Phase::OnDisk(self.next_watch_ms(now_ms));
        match outcome {
            Outcome::Response {
                status: 200..=299,
                body,
            } => {
                let seen: Seen = serde_json::from_slice(body).unwrap_or_default();
                if seen.status.is(HostStatus::awaits_discovery) {
                    self.boot_discovery(now_ms);
                } else if seen.status.is(HostStatus::is_reclaiming) {
                    self.start_reclaim(now_ms);
                }
            }
            // Nobody will ask for this machine again.
            Outcome::Response { status: 404, .. } => self.phase = Phase::OnDisk(u64::MAX),
            Outcome::Response { .. } | Outcome::Lost => {}
        }
    }
}
