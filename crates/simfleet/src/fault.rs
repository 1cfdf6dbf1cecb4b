//! Faults on request: what can be wrong with which hosts, written as `kind:who[:details]`.
//!
//! | text | what happens |
//! |---|---|
//! | `silent:5%[:AFTER[:FOR]]` | stops AFTER its start (90 s), comes back after FOR or never |
//! | `dup-uuid:2` | pairs of machines show one id |
//! | `slow-replies:10%:30s` | every step takes so much longer |
//! | `lost-replies:10%[:50%]` | that share of its replies never reaches the hub |
//! | `doubled-replies:10%[:100%]` | that share of its replies arrives twice |
//! | `reboot:1%:5m`, `reboot:#3:Rebooting` | reboots once, so long after its start or at a stage of installation |
//! | `media-loss:2%[:AFTER]` | the discovery image can no longer be read (after 0 s) |
//! | `clock-skew:10%:-5m` | its clock is off |
//! | `flapping-inventory:1%[:EVERY]` | its inventory changes to and fro (every 60 s) |
//!
//! Who: a share of the fleet (`5%`, chosen by the seed), the first hosts (`2`), or one host by its place (`#7`).

use crate::seed::share;
use crate::setup::Setup;
use muster_contract::v2::install::HostStage;
use std::str::FromStr;

/// Long enough for a host to register and report once.
const SILENT_AFTER_MS: u64 = 90_000;
const FLAP_EVERY_MS: u64 = 60_000;

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
    RebootAtStage { stage: HostStage },
    MediaLoss { after_ms: u64 },
    ClockSkew { ms: i64 },
    FlappingInventory { every_ms: u64 },
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
    pub reboot_at: Option<HostStage>,
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
            FaultKind::RebootAtStage { stage } => self.reboot_at = Some(stage),
            FaultKind::MediaLoss { after_ms } => self.media_loss_after_ms = Some(after_ms),
            FaultKind::ClockSkew { ms } => self.clock_skew_ms = ms,
            FaultKind::FlappingInventory { every_ms } => self.flap_every_ms = Some(every_ms.max(1)),
        }
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

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse(text).map_err(|why| FaultError {
            text: text.to_owned(),
            why,
        })
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let mut parts = text.split(':');
    let word = parts.next().unwrap_or_default();
    let who = parts
        .next()
        .ok_or("say who suffers it, as in silent:5%, silent:2 or silent:#7")?;
    let details: Vec<&str> = parts.collect();
    let duration = |at: usize| details.get(at).map(|text| duration_ms(text)).transpose();
    let part = |at: usize| details.get(at).map(|text| percent(text)).transpose();
    let must = |what: &str| format!("say {what} after the hosts");
    let kind = match word {
        "silent" => FaultKind::Silent {
            after_ms: duration(0)?.unwrap_or(SILENT_AFTER_MS),
            for_ms: duration(1)?,
        },
        "dup-uuid" => FaultKind::DuplicateUuid,
        "slow-replies" => FaultKind::SlowReplies {
            by_ms: duration(0)?.ok_or_else(|| must("how slow"))?,
        },
        "lost-replies" => FaultKind::LostReplies {
            share: part(0)?.unwrap_or(0.5),
        },
        "doubled-replies" => FaultKind::DoubledReplies {
            share: part(0)?.unwrap_or(1.0),
        },
        "reboot" => reboot(details.first().ok_or_else(|| must("when"))?)?,
        "media-loss" => FaultKind::MediaLoss {
            after_ms: duration(0)?.unwrap_or(0),
        },
        "clock-skew" => FaultKind::ClockSkew {
            ms: skew(details.first().ok_or_else(|| must("by how much"))?)?,
        },
        "flapping-inventory" => FaultKind::FlappingInventory {
            every_ms: duration(0)?.unwrap_or(FLAP_EVERY_MS),
        },
        other => return Err(format!("no fault is called {other:?}")),
    };
    let most = match kind {
        FaultKind::Silent { .. } => 2,
        FaultKind::DuplicateUuid => 0,
        FaultKind::SlowReplies { .. }
        | FaultKind::LostReplies { .. }
        | FaultKind::DoubledReplies { .. }
        | FaultKind::RebootAfter { .. }
        | FaultKind::RebootAtStage { .. }
        | FaultKind::MediaLoss { .. }
        | FaultKind::ClockSkew { .. }
        | FaultKind::FlappingInventory { .. } => 1,
    };
    match details.get(most) {
        Some(extra) => Err(format!("{extra:?} is one detail too many")),
        None => Ok(Fault {
            kind,
            victims: victims(who)?,
        }),
    }
}

fn victims(who: &str) -> Result<Victims, String> {
    let number = |text: &str| {
        text.parse::<u32>()
            .map_err(|_| format!("{text:?} is not a number of hosts"))
    };
    match who.strip_prefix('#') {
        Some(place) => Ok(Victims::Host(number(place)?)),
        None if who.ends_with('%') => Ok(Victims::Share(percent(who)?)),
        None => Ok(Victims::First(number(who)?)),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse::<f64>().ok());
    let number = number.filter(|number| (0.0..=100.0).contains(number));
    number
        .map(|number| number / 100.0)
        .ok_or_else(|| format!("{text:?} is not a percentage"))
}

fn reboot(when: &str) -> Result<FaultKind, String> {
    if let Ok(ms) = duration_ms(when) {
        return Ok(FaultKind::RebootAfter { ms });
    }
    // Stages contain spaces; dashes are easier to type.
    let plain = when.replace('-', " ");
    let stage = HostStage::ALL
        .iter()
        .find(|stage| stage.word().eq_ignore_ascii_case(&plain));
    let stage = stage.ok_or_else(|| format!("{when:?} is neither a time nor a stage of installation"))?;
    Ok(FaultKind::RebootAtStage { stage: *stage })
}

fn skew(text: &str) -> Result<i64, String> {
    let ms = i64::try_from(duration_ms(text.trim_start_matches(['-', '+']))?).map_err(|e| e.to_string())?;
    Ok(if text.starts_with('-') { -ms } else { ms })
}

/// `500ms`, `30s`, `5m`, `2h`; a bare number is seconds.
pub fn duration_ms(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        other => return Err(format!("{other:?} is not a unit of time; use ms, s, m or h")),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is not a time"))?;
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("{text:?} is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        text.parse().unwrap()
    }

    #[test]
    fn faults_are_read_from_text() {
        let slow = Fault {
            kind: FaultKind::SlowReplies { by_ms: 30_000 },
            victims: Victims::Share(0.1),
        };
        assert_eq!(fault("slow-replies:10%:30s"), slow);
        assert_eq!(fault("dup-uuid:2").victims, Victims::First(2));
        assert_eq!(
            fault("silent:#7:2m:1h").kind,
            FaultKind::Silent {
                after_ms: 120_000,
                for_ms: Some(3_600_000)
            }
        );
        let stage = HostStage::WritingImageToDisk;
        assert_eq!(
            fault("reboot:1:writing-image-to-disk").kind,
            FaultKind::RebootAtStage { stage }
        );
        assert_eq!(
            fault("clock-skew:5%:-5m").kind,
            FaultKind::ClockSkew { ms: -300_000 }
        );
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for text in [
            "",
            "silent",
            "silent:x",
            "silent:120%",
            "loud:5%",
            "slow-replies:5%",
            "dup-uuid:2:3",
            "reboot:1:noon",
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            assert!(!error.why.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_share_of_the_fleet_suffers() {
        let setup = Setup {
            faults: vec![fault("silent:5%")],
            ..Setup::default()
        };
        let silent = (0..10_000)
            .filter(|index| HostFaults::of(&setup, *index).is_some())
            .count();
        assert!((400..600).contains(&silent), "{silent} of 10,000");
    }

    #[test]
    fn duplicates_come_in_pairs() {
        let setup = Setup {
            first_index: 10,
            faults: vec![fault("dup-uuid:2")],
            ..Setup::default()
        };
        assert_eq!(
            [10, 11, 12, 13].map(|index| board(&setup, index)),
            [10, 10, 12, 13]
        );
    }
}
