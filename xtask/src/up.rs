//! `cargo xtask up` and `down`: Muster on this machine with its embedded database and a few simulated hosts.

mod arrivals;
mod record;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::hub::{self, Hub};
use crate::process::{self, Service};
use crate::project::{self, Profile};
use crate::{http, tools, wait};
use arrivals::Arrivals;
use record::Record;

const DATA_DIR: &str = "./muster-data";

/// The InfraEnv in which the simulated hosts arrive.
const INFRA_ENV: &str = "demo";

/// Well-formed and good for nothing: simulated hosts pull no images.
const PULL_SECRET: &str = r#"{"auths":{"example.com":{"auth":"ZGVtbzpkZW1v"}}}"#;

/// A debug build registers a handful of hosts within seconds; a starved machine needs longer.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask up                      hub on http://127.0.0.1:8090 and six simulated hosts
  cargo xtask up --hosts 40           a bigger fleet
  cargo xtask up --no-fleet           the hub alone
  cargo xtask up --detach             return when the hosts are there; `cargo xtask down` stops it all")]
pub struct Up {
    /// Where the hub listens
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8090")]
    listen: String,
    /// Where the hub keeps its database and its log
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
    /// How many hosts to simulate
    #[arg(long, value_name = "N", default_value_t = 6)]
    hosts: usize,
    /// Start the hub alone, without simulated hosts
    #[arg(long)]
    no_fleet: bool,
    /// Leave everything running in the background and return when it is ready
    #[arg(long)]
    detach: bool,
}

#[derive(clap::Args)]
pub struct Down {
    /// The data directory given to `cargo xtask up --detach`
    #[arg(long, value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
}

pub fn up(args: &Up) -> Result<()> {
    if http::answers(&format!("http://{}/ready", args.listen)) {
        bail!(
            "something already answers on {}: stop it (`{}`) or choose another --listen",
            args.listen,
            down_command(&args.data_dir)
        );
    }
    tools::ensure_compiler()?;
    let binary = project::build(Profile::Dev)?;
    let data_dir = std::path::absolute(&args.data_dir)?;
    let hub = Hub::start(&hub::Options {
        binary: &binary,
        listen: &args.listen,
        data_dir: &data_dir,
        database: None,
        ends_with_us: !args.detach,
    })?;
    let infra_env = infra_env(&hub.url)?;
    let fleet = match args.no_fleet {
        true => None,
        false => Some(start_fleet(args, &binary, &hub.url, &infra_env)?),
    };
    greet(&hub, &binary);
    let arrivals = Arrivals::of(&hub.url, &infra_env);
    match args.detach {
        true => leave(args, hub, fleet, arrivals, &data_dir),
        false => stay(hub, fleet, arrivals),
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

/// The id of our InfraEnv, made on the first start.
fn infra_env(url: &str) -> Result<String> {
    let collection = format!("{url}/api/assisted-install/v2/infra-envs");
    let known = http::get(&collection)?;
    let found = known
        .as_array()
        .into_iter()
        .flatten()
        .find(|one| one["name"] == INFRA_ENV)
        .cloned();
    let ours = match found {
        Some(ours) => ours,
        None => http::post(
            &collection,
            &json!({ "name": INFRA_ENV, "pull_secret": PULL_SECRET }),
        )?,
    };
    ours["id"]
        .as_str()
        .map(str::to_owned)
        .context("the hub's InfraEnv has no id")
}

fn start_fleet(args: &Up, binary: &Path, url: &str, infra_env: &str) -> Result<Service> {
    let log = File::create(args.data_dir.join("sim.log"))?;
    let mut command = match args.detach {
        true => Command::new(binary),
        false => process::ending_with_us(binary),
    };
    command.args([
        "sim",
        "--hub",
        url,
        "--infra-env",
        infra_env,
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
fn stay(mut hub: Hub, mut fleet: Option<Service>, mut arrivals: Arrivals) -> Result<()> {
    println!("Ctrl-C stops everything.\n");
    while !process::interrupted() {
        for line in arrivals.news().unwrap_or_default() {
            println!("{line}");
        }
        if let Some(status) = hub.ended()? {
            bail!("the hub ended ({status}); {}", hub::tail(&hub.log));
        }
        if let Some(status) = fleet.as_mut().map(Service::ended).transpose()?.flatten() {
            println!("the simulated fleet ended ({status}); the hub runs on");
            fleet = None;
        }
        wait::pause(Duration::from_millis(500));
    }
    println!("\nStopping.");
    drop(fleet);
    hub.stop()
}

/// In the background: wait for the fleet, write down what runs, return.
fn leave(args: &Up, hub: Hub, fleet: Option<Service>, mut arrivals: Arrivals, data_dir: &Path) -> Result<()> {
    if fleet.is_some() {
        let wanted = args.hosts;
        wait::until("the simulated hosts to become ready", ARRIVAL_LIMIT, || {
            for line in arrivals.news()? {
                println!("{line}");
            }
            Ok((arrivals.settled() >= wanted).then_some(()))
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

/// What stops the hub with this data directory.
fn down_command(data_dir: &Path) -> String {
    match data_dir == Path::new(DATA_DIR) {
        true => "cargo xtask down".into(),
        false => format!("cargo xtask down --data-dir {}", data_dir.display()),
    }
}

/// The hosts of an InfraEnv as the wire tells them.
fn hosts(url: &str, infra_env: &str) -> Result<Vec<Value>> {
    let reply = http::get(&format!(
        "{url}/api/assisted-install/v2/infra-envs/{infra_env}/hosts"
    ))?;
    reply
        .as_array()
        .cloned()
        .context("the list of hosts is not a list")
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
