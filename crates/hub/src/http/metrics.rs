//! Measures every request and prints what there is to watch.
//!
//! The text format is a dozen lines to write by hand, and a registry would cost locks and allocations per request.

use crate::Hub;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::response::IntoResponse;
use muster_domain::cluster::PreparationStatus;
use muster_domain::cluster::{Cluster, Phase};
use muster_domain::host::Status;
use muster_store::RowKind;
use std::fmt::Write;
use std::hash::Hasher;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::Xxh3Default;

/// Upper bounds in microseconds; from a poll answered from memory to a list that is too long.
const BOUNDS: [u64; 12] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000,
];
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Several times the number of routes and methods there are, so that probing stays short. A power of two.
const PLACES: usize = 1024;
/// Requests that matched no route; paths that people make up are not counted one by one.
const NO_ROUTE: &str = "none";

/// One series per route and method, each in a fixed place: noting a request reads and adds, and takes no lock.
pub struct Metrics {
    places: Box<[OnceLock<Box<Series>>]>,
}

struct Series {
    method: &'static str,
    route: String,
    classes: [Histogram; CLASSES.len()],
}

#[derive(Default)]
struct Histogram {
    /// How many fell into each bucket, not cumulated; the last one has no bound.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_micros: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            places: std::iter::repeat_with(OnceLock::new).take(PLACES).collect(),
        }
    }
}

impl Metrics {
    pub fn note(&self, method: &Method, route: &str, status: u16, took: Duration) {
        let Some(series) = self.series(word(method), route) else {
            return;
        };
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        series.classes[class].note(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    fn series(&self, method: &'static str, route: &str) -> Option<&Series> {
        let mut hasher = Xxh3Default::new();
        hasher.write(method.as_bytes());
        hasher.write(route.as_bytes());
        let start = hasher.finish() as usize;
        for probe in 0..PLACES {
            let place = &self.places[(start + probe) % PLACES];
            let known = place.get_or_init(|| {
                let classes = std::array::from_fn(|_| Histogram::default());
                Box::new(Series {
                    method,
                    route: route.to_owned(),
                    classes,
                })
            });
            if known.method == method && known.route == route {
                return Some(known);
            }
        }
        // More series than places: the oldest are worth more than a rehash on the hot path.
        None
    }

    fn write(&self, text: &mut String) {
        head(
            text,
            "muster_http_request_duration_seconds",
            "histogram",
            "Time to answer, by route and kind of answer.",
        );
        let mut all: Vec<_> = self.places.iter().filter_map(OnceLock::get).collect();
        all.sort_by(|a, b| (&a.route, a.method).cmp(&(&b.route, b.method)));
        for series in all {
            for (class, histogram) in CLASSES.iter().zip(&series.classes) {
                let labels = format!(
                    "method=\"{}\",route=\"{}\",status=\"{class}\"",
                    series.method, series.route
                );
                histogram.write(text, &labels);
            }
        }
    }
}

impl Histogram {
    fn note(&self, micros: u64) {
        let bucket = BOUNDS
            .iter()
            .position(|bound| micros <= *bound)
            .unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_micros.fetch_add(micros, Relaxed);
    }

    fn write(&self, text: &mut String, labels: &str) {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return;
        }
        let name = "muster_http_request_duration_seconds";
        let mut so_far = 0;
        for (bound, count) in BOUNDS.iter().zip(&counts) {
            so_far += count;
            let _ = writeln!(
                text,
                "{name}_bucket{{{labels},le=\"{}\"}} {so_far}",
                seconds(*bound)
            );
        }
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {total}");
        let _ = writeln!(
            text,
            "{name}_sum{{{labels}}} {}",
            seconds(self.sum_micros.load(Relaxed))
        );
        let _ = writeln!(text, "{name}_count{{{labels}}} {total}");
    }
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

fn word(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "OTHER",
    }
}

/// A request that is being answered.
pub struct Timing {
    started: Instant,
    method: Method,
    /// Shares the router's own text.
    route: Option<MatchedPath>,
}

impl Timing {
    pub fn begin(request: &Request) -> Self {
        Self {
            started: Instant::now(),
            method: request.method().clone(),
            route: request.extensions().get::<MatchedPath>().cloned(),
        }
    }

    pub fn end(self, metrics: &Metrics, status: StatusCode) {
        let route = self.route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
        metrics.note(&self.method, route, status.as_u16(), self.started.elapsed());
    }
}

pub async fn page(State(hub): State<Hub>) -> impl IntoResponse {
    let mut text = String::with_capacity(64 * 1024);
    pools(&mut text, &hub);
    agents(&mut text, &hub);
    workers(&mut text, &hub);
    set_aside(&mut text, &hub);
    images(&mut text, &hub);
    if let Some(tls) = hub.tls() {
        crate::tls::metrics(&mut text, tls);
    }
    hub.metrics.write(&mut text);
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
}

fn head(text: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

fn single(text: &mut String, name: &str, kind: &str, about: &str, value: impl std::fmt::Display) {
    head(text, name, kind, about);
    let _ = writeln!(text, "{name} {value}");
}

fn pools(text: &mut String, hub: &Hub) {
    let (_, clusters, infra_envs) = hub.index.counts();
    let counts = hub.index.hosts_by_status();
    head(text, "muster_hosts", "gauge", "Hosts by status.");
    for status in Status::ALL {
        let count = counts.get(status).copied().unwrap_or(0);
        let _ = writeln!(text, "muster_hosts{{status=\"{}\"}} {count}", status.word());
    }
    single(text, "muster_clusters", "gauge", "Clusters.", clusters);
    single(text, "muster_infra_envs", "gauge", "InfraEnvs.", infra_envs);
    let about = "Clusters whose installation files the hub has not made yet.";
    let waiting = |cluster: &Cluster| {
        cluster.phase == Phase::Preparing
            && cluster.install.preparation.status == PreparationStatus::NotStarted
    };
    let waiting = hub
        .index
        .clusters()
        .iter()
        .filter(|cluster| waiting(cluster))
        .count();
    single(text, "muster_cluster_files_waiting", "gauge", about, waiting);
    let about = "Clusters whose findings do not reflect their newest changes yet.";
    single(
        text,
        "muster_clusters_to_reconcile",
        "gauge",
        about,
        hub.clusters_to_reconcile(),
    );
    let newest = *hub.newest_change.borrow();
    single(
        text,
        "muster_change_seq",
        "counter",
        "Number of the newest change.",
        newest,
    );
    let started = hub.started_at.as_second();
    single(
        text,
        "muster_process_start_time_seconds",
        "gauge",
        "When the hub started, since 1970.",
        started,
    );
}

fn set_aside(text: &mut String, hub: &Hub) {
    let rows = hub.store.unreadable();
    let name = "muster_unreadable_rows";
    head(
        text,
        name,
        "gauge",
        "Rows of the database that the hub cannot read and has set aside.",
    );
    for kind in RowKind::all() {
        let count = rows.iter().filter(|row| row.kind == kind).count();
        let _ = writeln!(text, "{name}{{kind=\"{}\"}} {count}", kind.word());
    }
}

/// A connected agent polls once a minute; these are late.
const LATE: i64 = 90;

fn agents(text: &mut String, hub: &Hub) {
    let now = hub.now();
    let slots = hub.index.keys().into_iter().filter_map(|key| hub.index.slot(key));
    let alive = slots.filter(|slot| slot.row().connected);
    let ages = alive.map(|slot| now.duration_since(slot.live.last_poll()).as_secs().max(0));
    let (mut oldest, mut late) = (0, 0_u64);
    for age in ages {
        oldest = oldest.max(age);
        late += u64::from(age > LATE);
    }
    let about = "Longest time since the last poll of a host that counts as connected.";
    single(text, "muster_agent_poll_lag_seconds", "gauge", about, oldest);
    let about = "Connected hosts whose last poll is more than 90 seconds ago.";
    single(text, "muster_agents_late", "gauge", about, late);
}

/// Nothing when another service serves the images.
fn images(text: &mut String, hub: &Hub) {
    let Some(images) = hub.images() else { return };
    muster_image::serve::metrics::write(text, images);
}

fn workers(text: &mut String, hub: &Hub) {
    let workers = hub.workers.read();
    head(
        text,
        "muster_worker_runs_total",
        "counter",
        "Runs of each worker.",
    );
    for (name, worker) in &workers {
        let _ = writeln!(
            text,
            "muster_worker_runs_total{{worker=\"{name}\"}} {}",
            worker.runs
        );
    }
    head(
        text,
        "muster_worker_failures_total",
        "counter",
        "Failed runs of each worker.",
    );
    for (name, worker) in &workers {
        let _ = writeln!(
            text,
            "muster_worker_failures_total{{worker=\"{name}\"}} {}",
            worker.failures
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulated_and_end_with_everything() {
        let metrics = Metrics::default();
        let note = |status, micros| metrics.note(&Method::GET, "/x", status, Duration::from_micros(micros));
        note(200, 90);
        note(204, 600);
        note(200, 60_000_000);
        note(503, 1);
        let mut text = String::new();
        metrics.write(&mut text);
        let line = |end: &str| format!("muster_http_request_duration_seconds{end}");
        let labels = "method=\"GET\",route=\"/x\",status=\"2xx\"";
        for expected in [
            line(&format!("_bucket{{{labels},le=\"0.0001\"}} 1\n")),
            line(&format!("_bucket{{{labels},le=\"0.001\"}} 2\n")),
            line(&format!("_bucket{{{labels},le=\"10\"}} 2\n")),
            line(&format!("_bucket{{{labels},le=\"+Inf\"}} 3\n")),
            line(&format!("_count{{{labels}}} 3\n")),
            line("_count{method=\"GET\",route=\"/x\",status=\"5xx\"} 1\n"),
        ] {
            assert!(text.contains(&expected), "{expected} is not in\n{text}");
        }
        assert!(!text.contains("4xx"));
    }

    #[test]
    fn a_full_table_forgets_newcomers_only() {
        let metrics = Metrics::default();
        for number in 0..PLACES + 10 {
            metrics.note(&Method::GET, &format!("/{number}"), 200, Duration::ZERO);
        }
        assert!(metrics.series("GET", "/0").is_some());
        assert!(metrics.series("GET", "/never").is_none());
    }
}
