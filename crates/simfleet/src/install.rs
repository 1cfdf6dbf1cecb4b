//! An installation on a simulated host: the stages its installer reports, in order, until it reboots.

use crate::request::Outcome;
use crate::seed::Draws;
use crate::setup::Setup;
use muster_contract::v2::agent::args::InstallArgs;
use muster_contract::v2::install::{HostStage, ReportHostProgress};
use uuid::Uuid;

use HostStage::{
    CopyingRegistryDataToDisk, Installing, Rebooting, StartingInstallation, WaitingForBootkube,
    WaitingForControlPlane, WaitingForController, WritingImageToDisk,
};

const BOOTSTRAP: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    CopyingRegistryDataToDisk,
    WaitingForControlPlane,
    WaitingForBootkube,
    WaitingForController,
    Rebooting,
];
const MASTER: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    CopyingRegistryDataToDisk,
    Rebooting,
];
const WORKER: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    WaitingForControlPlane,
    Rebooting,
];
const SINGLE_NODE: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WaitingForBootkube,
    WritingImageToDisk,
    CopyingRegistryDataToDisk,
    Rebooting,
];

/// The image is written in steps of 5 %, each reported.
const WRITING_STEP: u8 = 5;
const WRITING_STEP_MS: u64 = 2_000;
const STAGE_MS: u64 = 20_000;

/// How often an installer repeats a report, by the answer it got.
const MISSING_RETRIES: u16 = 10;
const BROKEN_RETRIES: u16 = 360;

#[derive(Debug, Clone)]
pub struct Install {
    pub infra_env_id: Uuid,
    pub host_id: Uuid,
    stages: &'static [HostStage],
    at: usize,
    percent: u8,
    failures: u16,
    /// When the next report is due; never while one is on its way.
    pub due_ms: u64,
}

/// What follows from the answer to a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The next report, or the same once more, comes at its time.
    Goes,
    /// This stage was reported for the first time.
    Reached(HostStage),
    /// The hub does not want to hear more.
    Ends,
}

impl Install {
    pub fn new(args: &InstallArgs, now_ms: u64) -> Self {
        let stages = match args.role.as_ref() {
            "bootstrap" if args.control_plane_count == 1 => SINGLE_NODE,
            "bootstrap" => BOOTSTRAP,
            "master" | "arbiter" => MASTER,
            _ => WORKER,
        };
        Self {
            infra_env_id: args.infra_env_id,
            host_id: args.host_id,
            stages,
            at: 0,
            percent: 0,
            failures: 0,
            due_ms: now_ms,
        }
    }

    /// The report that is due; nothing is due until its outcome is known.
    pub fn report(&mut self) -> ReportHostProgress {
        self.due_ms = u64::MAX;
        let info = (self.percent > 0).then(|| format!("{}%", self.percent));
        ReportHostProgress {
            current_stage: Some(self.stages[self.at]),
            progress_info: info,
        }
    }

    pub fn receive(&mut self, now_ms: u64, setup: &Setup, draws: &mut Draws, outcome: &Outcome) -> Progress {
        if !outcome.ok() {
            return self.retry(now_ms, setup, draws, outcome);
        }
        self.failures = 0;
        let stage = self.stages[self.at];
        let first = self.percent == 0;
        if stage == WritingImageToDisk && self.percent < 100 {
            self.percent += WRITING_STEP;
            self.due_ms = now_ms + setup.work_ms(WRITING_STEP_MS);
        } else {
            self.percent = 0;
            self.at = (self.at + 1).min(self.stages.len() - 1);
            self.due_ms = now_ms + setup.work_ms(STAGE_MS);
        }
        if first {
            Progress::Reached(stage)
        } else {
            Progress::Goes
        }
    }

    fn retry(&mut self, now_ms: u64, setup: &Setup, draws: &mut Draws, outcome: &Outcome) -> Progress {
        let most = match outcome {
            Outcome::Response {
                status: 404 | 423 | 425,
                ..
            } => MISSING_RETRIES,
            Outcome::Response {
                status: 408 | 429 | 500..=599,
                ..
            }
            | Outcome::Lost => BROKEN_RETRIES,
            Outcome::Response { .. } => 0,
        };
        self.failures += 1;
        if self.failures > most {
            return Progress::Ends;
        }
        self.due_ms = now_ms + setup.retry_ms(draws.between(2_000, 10_000));
        Progress::Goes
    }
}
