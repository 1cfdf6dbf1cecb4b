//! Counters of the operator, and the small server that shows them together with its health.
//!
//! The text is written by hand, because a registry would want every number twice: here they are read from where they live.

use super::work::Next;
use super::{Context, listener};
use crate::controller;
use crate::error::Error;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;

#[derive(Debug, Default)]
pub struct Metrics {
    reconciles: Mutex<BTreeMap<&'static str, Reconciles>>,
    requests: Arc<Requests>,
    fed: AtomicU64,
    hub_is_there: AtomicBool,
    caches_are_ready: AtomicBool,
    /// Groups of controllers that act or wait to act, and how many of them act.
    groups: AtomicUsize,
    leading: AtomicUsize,
}

/// What one controller reconciled.
#[derive(Debug, Default, Clone, Copy)]
struct Reconciles {
    done: u64,
    conflicts: u64,
    failures: u64,
    micros: u128,
}

/// Requests to the Kubernetes API by what they do. Watches are counted when they begin.
#[derive(Debug, Default)]
pub struct Requests(Mutex<BTreeMap<&'static str, u64>>);

impl Requests {
    pub fn count(&self, method: &http::Method) {
        let word = match *method {
            http::Method::GET => "get",
            http::Method::POST => "post",
            http::Method::PUT => "put",
            http::Method::PATCH => "patch",
            http::Method::DELETE => "delete",
            _ => "other",
        };
        *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(word)
            .or_default() += 1;
    }

    pub fn snapshot(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All but reads.
    pub fn writes(&self) -> u64 {
        self.snapshot()
            .iter()
            .filter(|(method, _)| **method != "get")
            .map(|(_, count)| count)
            .sum()
    }
}

impl Metrics {
    pub fn new(requests: Arc<Requests>) -> Self {
        Self {
            requests,
            ..Self::default()
        }
    }

    pub fn reconciled(&self, controller: &'static str, took: Duration, outcome: &Result<Next, Error>) {
        let mut all = self.reconciles.lock().unwrap_or_else(PoisonError::into_inner);
        let reconciles = all.entry(controller).or_default();
        reconciles.done += 1;
        reconciles.micros += took.as_micros();
        match outcome {
            Ok(_) | Err(Error::Gone) => {}
            Err(Error::Conflict) => reconciles.conflicts += 1,
            Err(Error::Kube(_) | Error::Hub(_) | Error::Panic | Error::Start(_)) => reconciles.failures += 1,
        }
    }

    pub fn fed(&self, changes: usize) {
        self.fed.fetch_add(changes as u64, Ordering::Relaxed);
    }

    /// Whether that is news.
    pub fn hub_is_there(&self, there: bool) -> bool {
        self.hub_is_there.swap(there, Ordering::Relaxed) != there
    }

    pub fn is_hub_there(&self) -> bool {
        self.hub_is_there.load(Ordering::Relaxed)
    }

    pub fn caches_are_ready(&self) {
        self.caches_are_ready.store(true, Ordering::Relaxed);
    }

    /// One more group of controllers wants to act.
    pub fn takes_part(&self) {
        self.groups.fetch_add(1, Ordering::Relaxed);
    }

    /// A group of controllers begins to act, or ends.
    pub fn leads(&self, leads: bool) {
        if leads {
            self.leading.fetch_add(1, Ordering::Relaxed);
        } else {
            self.leading.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// All that want to act do.
    fn is_leading(&self) -> bool {
        let groups = self.groups.load(Ordering::Relaxed);
        groups > 0 && self.leading.load(Ordering::Relaxed) == groups
    }

    /// In the text format of Prometheus.
    fn text<'a>(&self, queues: impl Iterator<Item = (&'a str, usize)>, joined: usize) -> String {
        let mut text = String::new();
        let mut line = |words: std::fmt::Arguments<'_>| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{words}");
        };
        line(format_args!("# TYPE muster_operator_reconciles_total counter"));
        let reconciles = self
            .reconciles
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for (name, reconciles) in &reconciles {
            line(format_args!(
                "muster_operator_reconciles_total{{controller=\"{name}\"}} {}",
                reconciles.done
            ));
        }
        line(format_args!(
            "# TYPE muster_operator_reconcile_failures_total counter"
        ));
        for (name, reconciles) in &reconciles {
            line(format_args!(
                "muster_operator_reconcile_failures_total{{controller=\"{name}\"}} {}",
                reconciles.failures
            ));
        }
        line(format_args!(
            "# TYPE muster_operator_reconcile_conflicts_total counter"
        ));
        for (name, reconciles) in &reconciles {
            line(format_args!(
                "muster_operator_reconcile_conflicts_total{{controller=\"{name}\"}} {}",
                reconciles.conflicts
            ));
        }
        line(format_args!(
            "# TYPE muster_operator_reconcile_seconds_total counter"
        ));
        for (name, reconciles) in &reconciles {
            let seconds =
                Duration::from_micros(u64::try_from(reconciles.micros).unwrap_or(u64::MAX)).as_secs_f64();
            line(format_args!(
                "muster_operator_reconcile_seconds_total{{controller=\"{name}\"}} {seconds}"
            ));
        }
        line(format_args!("# TYPE muster_operator_queue_length gauge"));
        for (name, length) in queues {
            line(format_args!(
                "muster_operator_queue_length{{controller=\"{name}\"}} {length}"
            ));
        }
        line(format_args!("# TYPE muster_operator_clusters_watched gauge"));
        line(format_args!("muster_operator_clusters_watched {joined}"));
        line(format_args!("# TYPE muster_operator_kube_requests_total counter"));
        for (method, count) in self.requests.snapshot() {
            line(format_args!(
                "muster_operator_kube_requests_total{{method=\"{method}\"}} {count}"
            ));
        }
        let flag = |flag: &AtomicBool| u8::from(flag.load(Ordering::Relaxed));
        line(format_args!("# TYPE muster_operator_hub_changes_total counter"));
        line(format_args!(
            "muster_operator_hub_changes_total {}",
            self.fed.load(Ordering::Relaxed)
        ));
        line(format_args!("# TYPE muster_operator_hub_up gauge"));
        line(format_args!(
            "muster_operator_hub_up {}",
            flag(&self.hub_is_there)
        ));
        line(format_args!("# TYPE muster_operator_leads gauge"));
        line(format_args!(
            "muster_operator_leads {}",
            u8::from(self.is_leading())
        ));
        text
    }
}

/// Serves `/metrics`, `/queues`, `/healthz` and `/readyz` until it is dropped.
pub async fn serve(ctx: Arc<Context>, listener: TcpListener) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/queues", get(queues))
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(ready))
        .with_state(ctx);
    listener::serve(listener, router).await;
}

async fn metrics(State(ctx): State<Arc<Context>>) -> String {
    // For those that are switched off nothing waits, and their line stays: alerts must not miss a series.
    let all = controller::ALL.iter().map(|controller| (controller.name, 0));
    let mut lengths: BTreeMap<_, _> = all.collect();
    lengths.extend(ctx.queues.all().map(|(name, queue)| (name, queue.len())));
    ctx.metrics.text(lengths.into_iter(), ctx.joining.len())
}

/// Which objects are being reconciled, and which wait for what: what to read first when nothing happens.
async fn queues(State(ctx): State<Arc<Context>>) -> String {
    let lines = ctx.queues.all().flat_map(|(name, queue)| {
        let lines = queue.lines().into_iter();
        lines.map(move |line| format!("{name}: {line}\n"))
    });
    lines.collect()
}

/// A standby is ready, too: it would act at once.
async fn ready(State(ctx): State<Arc<Context>>) -> (StatusCode, &'static str) {
    if ctx.metrics.caches_are_ready.load(Ordering::Relaxed) {
        (StatusCode::OK, "ok")
    } else {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            "the operator is still reading objects",
        )
    }
}
