//! Whether container images are available: asked for as a pull would, with the same credentials, mirrors and
//! certificates.
//!
//! The reference pulls each image. This agent has no container engine and runs none of them itself: it reads the
//! manifest, which tells the size, and the beginning of the largest layer, which tells the rate. The rest of a pull would
//! be more of the same.

mod client;
mod manifest;
mod name;
mod places;

use super::{Context, json};
use crate::clock::Backoff;
use crate::note;
use client::{Failure, Registry};
use muster_contract::v2::agent::args::ImageAvailabilityArgs;
use muster_contract::v2::agent::replies::{ImageAvailability, ImageAvailabilityReply};
use muster_vocabulary::ReplyResult;
use places::{Place, Places};
use std::time::{Duration, Instant};

/// Where podman, and the config of an image, have the pull secret. Relative to the root.
pub const CREDENTIALS: &str = "root/.docker/config.json";
/// Where they have registries to use instead of others.
pub const MIRRORS: &str = "etc/containers/registries.conf";
/// When the hub names no time: as the reference does.
const TIMEOUT: Duration = Duration::from_secs(960);
/// What may pass is tried so often.
const TRIES: u32 = 3;

pub fn reach(context: &Context, args: &ImageAvailabilityArgs) -> anyhow::Result<String> {
    let timeout = u64::try_from(args.timeout).ok().filter(|seconds| *seconds > 0);
    let until = Instant::now() + timeout.map_or(TIMEOUT, Duration::from_secs);
    let places = Places::parse(&context.machine.text(MIRRORS));
    let registry = Registry::new(context, until)?;
    let images = args
        .images
        .iter()
        .map(|name| one(context, &registry, &places, name));
    json(&ImageAvailabilityReply {
        images: images.collect(),
    })
}

fn one(context: &Context, registry: &Registry, places: &Places, name: &str) -> ImageAvailability {
    let start = Instant::now();
    let found = find(context, registry, &places.of(name));
    let (result, size, rate) = match found {
        Ok((size, rate)) => (ReplyResult::Success, size, rate),
        Err(error) => {
            note!("{name} is not available: {error:#}");
            (ReplyResult::Failure, 0, 0.0)
        }
    };
    ImageAvailability {
        name: name.to_owned(),
        result: result.into(),
        size_bytes: size as f64,
        time: rounded(start.elapsed().as_secs_f64()),
        download_rate: rate,
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The first place that has it, with its bytes and MB/s. When none has it, the error holds what every place says.
fn find(context: &Context, registry: &Registry, places: &[Place]) -> anyhow::Result<(u64, f64)> {
    let mut reasons = Vec::new();
    for place in places {
        match patiently(context, || registry.pull(place)) {
            Ok(found) => return Ok(found),
            Err(failure) => reasons.push(format!("{}: {failure}", place.name)),
        }
    }
    anyhow::bail!("{}", reasons.join("; "))
}

fn patiently<T>(context: &Context, mut call: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(10));
    for _ in 1..TRIES {
        match call() {
            Err(Failure::MayPass(_)) => context.clock.sleep(backoff.next_pause()),
            other => return other,
        }
    }
    call()
}
