//! Whether the registries of container images can be reached.
//!
//! The reference pulls each image. This agent has no container engine and runs none of them itself, so it asks the
//! registry whether it is there: any answer of its API, a demand for credentials included, counts as available. Sizes
//! and rates are not told.

use super::{Context, json};
use crate::http::{Http, Trust, client};
use muster_contract::v2::agent::args::ImageAvailabilityArgs;
use muster_contract::v2::agent::replies::{ImageAvailability, ImageAvailabilityReply};
use std::collections::HashMap;
use std::time::Instant;

pub fn reach(context: &Context, args: &ImageAvailabilityArgs) -> anyhow::Result<String> {
    let http = client(&Trust {
        root: context.machine.root.clone(),
        insecure: true,
        cacert: context.settings.cacert.clone(),
        extra: String::new(),
    })?;
    let mut asked: HashMap<String, (bool, f64)> = HashMap::new();
    let mut images = Vec::new();
    for name in &args.images {
        let (is_there, time) = *asked
            .entry(registry(name))
            .or_insert_with_key(|registry| ask(&http, registry));
        images.push(ImageAvailability {
            name: name.clone(),
            result: if is_there { "success" } else { "failure" }.into(),
            time,
            ..ImageAvailability::default()
        });
    }
    json(&ImageAvailabilityReply { images })
}

/// Registries of laboratories speak plain HTTP.
fn ask(http: &Http, registry: &str) -> (bool, f64) {
    let start = Instant::now();
    let answers = |scheme: &str| {
        let answer = http.head(format!("{scheme}://{registry}/v2/")).call();
        answer.is_ok_and(|answer| answer.status().as_u16() < 500)
    };
    let is_there = answers("https") || answers("http");
    (
        is_there,
        (start.elapsed().as_secs_f64() * 1000.0).round() / 1000.0,
    )
}

/// The first part of a name is a registry when it looks like a host.
fn registry(image: &str) -> String {
    let first = image.split('/').next().unwrap_or_default();
    let is_host = image.contains('/') && (first.contains('.') || first.contains(':') || first == "localhost");
    if is_host {
        first.to_owned()
    } else {
        "registry-1.docker.io".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_found_in_names() {
        for (image, host) in [
            ("quay.example/org/app:1", "quay.example"),
            ("localhost:5000/app@sha256:00", "localhost:5000"),
            ("localhost/app", "localhost"),
            ("library/busybox", "registry-1.docker.io"),
            ("busybox:1.36", "registry-1.docker.io"),
        ] {
            assert_eq!(registry(image), host, "{image}");
        }
    }
}
