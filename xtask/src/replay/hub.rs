//! A hub of our own for one recording: built, started on a free port with an empty directory, stopped.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

/// A first start creates the database; slow disks need a while.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The hub drains its connections before it ends.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// The agent image the recorded agents report: with another one the hub would first ask them to upgrade.
const RECORDED_AGENT: &str = "quay.io/edge-infrastructure/assisted-installer-agent:latest";

pub struct Hub {
    child: Child,
    pub url: String,
    dir: TempDir,
}

/// Builds the binary and says where it is.
pub fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "muster", "--bin", "muster", "--message-format", "json"])
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo")?;
    ensure!(output.status.success(), "the hub does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message.get("executable")?.as_str().map(PathBuf::from))
        .next_back()
        .context("cargo built no binary called muster")
}

impl Hub {
    pub fn start(binary: &Path) -> Result<Self> {
        let dir = TempDir::new()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let log = std::fs::File::create(dir.path().join("hub.log"))?;
        let mut child = Command::new(binary)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data-dir"])
            .arg(dir.path().join("data"))
            .env("MUSTER_AGENT_IMAGE", RECORDED_AGENT)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", binary.display()))?;
        let stdout = child.stdout.take().context("the hub's output is piped")?;
        let (sender, lines) = mpsc::channel();
        // Reads to the end, so that the hub never blocks on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let hub = Self { child, url: format!("http://127.0.0.1:{port}"), dir };
        if lines.recv_timeout(START_LIMIT).is_err() {
            bail!("the hub did not say that it is ready:\n{}", hub.last_words());
        }
        let ready = super::client::Client::new(&hub.url).send("GET", "/ready", &Default::default(), None);
        ensure!(ready.status == 200, "/ready answers {}:\n{}", ready.status, hub.last_words());
        Ok(hub)
    }

    /// Ends it the way an init system would; it must drain and exit with 0.
    pub fn stop(mut self) -> Result<()> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().context("sending SIGTERM")?;
        let end = Instant::now() + STOP_LIMIT;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the hub ended with {status}:\n{}", self.last_words());
                return Ok(());
            }
            std::thread::park_timeout(Duration::from_millis(20));
        }
        bail!("the hub did not end within {STOP_LIMIT:?} of SIGTERM");
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.dir.path().join("hub.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        // Only matters when something failed before `stop`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
