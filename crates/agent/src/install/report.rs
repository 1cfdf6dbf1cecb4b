//! Tells the hub how far an installation is, and asks it for what the installation needs; patiently.

use crate::clock::chance;
use crate::hub::{self, CallError};
use crate::note;
use crate::steps::Context;
use muster_vocabulary::Stage;
use std::time::Duration;

/// As the reference's installer: what is missing is asked for ten times, what is broken for an hour and 360 times.
const MISSING_TRIES: u32 = 10;
const BROKEN_TRIES: u32 = 360;
const BROKEN_TIME: Duration = Duration::from_secs(60 * 60);
const PAUSE_SECONDS: (f64, f64) = (2.0, 10.0);

/// Why an installation ends early.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The hub, or a person, has other plans: nobody wants to hear of it.
    #[error("the hub has other plans for this host: {0}")]
    Unwanted(String),
    #[error(transparent)]
    Failed(#[from] anyhow::Error),
}

/// How long a call that fails is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Asking again changes nothing.
    None,
    /// It may be made in a moment.
    Missing,
    /// The hub, or the way to it, is broken; somebody mends it.
    Broken,
}

impl Patience {
    fn with(error: &CallError, is_file: bool) -> Self {
        match error {
            CallError::Refused {
                status: 401 | 403 | 404 | 423 | 425,
                ..
            } => Self::Missing,
            // A file that is not made yet is like one that is missing.
            CallError::Refused { status: 409, .. } if is_file => Self::Missing,
            CallError::Refused {
                status: 408 | 429 | 500..=599,
                ..
            }
            // What cannot be read was said by somebody on the way.
            | CallError::Unreadable(_)
            | CallError::Lost(_)
            | CallError::Untrusted(_) => Self::Broken,
            CallError::Refused { .. } => Self::None,
        }
    }

    fn is_over(self, failures: u32, waited: Duration) -> bool {
        match self {
            Self::None => true,
            Self::Missing => failures > MISSING_TRIES,
            Self::Broken => failures > BROKEN_TRIES && waited > BROKEN_TIME,
        }
    }
}

/// Repeats a call until it works or is no use.
pub fn patiently<T>(
    context: &Context,
    is_file: bool,
    mut call: impl FnMut() -> hub::Result<T>,
) -> Result<T, Ended> {
    let start = context.clock.now();
    let mut failures = 0;
    loop {
        if context.shared.install.is_cancelled() {
            return Err(Ended::Unwanted("the hub told it to stop".into()));
        }
        let error = match call() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !is_file && error.status() == Some(409) {
            return Err(Ended::Unwanted(error.to_string()));
        }
        failures += 1;
        let waited = context.clock.now().saturating_sub(start);
        if Patience::with(&error, is_file).is_over(failures, waited) {
            return Err(Ended::Failed(error.into()));
        }
        let (least, most) = PAUSE_SECONDS;
        context
            .clock
            .sleep(Duration::from_secs_f64(least + (most - least) * chance()));
    }
}

pub fn stage(context: &Context, stage: Stage, info: Option<String>) -> Result<(), Ended> {
    note!("{stage} {}", info.as_deref().unwrap_or_default());
    patiently(context, false, || {
        context.hub.progress(context.ids, stage, info.clone())
    })
}

/// Tells percentages of writing in steps of five. A percentage that cannot be told now is soon outdated.
pub struct Percent<'a> {
    context: &'a Context,
    told: u64,
}

impl<'a> Percent<'a> {
    pub fn new(context: &'a Context) -> Self {
        Self { context, told: 0 }
    }

    pub fn tell(&mut self, percent: u64) {
        let step = percent.min(100) / 5 * 5;
        if step <= self.told {
            return;
        }
        self.told = step;
        let info = Some(format!("{step}%"));
        match self
            .context
            .hub
            .progress_now(self.context.ids, Stage::Writing, info)
        {
            Err(error) if error.status() == Some(409) => self.context.shared.install.cancel(),
            Ok(()) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patience(status: u16, is_file: bool) -> Patience {
        let reason = String::new();
        Patience::with(&CallError::Refused { status, reason }, is_file)
    }

    #[test]
    fn a_broken_hub_is_waited_for_at_least_an_hour() {
        for status in [500, 502, 503, 504, 429] {
            assert_eq!(patience(status, false), Patience::Broken, "{status}");
        }
        assert_eq!(
            Patience::with(&CallError::Lost(String::new()), false),
            Patience::Broken
        );
        let hour = Duration::from_secs(3601);
        assert!(!Patience::Broken.is_over(10_000, Duration::from_secs(3599)));
        assert!(!Patience::Broken.is_over(360, hour));
        assert!(Patience::Broken.is_over(361, hour));
    }

    #[test]
    fn what_is_missing_is_asked_for_some_times_and_what_is_wrong_once() {
        assert_eq!(patience(404, false), Patience::Missing);
        assert_eq!(
            (patience(409, true), patience(409, false)),
            (Patience::Missing, Patience::None)
        );
        assert!(
            !Patience::Missing.is_over(10, Duration::MAX) && Patience::Missing.is_over(11, Duration::ZERO)
        );
        assert!(patience(400, false).is_over(1, Duration::ZERO));
    }
}
