//! `cargo xtask up` and `down`: Muster on this machine with its embedded database and a few simulated hosts.

mod arrivals;
mod record;

use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::compile::{self, Work};
use crate::hub::{self, Hub};
use crate::process::{self, Service};
use crate::project::{self, Profile};
use crate::{apt, wait};
use arrivals::Arrivals;
use record::Record;

pub const DATA_DIR: &str = "./muster-data";

/// The InfraEnv in which the simulated hosts arrive.
const INFRA_ENV: &str = "demo";

/// Well-formed and good for nothing: simulated hosts pull no images.
const PULL_SECRET: &str = r#"{"auths":{"example.com":{"auth":"ZGVtbzpkZW1v"}}}"#;

/// What the client ends with when there is no such thing.
const NOT_FOUND: i32 = 4;

/// A debug build registers a handful of hosts within seconds; a starved machine needs longer.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(120);

/// Between two looks at the hosts: each starts the client once.
const LOOK_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, PartialEq)]
pub struct Up {
    /// Where the hub listens.
    pub listen: String,
    /// Where the hub keeps its database and its log.
    pub data_dir: PathBuf,
    /// How many hosts to simulate.
    pub hosts: usize,
    /// Start the hub alone, without simulated hosts.
    pub no_fleet: bool,
    /// Leave everything running in the background and return when it is ready.
    pub detach: bool,
}

impl Default for Up {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8090".into(),
            data_dir: DATA_DIR.into(),
            hosts: 6,
            no_fleet: false,
            detach: false,
        }
    }
}

#[derive(Debug, PartialEq)]
pub struct Down {
    /// The data directory given to `cargo xtask up --detach`.
    pub data_dir: PathBuf,
}

/// The program, and the hub it asks.
struct Client<'a> {
    binary: &'a Path,
    url: &'a str,
}

impl Client<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command.args(words).env("MUSTER_HUB", self.url);
        // What somebody likes for every table would change what we read here.
        command.env("MUSTER_OUTPUT", "table");
        project::without_proxy(&mut command);
        command
    }
}

pub fn up(args: &Up) -> Result<()> {
    if TcpStream::connect(&args.listen).is_ok() {
        bail!(
            "something already answers on {}: stop it (`{}`) or choose another --listen",
            args.listen,
            down_command(&args.data_dir)
        );
    }
    apt::ensure_compiler()?;
    let profile = Profile::of_up();
    compile::run(project::compiler(profile), &Work::up(profile))?;
    let binary = project::binary(profile);
    let data_dir = std::path::absolute(&args.data_dir)?;
    eprintln!("Starting the hub on {}.", args.listen);
    let hub = Hub::start(&hub::Options {
        binary: &binary,
        listen: &args.listen,
        data_dir: &data_dir,
        database: None,
        ends_with_us: !args.detach,
    })?;
    let client = Client {
        binary: &binary,
        url: &hub.url,
    };
    ensure_infra_env(&client)?;
    let fleet = match args.no_fleet {
        true => None,
        false => Some(start_fleet(args, &client)?),
    };
    greet(&hub, &binary);
    match args.detach {
        true => leave(args, hub, &binary, fleet, &data_dir),
        false => stay(hub, &binary, fleet),
    }
}

pub fn down(args: &Down) -> Result<()> {
    let data_dir = std::path::absolute(&args.data_dir)?;
    match Record::read(&data_dir)? {
        Some(record) => {
            record.stop()?;
            Record::remove(&data_dir)?;
            println!("Stopped. The data stays in {}.", data_dir.display());
        }
        None => println!(
            "Nothing started with `cargo xtask up --detach` uses {}.",
            data_dir.display()
        ),
    }
    Ok(())
}

/// Makes our InfraEnv on the first start.
fn ensure_infra_env(client: &Client<'_>) -> Result<()> {
    let asked = client.command(&["infra-env", "get", INFRA_ENV]).output()?;
    match asked.status.code() {
        Some(0) => return Ok(()),
        Some(NOT_FOUND) => {}
        Some(_) | None => bail!(
            "the hub does not list its InfraEnvs: {}",
            String::from_utf8_lossy(&asked.stderr).trim_end()
        ),
    }
    let mut create = client.command(&["infra-env", "create", INFRA_ENV, "--pull-secret", "-"]);
    let mut making = create.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    // Dropped at once, so that it ends.
    let mut secret = making.stdin.take().context("a pipe was asked for")?;
    secret.write_all(PULL_SECRET.as_bytes())?;
    drop(secret);
    if !making.wait()?.success() {
        bail!("could not make the InfraEnv {INFRA_ENV}");
    }
    Ok(())
}

fn start_fleet(args: &Up, client: &Client<'_>) -> Result<Service> {
    let log = File::create(args.data_dir.join("sim.log"))?;
    let mut command = match args.detach {
        true => Command::new(client.binary),
        false => process::ending_with_us(client.binary),
    };
    command.args([
        "sim",
        "--hub",
        client.url,
        "--infra-env",
        INFRA_ENV,
        "--seed",
        "1",
        "--poll",
        "5",
        // A newcomer watches a whole installation, and machines that come back.
        "--install-time",
        "30s",
        "--return-boots",
        "10s",
    ]);
    command
        .args(["--hosts", &args.hosts.to_string()])
        .stdout(log.try_clone()?)
        .stderr(log);
    Service::start(
        "the simulated fleet",
        project::without_proxy(&mut command),
        Signal::TERM,
    )
}

fn greet(hub: &Hub, binary: &Path) {
    let url = &hub.url;
    let bin = binary.parent().unwrap_or(binary).display();
    println!();
    println!("Muster is up. Open {url}/docs for its API reference.");
    println!();
    println!("In another terminal, list the hosts with the CLI:");
    println!("  export PATH={bin}:$PATH");
    println!("  export MUSTER_HUB={url}");
    println!("  muster host list");
    println!();
    println!("The hub's log is {}.", hub.log.display());
}

/// In the foreground: show hosts as they arrive and change, until Ctrl-C.
fn stay(mut hub: Hub, binary: &Path, mut fleet: Option<Service>) -> Result<()> {
    println!("Ctrl-C stops everything.\n");
    let mut arrivals = Arrivals::default();
    let mut looked = Instant::now();
    while !process::interrupted() {
        if looked.elapsed() >= LOOK_EVERY {
            for line in news(&hub, binary, &mut arrivals).unwrap_or_default() {
                println!("{line}");
            }
            looked = Instant::now();
        }
        if let Some(status) = hub.ended()? {
            bail!("the hub ended ({status}); {}", hub::tail(&hub.log));
        }
        if let Some(status) = fleet.as_mut().map(Service::ended).transpose()?.flatten() {
            println!("the simulated fleet ended ({status}); the hub runs on");
            fleet = None;
        }
        wait::pause(Duration::from_millis(200));
    }
    println!("\nStopping.");
    drop(fleet);
    hub.stop()
}

/// In the background: wait for the fleet, write down what runs, return.
fn leave(args: &Up, hub: Hub, binary: &Path, fleet: Option<Service>, data_dir: &Path) -> Result<()> {
    if fleet.is_some() {
        let mut arrivals = Arrivals::default();
        let what = "the simulated hosts to become ready";
        wait::until_every(LOOK_EVERY, what, ARRIVAL_LIMIT, || {
            for line in news(&hub, binary, &mut arrivals)? {
                println!("{line}");
            }
            Ok((arrivals.settled() >= args.hosts).then_some(()))
        })?;
    }
    let fleet = fleet.map(Service::detach);
    Record {
        hub: hub.detach(),
        fleet,
    }
    .write(data_dir)?;
    println!(
        "It runs in the background; `{}` stops it.",
        down_command(&args.data_dir)
    );
    Ok(())
}

/// What has happened to the hosts since the last look.
fn news(hub: &Hub, binary: &Path, arrivals: &mut Arrivals) -> Result<Vec<String>> {
    let client = Client {
        binary,
        url: &hub.url,
    };
    let listed = process::output(&mut client.command(&["host", "list", "--infra-env", INFRA_ENV]))?;
    Ok(arrivals.news(&String::from_utf8_lossy(&listed)))
}

/// What stops the hub with this data directory.
fn down_command(data_dir: &Path) -> String {
    match data_dir == Path::new(DATA_DIR) {
        true => "cargo xtask down".into(),
        false => format!("cargo xtask down --data-dir {}", data_dir.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_data_directory_that_was_given() {
        assert_eq!(down_command(Path::new(DATA_DIR)), "cargo xtask down");
        assert_eq!(
            down_command(Path::new("/srv/other")),
            "cargo xtask down --data-dir /srv/other"
        );
    }
}
