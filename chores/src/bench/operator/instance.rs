//! The operator as a process of its own, and what it says of itself.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::bench::meter::Meter;
use crate::kube::Cluster;
use crate::{http, hub, port, process, project, wait};

/// An operator that still works after so long does not come to rest.
pub const REST_LIMIT: Duration = Duration::from_secs(600);
/// An operator rests that had nothing to do at so many looks, so far apart.
pub const CALM_LOOKS: u32 = 5;
pub const CALM_PAUSE: Duration = Duration::from_millis(200);

/// The operator as a process of its own.
pub struct Operator {
    pub begun: Instant,
    metrics_url: String,
    pub meter: Meter,
    _service: process::Service,
}

/// What the operator has done so far.
#[derive(Clone, Copy)]
pub struct Count {
    pub reads: f64,
    pub writes: f64,
    waiting: f64,
}

impl Operator {
    pub fn start(binary: &Path, home: &Path, cluster: &Cluster, hub_url: &str) -> Result<Self> {
        let begun = Instant::now();
        let address = format!("127.0.0.1:{}", port::free()?);
        let log = File::create(home.join("operator.log"))?;
        let mut command = process::ending_with_us(binary);
        project::without_proxy(&mut command)
            .args([
                "operator",
                "run",
                "--hub",
                hub_url,
                "--no-leader-election",
                "--metrics",
                &address,
            ])
            .arg("--kubeconfig")
            .arg(&cluster.operator)
            .stdout(log.try_clone()?)
            .stderr(log);
        let service = process::Service::start("the operator", &mut command, Signal::TERM)?;
        let meter = Meter {
            hub: service.pid(),
            database: None,
        };
        let operator = Self {
            begun,
            metrics_url: format!("http://{address}/metrics"),
            meter,
            _service: service,
        };
        wait::until("the operator", REST_LIMIT, || {
            Ok(http::answers(&format!("http://{address}/readyz")).then_some(()))
        })
        .with_context(|| hub::tail(&home.join("operator.log")))?;
        Ok(operator)
    }

    pub fn count(&self) -> Result<Count> {
        let text = http::text(&self.metrics_url)?;
        let numbers = |name: &str| -> Vec<(String, f64)> {
            let lines = text
                .lines()
                .filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
            lines
                .filter_map(|(labels, number)| Some((labels.to_owned(), number.parse().ok()?)))
                .collect()
        };
        let requests = numbers("muster_operator_kube_requests_total");
        let sum = |reads: bool| {
            let some = requests
                .iter()
                .filter(|(labels, _)| labels.contains("\"get\"") == reads);
            some.fold(0.0, |sum, (_, number)| sum + number)
        };
        let waiting = numbers("muster_operator_queue_length");
        Ok(Count {
            reads: sum(true),
            writes: sum(false),
            waiting: waiting.iter().fold(0.0, |sum, (_, number)| sum + number),
        })
    }

    /// Waits until nothing is left to do.
    pub fn rest(&self) -> Result<()> {
        let mut calm = 0;
        wait::until_every(CALM_PAUSE, "the operator to rest", REST_LIMIT, || {
            calm = if self.count()?.waiting == 0.0 { calm + 1 } else { 0 };
            Ok((calm >= CALM_LOOKS).then_some(()))
        })
    }
}
