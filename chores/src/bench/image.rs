//! What it takes to serve images: the hub and a plain `sendfile` server, side by side in the same minutes.

mod client;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::meter::Meter;
use super::table::{Sheet, at_most, plain};
use super::{commit, walk};
use crate::hub::{self, Hub};
use crate::{http, process, project, wait};
use client::Target;

const GIB: f64 = (1_u64 << 30) as f64;
/// How much a stream of the crowd reads.
const CROWD_BYTES: u64 = 16 << 20;
/// What a BMC asks for at a time, more or less.
const SMALL: u64 = 4096;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench image
  cargo xtask bench image --rounds 1 --mib 256
  cargo xtask bench image --json figures.json

Everything runs on this machine, on loopback: hub, reference and clients share the cores. The two servers take
turns within each round; CPU is summed over all rounds.")]
pub struct ImageBench {
    /// Streams at once in the crowd
    #[arg(long, value_name = "N", default_value_t = 400)]
    streams: usize,
    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 4)]
    rounds: u32,
    /// Size of the base image
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    mib: u64,
    /// Requests for 4 KiB in each round
    #[arg(long, value_name = "N", default_value_t = 5000)]
    requests: u32,
    /// Measure the release binaries as they are
    #[arg(long)]
    no_build: bool,
    /// Also write all figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: &ImageBench) -> Result<()> {
    let commit = commit::measured(!args.no_build);
    if !args.no_build {
        super::build()?;
    }
    let home = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(project::target())?;
    let image = home.path().join("base.iso");
    let mut make = Command::new(bare());
    process::output(make.arg("make").arg(&image).arg(args.mib.to_string()))?;
    let reference = Reference::start(home.path(), &image)?;
    let hub = Served::start(home.path(), &image)?;
    let mut sheet = Sheet::new(format!("image of {} MiB, {} rounds", args.mib, args.rounds)).at(commit);
    let done = measure(args, &reference, &hub, &mut sheet);
    // What was measured before something went wrong is still worth seeing.
    println!("{sheet}");
    done?;
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_string_pretty(&sheet)?)
            .with_context(|| format!("writing {}", file.display()))?;
    }
    hub.hub.stop()
}

fn bare() -> PathBuf {
    project::target().join("release/examples/bare_sendfile")
}

/// The plain file server; a signal is its only end.
struct Reference {
    _service: Killed,
    target: Target,
    meter: Meter,
}

struct Killed(process::Service);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = process::signal(self.0.pid(), Signal::KILL);
    }
}

impl Reference {
    fn start(home: &Path, image: &Path) -> Result<Self> {
        let said = home.join("bare.out");
        let mut command = process::ending_with_us(bare());
        command.arg("serve").arg(image).stdout(File::create(&said)?);
        let service = process::Service::start("the plain file server", &mut command, Signal::TERM)?;
        let url = wait::until("the plain server's URL", Duration::from_secs(20), || {
            let text = fs::read_to_string(&said)?;
            Ok(text.strip_suffix('\n').map(str::to_owned))
        })?;
        let meter = Meter {
            hub: service.pid(),
            database: None,
        };
        Ok(Self {
            _service: Killed(service),
            target: Target {
                address: walk::address(&url)?,
                path: "/".to_owned(),
            },
            meter,
        })
    }
}

/// A hub with one InfraEnv whose image everybody reads.
struct Served {
    hub: Hub,
    target: Target,
    meter: Meter,
}

impl Served {
    fn start(home: &Path, image: &Path) -> Result<Self> {
        let images = json!([{ "openshift_version": "4.20", "cpu_architecture": "x86_64", "url": image,
            "version": "bench" }]);
        let binary = project::binary(project::Profile::Release);
        let data_dir = home.join("data");
        let options = hub::Options {
            binary: &binary,
            listen: "127.0.0.1:0",
            data_dir: &data_dir,
            database: None,
            ends_with_us: true,
        };
        let hub = Hub::start_with(&options, &["--os-images".into(), images.to_string().into()])?;
        let secret = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
        let wish = json!({ "name": "bench", "pull_secret": secret, "openshift_version": "4.20",
            "kernel_arguments": [{ "operation": "append", "value": "console=ttyS0" }] });
        let made = http::post(&format!("{}/api/assisted-install/v2/infra-envs", hub.url), &wish)?;
        let link = made["download_url"]
            .as_str()
            .context("the InfraEnv has no link")?;
        let path = link.strip_prefix(&hub.url).context("the link leads elsewhere")?;
        Ok(Self {
            target: Target {
                address: walk::address(&hub.url)?,
                path: path.to_owned(),
            },
            meter: Meter {
                hub: hub.pid(),
                database: None,
            },
            hub,
        })
    }
}

/// CPU seconds and bytes, summed over rounds.
#[derive(Default, Clone, Copy)]
struct Cost {
    cpu: f64,
    seconds: f64,
    bytes: f64,
}

impl Cost {
    fn per_gib(&self) -> f64 {
        self.cpu / (self.bytes / GIB)
    }

    fn add(&mut self, meter: &Meter, clients: usize, bytes: u64, target: &Target) -> Result<()> {
        let (before, started) = (meter.read()?, Instant::now());
        self.bytes += client::crowd(target, clients, bytes)? as f64;
        self.cpu += meter.since(before)?.cpu();
        self.seconds += started.elapsed().as_secs_f64();
        Ok(())
    }
}

/// One client, four, and the crowd.
#[derive(Default)]
struct Costs([Cost; 3]);

impl Costs {
    /// Returns the most memory the server had while the crowd read, in MB.
    fn round(&mut self, args: &ImageBench, meter: &Meter, target: &Target) -> Result<f64> {
        let whole = args.mib << 20;
        let crowd = CROWD_BYTES.min(whole);
        for (cost, (clients, bytes)) in self
            .0
            .iter_mut()
            .zip([(1, whole), (4, whole), (args.streams, crowd)])
        {
            meter.forget_peak()?;
            cost.add(meter, clients, bytes, target)?;
        }
        meter.peak_mb()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Reference,
    Ours,
}

/// Who goes first finds the machine as the other left it, so they take turns at that too.
fn order(round: u32) -> [Turn; 2] {
    match round % 2 {
        0 => [Turn::Ours, Turn::Reference],
        _ => [Turn::Reference, Turn::Ours],
    }
}

fn measure(args: &ImageBench, reference: &Reference, served: &Served, sheet: &mut Sheet) -> Result<()> {
    eprintln!("  warming up …");
    // Everybody starts from the page cache, and the hub has looked at its base image.
    client::ready(&served.target)?;
    for target in [&reference.target, &served.target] {
        client::crowd(target, 1, args.mib << 20)?;
    }
    let rss_before = served.meter.rss_mb()?;
    let (mut bare, mut ours) = (Costs::default(), Costs::default());
    let (mut bare_times, mut times) = (Vec::new(), Vec::new());
    let mut peak: f64 = 0.0;
    let most = (args.mib << 20) - SMALL;
    for round in 1..=args.rounds {
        eprintln!("  round {round} of {} …", args.rounds);
        for turn in order(round) {
            match turn {
                Turn::Reference => {
                    bare.round(args, &reference.meter, &reference.target)?;
                    let reads = client::small_reads(&reference.target, args.requests, SMALL, most)?;
                    bare_times.extend(reads);
                }
                Turn::Ours => {
                    peak = peak.max(ours.round(args, &served.meter, &served.target)?);
                    times.extend(client::small_reads(&served.target, args.requests, SMALL, most)?);
                }
            }
        }
    }
    let rss_after = served.meter.rss_mb()?;
    let crowd = format!("{} streams", args.streams);
    for (number, what) in ["1 client", "4 clients", &crowd].into_iter().enumerate() {
        let (bare, ours) = (bare.0[number], ours.0[number]);
        let floor = bare.per_gib();
        sheet.add(&format!("reference: CPU s per GiB, {what}"), floor, plain());
        sheet.add(
            &format!("CPU s per GiB, {what}"),
            ours.per_gib(),
            at_most(1.3 * floor),
        );
        sheet.against("sendfile", ours.per_gib() / floor);
        sheet.add(
            &format!("GiB/s, {what}"),
            ours.bytes / GIB / ours.seconds,
            plain(),
        );
        sheet.against(
            "sendfile",
            ours.bytes / ours.seconds / (bare.bytes / bare.seconds),
        );
    }
    let (p50, p99) = percentiles(&mut times);
    let (bare_p50, bare_p99) = percentiles(&mut bare_times);
    sheet.add("4 KiB ranges, p50 ms", p50, at_most(1.0));
    sheet.against("sendfile", p50 / bare_p50);
    sheet.add("4 KiB ranges, p99 ms", p99, plain());
    sheet.against("sendfile", p99 / bare_p99);
    sheet.add("RSS MB before", rss_before, plain());
    sheet.add(
        &format!("RSS MB at most, {crowd}"),
        peak,
        at_most(rss_before + ROOM_MB),
    );
    sheet.add("RSS MB after", rss_after, at_most(rss_before + ROOM_MB));
    progress(served, sheet)
}

/// What buffers of connections and the allocator may keep; an image or a payload for each stream would be far above.
const ROOM_MB: f64 = 16.0;

/// The hub must have seen what the clients read.
fn progress(served: &Served, sheet: &mut Sheet) -> Result<()> {
    let id = served
        .target
        .path
        .split('/')
        .nth(2)
        .context("an InfraEnv in the path")?;
    let told = http::get(&format!(
        "{}/api/muster/v1/infra-envs/{id}/downloads",
        served.hub.url
    ))?;
    let percent = told["downloads"][0]["percent"].as_f64();
    let percent = percent.with_context(|| format!("no progress in {}", Value::to_string(&told)))?;
    sheet.add("progress shown, %", percent, super::table::at_least(99.0));
    Ok(())
}

pub fn percentiles(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)].as_secs_f64() * 1000.0;
    (at(50), at(99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times_in_milliseconds() {
        let mut times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentiles(&mut times), (51.0, 100.0));
    }

    #[test]
    fn each_is_first_in_every_other_round() {
        assert_eq!(order(1), [Turn::Reference, Turn::Ours]);
        assert_eq!(order(2), [Turn::Ours, Turn::Reference]);
    }

    #[test]
    fn cost_is_per_gibibyte_over_all_rounds() {
        let cost = Cost {
            cpu: 1.0,
            seconds: 4.0,
            bytes: 4.0 * GIB,
        };
        assert!((cost.per_gib() - 0.25).abs() < 1e-9);
    }
}
