//! What there is to watch, in Prometheus' text format: the same lines from the hub and from a service of its own.
//!
//! Written by hand, because a registry would want every number twice: here they are read from where they live.

use super::Images;
use crate::depot::Status;
use std::fmt::{Display, Write};

/// Appends the lines about images and their base images.
pub fn write(text: &mut String, images: &Images) {
    streams(text, images);
    let made = images.cache();
    let about = "Requests answered with an image that was made before.";
    single(text, "muster_image_cache_hits_total", "counter", about, made.hits);
    let about = "Images made because there was none yet, or settings changed.";
    single(
        text,
        "muster_image_cache_misses_total",
        "counter",
        about,
        made.misses,
    );
    let about = "Memory that images take, without what is read from base images.";
    single(text, "muster_image_cache_bytes", "gauge", about, made.bytes);
    let about = "Base images deleted to make room for others.";
    let gone = images.depot().evictions();
    single(text, "muster_base_image_evictions_total", "counter", about, gone);
    let about = "Room on disk that base images take, with those that are being fetched.";
    single(
        text,
        "muster_base_images_disk_bytes",
        "gauge",
        about,
        images.depot().taken_bytes(),
    );
    let about = "Room on disk that base images may take.";
    single(
        text,
        "muster_base_images_disk_limit_bytes",
        "gauge",
        about,
        images.depot().bound_bytes(),
    );
    base_images(text, &images.depot().list());
}

fn streams(text: &mut String, images: &Images) {
    let totals = images.totals();
    let about = "Replies with images or parts of them that are on their way.";
    single(text, "muster_image_downloads", "gauge", about, totals.streams);
    let about = "Requests for images that wait until others have ended.";
    single(
        text,
        "muster_image_downloads_waiting",
        "gauge",
        about,
        images.waiting(),
    );
    let about = "Replies with images or parts of them.";
    single(
        text,
        "muster_image_replies_total",
        "counter",
        about,
        totals.replies,
    );
    let about = "Bytes of images sent.";
    single(
        text,
        "muster_image_bytes_total",
        "counter",
        about,
        totals.sent_bytes,
    );
}

fn base_images(text: &mut String, list: &[Status]) {
    let labels = |status: &Status| {
        let (version, architecture) = (quotable(&status.version), quotable(&status.architecture));
        format!("version=\"{version}\",architecture=\"{architecture}\"")
    };
    let name = "muster_base_image_state";
    let about = "State of each base image that a client asked for; always 1.";
    head(text, name, "gauge", about);
    for status in list {
        let _ = writeln!(text, "{name}{{{},state=\"{}\"}} 1", labels(status), status.state);
    }
    let name = "muster_base_image_bytes";
    head(text, name, "gauge", "How much of each base image the hub has.");
    for status in list {
        let _ = writeln!(text, "{name}{{{}}} {}", labels(status), status.done_bytes);
    }
    let name = "muster_base_image_expected_bytes";
    let about = "How large each base image is, once its server has said so.";
    head(text, name, "gauge", about);
    for status in list {
        if let Some(total) = status.total_bytes {
            let _ = writeln!(text, "{name}{{{}}} {total}", labels(status));
        }
    }
}

/// Versions come from a list that people write.
fn quotable(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) {
    let _ = write!(text, "# HELP {name} {about}\n# TYPE {name} {kind}\n");
}

fn single(text: &mut String, name: &str, kind: &str, about: &str, value: impl Display) {
    head(text, name, kind, about);
    let _ = writeln!(text, "{name} {value}");
}
