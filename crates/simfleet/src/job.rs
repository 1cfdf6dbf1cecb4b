//! Steps that run on a simulated host, and which of their answers were already given.

use crate::install::logs::LogsPart;
use crate::seed::Draws;
use muster_contract::v2::step::StepType;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A step that is running.
#[derive(Debug)]
pub struct Job {
    pub work: Work,
    pub step_id: Box<str>,
    pub args: Box<[String]>,
    pub due_ms: u64,
    /// How often its reply was sent in vain.
    pub attempt: u8,
    /// The second copy of a doubled reply.
    pub is_copy: bool,
    /// What to remember when the hub takes the reply; nothing when the step failed.
    pub remember: Option<u64>,
    /// A fault spoilt it: the code it ends with. Zero where the output tells of the failure.
    pub spoilt: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    Step(StepType),
    /// The same step already runs and allows no second: an empty answer.
    Busy(StepType),
    /// A step this agent does not know.
    Unknown(Box<str>),
    /// What a logs-gather step leads to.
    SendLogs(LogsPart),
}

impl Work {
    pub fn of(word: &str) -> Self {
        let known = StepType::ALL.iter().find(|kind| kind.word() == word);
        known.map_or_else(|| Self::Unknown(word.into()), |kind| Self::Step(*kind))
    }

    pub fn word(&self) -> &str {
        match self {
            Self::Step(kind) | Self::Busy(kind) => kind.word(),
            Self::Unknown(word) => word,
            Self::SendLogs(_) => StepType::LogsGather.word(),
        }
    }
}

impl Job {
    pub fn new(work: Work, step_id: &str, args: &[String], due_ms: u64) -> Self {
        let (step_id, args) = (step_id.into(), args.into());
        Self {
            work,
            step_id,
            args,
            due_ms,
            attempt: 0,
            is_copy: false,
            remember: None,
            spoilt: None,
        }
    }

    /// Equal keys mean equal answers: an answer follows from the step, its arguments, the state of the inventory and
    /// whether a fault spoilt it.
    pub fn key(&self, revision: u64) -> u64 {
        let revision = if self.work == Work::Step(StepType::Inventory) {
            revision
        } else {
            0
        };
        let flavour = revision << 1 | u64::from(self.spoilt.is_some());
        let start = xxh3_64_with_seed(self.work.word().as_bytes(), flavour);
        self.args
            .iter()
            .fold(start, |sum, arg| xxh3_64_with_seed(arg.as_bytes(), sum))
    }
}

/// The last answer that the hub took, per kind of step. Sixteen bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    key: u64,
    at_s: u32,
    kind: StepType,
}

/// What the runner remembers of its answers until it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyCache(Vec<Sent>);

impl ReplyCache {
    pub fn remember(&mut self, kind: StepType, key: u64, now_ms: u64) {
        let sent = Sent {
            key,
            at_s: seconds(now_ms),
            kind,
        };
        match self.0.iter_mut().find(|old| old.kind == kind) {
            Some(old) => *old = sent,
            None => self.0.push(sent),
        }
    }

    /// Whether the same answer was taken less than `life_ms` before `now_ms`.
    pub fn holds(&self, kind: StepType, key: u64, now_ms: u64, life_ms: u64) -> bool {
        let life_s = seconds(life_ms);
        self.0.iter().any(|sent| {
            sent.kind == kind && sent.key == key && seconds(now_ms).saturating_sub(sent.at_s) < life_s
        })
    }

    pub fn flush(&mut self) {
        self.0.clear();
    }
}

fn seconds(ms: u64) -> u32 {
    u32::try_from(ms / 1000).unwrap_or(u32::MAX)
}

/// Steps that run once at a time: a second one answers nothing.
pub fn runs_alone(kind: StepType) -> bool {
    matches!(
        kind,
        StepType::ContainerImageAvailability | StepType::InstallationDiskSpeedCheck | StepType::UpgradeAgent
    )
}

/// Steps that only look; running one whose answer is known changes nothing.
pub fn only_looks(kind: StepType) -> bool {
    match kind {
        StepType::ConnectivityCheck
        | StepType::Inventory
        | StepType::FreeNetworkAddresses
        | StepType::DhcpLeaseAllocate
        | StepType::ApiVipConnectivityCheck
        | StepType::TangConnectivityCheck
        | StepType::NtpSynchronizer
        | StepType::InstallationDiskSpeedCheck
        | StepType::ContainerImageAvailability
        | StepType::DomainResolution
        | StepType::VerifyVips => true,
        StepType::Execute
        | StepType::Install
        | StepType::StopInstallation
        | StepType::LogsGather
        | StepType::NextStepRunner
        | StepType::UpgradeAgent
        | StepType::DownloadBootArtifacts
        | StepType::RebootForReclaim => false,
    }
}

/// How long a step takes on a real machine.
pub fn duration_ms(kind: StepType, draws: &mut Draws) -> u64 {
    let (low, high) = match kind {
        StepType::Inventory => (1_000, 8_000),
        StepType::ConnectivityCheck => (2_000, 20_000),
        StepType::FreeNetworkAddresses => (4_000, 12_000),
        StepType::NtpSynchronizer | StepType::DhcpLeaseAllocate | StepType::VerifyVips => (500, 3_000),
        StepType::InstallationDiskSpeedCheck => (5_000, 20_000),
        StepType::ContainerImageAvailability => (20_000, 180_000),
        StepType::DownloadBootArtifacts => (10_000, 60_000),
        StepType::LogsGather => (5_000, 20_000),
        StepType::DomainResolution
        | StepType::ApiVipConnectivityCheck
        | StepType::TangConnectivityCheck
        | StepType::UpgradeAgent
        | StepType::Install
        | StepType::StopInstallation
        | StepType::RebootForReclaim
        | StepType::Execute
        | StepType::NextStepRunner => (200, 2_000),
    };
    draws.between(low, high)
}

/// A small number that follows from a text.
pub fn digest(text: &str) -> u64 {
    xxh3_64(text.as_bytes())
}
