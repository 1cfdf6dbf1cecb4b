//! Faults on request: what can be wrong with which hosts, written as `kind:who[:details]`.
//!
//! | text | what happens |
//! |---|---|
//! | `silent:5%[:AFTER[:FOR]]` | stops AFTER its start (90 s), comes back after FOR or never |
//! | `dup-uuid:2` | pairs of machines show one id |
//! | `slow-replies:10%:30s` | every step takes so much longer |
//! | `lost-replies:10%[:50%]` | that share of its replies never reaches the hub |
//! | `doubled-replies:10%[:100%]` | that share of its replies arrives twice |
//! | `reboot:1%:5m`, `reboot:#3:Installing` | reboots once, so long after its start, or into discovery at a stage of installation |
//! | `wrong-boot:#3` | boots discovery instead of the disk it was installed to, once |
//! | `power-off:#3:WHEN[:FOR]` | loses power once, comes back after FOR or never |
//! | `cut-off:100%:WHEN[:FOR]` | cannot reach the hub for a while, or ever again |
//! | `fail:#3:STAGE` | its installer reports a failure in that stage, once |
//! | `install-exit:#3[:CODE]` | its installer cannot be started, once (code 1) |
//! | `slow-images:10%:5m` | its check of container images takes so much longer |
//! | `image-failure:#3[:TIMES]` | its check of container images finds none, so often (once) |
//! | `slow-disk:#3[:MS]` | its disk takes that long to write (20 ms) |
//! | `shrinking-disk:#3` | its disks become too small once it belongs to a cluster |
//! | `reclaim-failure:#3[:TIMES]` | the boot artifacts of a reclaim cannot be stored, so often (once) |
//! | `media-loss:2%[:AFTER]` | the discovery image can no longer be read (after 0 s) |
//! | `clock-skew:10%:-5m` | its clock is off |
//! | `flapping-inventory:1%[:EVERY]` | its inventory changes to and fro (every 60 s) |
//!
//! Who: a share of the fleet (`5%`, chosen by the seed), the first hosts (`2`), or one host by its place (`#7`). When:
//! a time after the host's start (`5m`), or a stage of its installation (`writing-image-to-disk`).

mod text;

use crate::seed::share;
use crate::setup::Setup;
use muster_vocabulary::Stage;

pub use text::duration_ms;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    pub kind: FaultKind,
    pub victims: Victims,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    Silent { after_ms: u64, for_ms: Option<u64> },
    DuplicateUuid,
    SlowReplies { by_ms: u64 },
    LostReplies { share: f64 },
    DoubledReplies { share: f64 },
    RebootAfter { ms: u64 },
    RebootAtStage { stage: Stage },
    PowerOff { when: When, for_ms: Option<u64> },
    CutOff { when: When, for_ms: Option<u64> },
    FailAtStage { stage: Stage },
    InstallExit { code: i64 },
    SlowImages { by_ms: u64 },
    ImageFailure { times: u32 },
    SlowDisk { io_sync_ms: i64 },
    ShrinkingDisk,
    ReclaimFailure { times: u32 },
    MediaLoss { after_ms: u64 },
    ClockSkew { ms: i64 },
    FlappingInventory { every_ms: u64 },
}

/// The moment at which something happens to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long after its start.
    After(u64),
    /// When it has reported this stage of its installation.
    Stage(Stage),
}

/// What happens to a host at a stage of its installation, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mishap {
    Fail,
    /// It boots the discovery image.
    Reboot,
    PowerOff {
        for_ms: Option<u64>,
    },
    CutOff {
        for_ms: Option<u64>,
    },
}

/// Places count from the fleet's first host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Victims {
    Share(f64),
    First(u32),
    Host(u32),
}

/// Why a fault could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fault {text:?}: {why}")]
pub struct FaultError {
    pub text: String,
    pub why: String,
}

/// What is wrong with one host; times count from its start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostFaults {
    pub silent: Option<(u64, u64)>,
    pub slow_ms: u64,
    pub lost_share: f64,
    pub doubled_share: f64,
    pub reboot_after_ms: Option<u64>,
    pub power_off_after: Option<(u64, Option<u64>)>,
    /// When the hub is out of reach, from and until.
    pub cut_off: Option<(u64, u64)>,
    pub mishaps: Vec<(Stage, Mishap)>,
    pub install_exit: Option<i64>,
    pub slow_images_ms: u64,
    pub image_failures: u32,
    pub io_sync_ms: Option<i64>,
    pub shrinks: bool,
    pub reclaim_failures: u32,
    pub media_loss_after_ms: Option<u64>,
    pub clock_skew_ms: i64,
    pub flap_every_ms: Option<u64>,
}

impl HostFaults {
    /// Nothing for the many hosts that are well: they pay eight bytes for the possibility.
    pub fn of(setup: &Setup, index: u32) -> Option<Box<Self>> {
        let place = index - setup.first_index;
        let mut faults = Self::default();
        for (rule, fault) in setup.faults.iter().enumerate() {
            if fault.victims.include(setup.seed, rule, place) {
                faults.add(fault.kind);
            }
        }
        (faults != Self::default()).then(|| Box::new(faults))
    }

    fn add(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::Silent { after_ms, for_ms } => {
                let until = for_ms.map_or(u64::MAX, |ms| after_ms.saturating_add(ms));
                self.silent = Some((after_ms, until));
            }
            // Part of who the machine is, not of what happens to it: see `board`.
            FaultKind::DuplicateUuid => {}
            FaultKind::SlowReplies { by_ms } => self.slow_ms = by_ms,
            FaultKind::LostReplies { share } => self.lost_share = share,
            FaultKind::DoubledReplies { share } => self.doubled_share = share,
            FaultKind::RebootAfter { ms } => self.reboot_after_ms = Some(ms),
            FaultKind::RebootAtStage { stage } => self.mishaps.push((stage, Mishap::Reboot)),
            FaultKind::FailAtStage { stage } => self.mishaps.push((stage, Mishap::Fail)),
            FaultKind::PowerOff { when, for_ms } => match when {
                When::After(ms) => self.power_off_after = Some((ms, for_ms)),
                When::Stage(stage) => self.mishaps.push((stage, Mishap::PowerOff { for_ms })),
            },
            FaultKind::CutOff { when, for_ms } => match when {
                When::After(ms) => self.cut_off_from(ms, for_ms),
                When::Stage(stage) => self.mishaps.push((stage, Mishap::CutOff { for_ms })),
            },
            FaultKind::InstallExit { code } => self.install_exit = Some(code),
            FaultKind::SlowImages { by_ms } => self.slow_images_ms = by_ms,
            FaultKind::ImageFailure { times } => self.image_failures = times,
            FaultKind::SlowDisk { io_sync_ms } => self.io_sync_ms = Some(io_sync_ms),
            FaultKind::ShrinkingDisk => self.shrinks = true,
            FaultKind::ReclaimFailure { times } => self.reclaim_failures = times,
            FaultKind::MediaLoss { after_ms } => self.media_loss_after_ms = Some(after_ms),
            FaultKind::ClockSkew { ms } => self.clock_skew_ms = ms,
            FaultKind::FlappingInventory { every_ms } => self.flap_every_ms = Some(every_ms.max(1)),
        }
    }

    /// The hub is out of reach from `ms` after the host's start.
    pub fn cut_off_from(&mut self, ms: u64, for_ms: Option<u64>) {
        let until = for_ms.map_or(u64::MAX, |long| ms.saturating_add(long));
        self.cut_off = Some((ms, until));
    }

    /// What happens at this stage; each thing happens once.
    pub fn take_mishap(&mut self, stage: Stage) -> Option<Mishap> {
        let at = self.mishaps.iter().position(|(when, _)| *when == stage)?;
        Some(self.mishaps.remove(at).1)
    }
}

/// Whose board a machine has: its own, or its pair's first when a duplicate was asked for.
pub fn board(setup: &Setup, index: u32) -> u32 {
    let place = index - setup.first_index;
    let pair = place & !1;
    let cloned = setup.faults.iter().enumerate().any(|(rule, fault)| {
        fault.kind == FaultKind::DuplicateUuid && fault.victims.include_pair(setup.seed, rule, pair)
    });
    if cloned { setup.first_index + pair } else { index }
}

impl Victims {
    fn include(self, seed: u64, rule: usize, place: u32) -> bool {
        match self {
            Self::Share(part) => share(&[seed, rule as u64, u64::from(place), 5]) < part,
            Self::First(count) => place < count,
            Self::Host(one) => place == one,
        }
    }

    /// The same for machines that only fail in twos; `pair` is the place of the first.
    fn include_pair(self, seed: u64, rule: usize, pair: u32) -> bool {
        match self {
            Self::Share(_) | Self::First(_) => self.include(seed, rule, pair),
            Self::Host(one) => pair == one & !1,
        }
    }
}

#[cfg(test)]
mod tests;
