//! How faults are written, as on a command line.

use super::{Fault, FaultError, FaultKind, Victims, When};
use muster_vocabulary::Stage;
use std::str::FromStr;

/// Long enough for a host to register and report once.
const SILENT_AFTER_MS: u64 = 90_000;
const FLAP_EVERY_MS: u64 = 60_000;
/// Twice what a disk may take.
const SLOW_DISK_MS: i64 = 20;

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
    let number = |at: usize| details.get(at).map(|text| whole_number(text)).transpose();
    let times = |at: usize| number(at).map(|times| times.map_or(1, |n| u32::try_from(n).unwrap_or(u32::MAX)));
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
        "reboot" => match when(details.first().ok_or_else(|| must("when"))?)? {
            When::After(ms) => FaultKind::RebootAfter { ms },
            When::Stage(stage) => FaultKind::RebootAtStage { stage },
        },
        "wrong-boot" => FaultKind::RebootAtStage {
            stage: Stage::Rebooting,
        },
        "power-off" => FaultKind::PowerOff {
            when: when(details.first().ok_or_else(|| must("when"))?)?,
            for_ms: duration(1)?,
        },
        "cut-off" => FaultKind::CutOff {
            when: when(details.first().ok_or_else(|| must("when"))?)?,
            for_ms: duration(1)?,
        },
        "fail" => FaultKind::FailAtStage {
            stage: stage(details.first().ok_or_else(|| must("the stage"))?)?,
        },
        "install-exit" => FaultKind::InstallExit {
            code: number(0)?.unwrap_or(1),
        },
        "slow-images" => FaultKind::SlowImages {
            by_ms: duration(0)?.ok_or_else(|| must("how slow"))?,
        },
        "image-failure" => FaultKind::ImageFailure { times: times(0)? },
        "slow-disk" => FaultKind::SlowDisk {
            io_sync_ms: number(0)?.unwrap_or(SLOW_DISK_MS),
        },
        "shrinking-disk" => FaultKind::ShrinkingDisk,
        "reclaim-failure" => FaultKind::ReclaimFailure { times: times(0)? },
        "media-loss" => FaultKind::MediaLoss {
            after_ms: duration(0)?.unwrap_or(0),
        },
        "clock-skew" => FaultKind::ClockSkew {
            ms: skew(details.first().ok_or_else(|| must("by how much"))?)?,
        },
        "flapping-inventory" => FaultKind::FlappingInventory {
            every_ms: duration(0)?.unwrap_or(FLAP_EVERY_MS),
        },
        other => return Err(format!("there is no fault {other:?}")),
    };
    let most = match word {
        "dup-uuid" | "wrong-boot" | "shrinking-disk" => 0,
        "silent" | "power-off" | "cut-off" => 2,
        _ => 1,
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

fn when(text: &str) -> Result<When, String> {
    if let Ok(ms) = duration_ms(text) {
        return Ok(When::After(ms));
    }
    let stage = stage(text).map_err(|_| format!("{text:?} is neither a time nor a stage of installation"))?;
    Ok(When::Stage(stage))
}

fn stage(text: &str) -> Result<Stage, String> {
    // Stages contain spaces; dashes are easier to type.
    let plain = text.replace('-', " ");
    let found = Stage::ALL
        .iter()
        .find(|stage| stage.word().eq_ignore_ascii_case(&plain));
    found
        .copied()
        .ok_or_else(|| format!("{text:?} is not a stage of installation"))
}

fn whole_number(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a whole number"))
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
