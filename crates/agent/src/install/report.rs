//! Tells the hub how far an installation is, and asks it for what the installation needs; patiently.

use crate::clock::chance;
use crate::hub::{self, CallError};
use crate::note;
use crate::steps::Context;
use muster_contract::v2::install::HostStage;
use std::time::Duration;

/// As the reference's installer: what is missing is asked for ten times, what is broken for about an hour.
const MISSING_TRIES: u32 = 10;
const BROKEN_TRIES: u32 = 360;
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

fn tries(error: &CallError, is_file: bool) -> u32 {
    match error {
        CallError::Refused {
            status: 404 | 423 | 425,
            ..
        } => MISSING_TRIES,
        // A file that is not made yet is like one that is missing.
        CallError::Refused { status: 409, .. } if is_file => MISSING_TRIES,
        CallError::Refused {
            status: 408 | 429 | 500..=599,
            ..
        }
        | CallError::Lost(_) => BROKEN_TRIES,
        CallError::Refused { .. } | CallError::Unreadable(_) => 0,
    }
}

/// Repeats a call until it works or is no use.
pub fn patiently<T>(
    context: &Context,
    is_file: bool,
    mut call: impl FnMut() -> hub::Result<T>,
) -> Result<T, Ended> {
    let mut failures = 0;
    loop {
        if context.shared.install.is_cancelled() {
            return Err(Ended::Unwanted("it was told to stop".into()));
        }
        let error = match call() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !is_file && error.status() == Some(409) {
            return Err(Ended::Unwanted(error.to_string()));
        }
        failures += 1;
        if failures > tries(&error, is_file) {
            return Err(Ended::Failed(error.into()));
        }
        let (least, most) = PAUSE_SECONDS;
        context
            .clock
            .sleep(Duration::from_secs_f64(least + (most - least) * chance()));
    }
}

pub fn stage(context: &Context, stage: HostStage, info: Option<String>) -> Result<(), Ended> {
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
            .progress_now(self.context.ids, HostStage::WritingImageToDisk, info)
        {
            Err(error) if error.status() == Some(409) => self.context.shared.install.cancel(),
            Ok(()) | Err(_) => {}
        }
    }
}
