//! What the machine itself allows in this minute: a bare HTTP handler, and bare durable inserts.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::fleet::Fleet;
use super::load::{self, Amount, Work};
use super::meter::Meter;
use super::walk;
use crate::{process, project, wait};

pub struct Reference {
    pub gets_per_second: f64,
    pub polls_per_second: f64,
    pub cpu_ms_per_poll: f64,
    pub inserts_per_second: f64,
}

/// The same requests as the hub gets.
struct Polls<'a>(&'a Fleet, usize);

impl Work for Polls<'_> {
    fn request(&self, item: u64, step: usize, out: &mut Vec<u8>) -> bool {
        let host = (item % u64::from(self.0.hosts)) as u32;
        match step {
            0 => self.0.ask(host, 0, out),
            _ => self.0.reply(host, out),
        }
        step < self.1
    }
}

impl Reference {
    pub fn measure(home: &Path, fleet: &Fleet, seconds: u64) -> Result<Self> {
        eprintln!("  references …");
        let seconds = seconds.div_ceil(2);
        let said = home.join("bare.out");
        let mut command = process::ending_with_us(example("bare_http"));
        command.stdout(File::create(&said)?);
        let server = process::Service::start("the bare HTTP server", &mut command, Signal::TERM)?;
        let url = wait::until("the bare server's URL", Duration::from_secs(20), || {
            let text = fs::read_to_string(&said)?;
            Ok(text.strip_suffix('\n').map(str::to_owned))
        })?;
        let (address, amount) = (walk::address(&url)?, Amount::For(Duration::from_secs(seconds)));
        let asked = load::run(address, 16, amount, &Polls(fleet, 1))?.clean("bare GET")?;
        let meter = Meter {
            hub: server.pid(),
            database: None,
        };
        let before = meter.read()?;
        let polled = load::run(address, 16, amount, &Polls(fleet, 2))?.clean("bare poll")?;
        let used = meter.since(before)?;
        drop(stopped(server));
        Ok(Self {
            gets_per_second: asked.per_second(),
            polls_per_second: polled.per_second(),
            cpu_ms_per_poll: 1000.0 * used.cpu() / polled.items as f64,
            inserts_per_second: inserts(home, seconds)?,
        })
    }
}

/// It knows no polite end: a signal is one.
fn stopped(mut server: process::Service) -> process::Service {
    let _ = server.stop();
    server
}

fn inserts(home: &Path, seconds: u64) -> Result<f64> {
    let home = tempfile::tempdir_in(home)?;
    let mut command = Command::new(example("bare_sqlite"));
    let said = process::output(command.arg(home.path()).arg(seconds.to_string()))?;
    String::from_utf8_lossy(&said)
        .trim()
        .parse()
        .context("the bare inserts print no rate")
}

fn example(name: &str) -> std::path::PathBuf {
    project::target().join("release/examples").join(name)
}
