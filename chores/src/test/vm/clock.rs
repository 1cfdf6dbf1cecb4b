//! A real time server on loopback, for machines that are told to ask one.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Result, ensure};
use rustix::process::Signal;

use crate::process::{self, Service};

/// Serves this machine's time without touching its clock. Only root may use the port that agents ask.
pub fn start(dir: &Path) -> Result<Option<Service>> {
    if !rustix::process::geteuid().is_root() {
        ensure!(
            std::env::var_os("CI").is_none(),
            "CI must have a time server for the machines, whose port only root may use"
        );
        println!("SKIPPED what machines do with a time server: only root may use its port");
        return Ok(None);
    }
    let config = dir.join("chrony.conf");
    let pid = dir.join("chrony.pid");
    fs::write(
        &config,
        format!(
            "local stratum 8\nallow 127.0.0.1\nbindaddress 127.0.0.1\ncmdport 0\nuser root\npidfile {}\n",
            pid.display()
        ),
    )?;
    let log = File::create(dir.join("chrony.log"))?;
    let mut command = process::ending_with_us("chronyd");
    command.args(["-x", "-d", "-f"]).arg(&config);
    command.stdout(log.try_clone()?).stderr(log);
    Service::start("the time server", &mut command, Signal::TERM).map(Some)
}
