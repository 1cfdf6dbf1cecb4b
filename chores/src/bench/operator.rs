//! The operator with thousands of Agents: what it writes when nothing happens, what a change costs, and how soon it shows.

mod bare;
mod hosts;
mod instance;
mod shown;

use std::cell::RefCell;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::commit;
use super::fleet::{self, Fleet, POOL};
use super::load::{self, Amount};
use super::meter::Used;
use super::spread::{Spread, side_by_side};
use super::table::{Sheet, at_least, at_most, plain};
use super::{publish, walk};
use crate::hub::{self, Hub};
use crate::kube::Cluster;
use crate::project::{self, Profile};
use crate::{http, port, process, test, wait};
use hosts::{Arrivals, Changes, Polls};
use instance::{CALM_LOOKS, CALM_PAUSE, Operator, REST_LIMIT};
use shown::Shown;

const NAMESPACE: &str = "bench";
/// Requests in flight when all hosts arrive.
const WRITERS: usize = 16;
/// Between two polls of a host.
const POLL_SECONDS: f64 = 60.0;
/// Thousands of objects on a small machine.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(3600);

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench operator
  cargo xtask bench operator --agents 200 --seconds 20 --rounds 1 --dev
  cargo xtask bench operator --json figures.json
  cargo xtask bench operator --publish

Everything runs on this machine, on loopback: API server, etcd, hub, operator and hosts share the cores. The
operator is the only one of its kind and needs no lease, so every write is about an object.")]
pub struct OperatorBench {
    /// How many hosts, each with its Agent
    #[arg(long, value_name = "N", default_value_t = 5000)]
    agents: u32,
    /// How long each measurement lasts
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// How many hosts change in a second
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    changes: f64,
    /// How many times all of it is measured, each with a server, a hub and an operator of its own
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: u32,
    /// Measure the binary as it is
    #[arg(long)]
    no_build: bool,
    /// Measure the debug build: to try the bench out
    #[arg(long)]
    dev: bool,
    /// Put the table into docs/benchmarks.md, with the commit that was measured
    #[arg(long, conflicts_with_all = ["no_build", "dev"])]
    publish: bool,
    /// Also write all figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub fn run(args: &OperatorBench) -> Result<()> {
    if args.publish {
        publish::is_enough(args.rounds)?;
    }
    let commit = commit::measured(!args.no_build);
    let profile = if args.dev { Profile::Dev } else { Profile::Release };
    match profile {
        _ if args.no_build => {}
        Profile::Release => super::build()?,
        Profile::Quick | Profile::Dev => drop(project::build(profile)?),
    }
    let binary = project::binary(profile);
    let mut sheets = Vec::new();
    for round in 1..=args.rounds {
        eprintln!("run {round} of {}", args.rounds);
        sheets.push(once(args, &binary)?);
    }
    let spread = Spread::of(&sheets, &commit);
    println!("{spread}");
    if let Some(file) = &args.json {
        fs::write(file, serde_json::to_string_pretty(&spread)?)
            .with_context(|| format!("writing {}", file.display()))?;
    }
    if args.publish {
        publish::publish(publish::Of::Operator, &side_by_side(&[spread]))?;
    }
    Ok(())
}

fn once(args: &OperatorBench, binary: &Path) -> Result<Sheet> {
    let home = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(project::target())?;
    let mut sheet = Sheet::new(format!("{} Agents", args.agents));
    let done = walk_through(args, binary, home.path(), &mut sheet);
    // The table comes when all runs are done. What was measured before something went wrong is still worth seeing.
    eprintln!("{sheet}");
    done.map(|()| sheet)
}

fn walk_through(args: &OperatorBench, binary: &Path, home: &Path, sheet: &mut Sheet) -> Result<()> {
    eprintln!("  API server and hub …");
    let cluster = Cluster::start()?;
    test::kube::prepare(&cluster)?;
    let data_dir = home.join("data");
    let hub = Hub::start(&hub::Options {
        binary,
        listen: "127.0.0.1:0",
        data_dir: &data_dir,
        database: None,
        ends_with_us: true,
    })?;
    let operator = Operator::start(binary, home, &cluster, &hub.url)?;
    let pools = pools(&cluster, home, args.agents)?;
    let fleet = Fleet::of_pools(&hub.url, args.agents, pools)?;
    let (proxy, kube_url) = proxy(&cluster, home)?;
    let bare = bare::objects_per_second(walk::address(&kube_url)?, &fleet)?;
    sheet.add("reference: bare objects made and changed /s", bare, plain());
    operator.rest()?;
    let shown = Shown::watch(&kube_url)?;
    let stand = Stand {
        args,
        fleet: &fleet,
        address: walk::address(&hub.url)?,
        bare_objects_per_second: bare,
        shown: &shown,
    };
    let over = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let alive = scope.spawn(|| stand.stay_alive(&over));
        let done = stand.measure(&operator, sheet).and_then(|()| {
            drop(operator);
            let again = Operator::start(binary, home, &cluster, &hub.url)?;
            stand.second_start(&again, sheet)
        });
        over.store(true, Ordering::Relaxed);
        let polled = alive
            .join()
            .map_err(|_| anyhow::anyhow!("the simulated hosts failed"));
        done.and(polled?)
    });
    drop(proxy);
    done?;
    hub.stop()
}

/// InfraEnvs as people make them, and the ids they have in the hub.
fn pools(cluster: &Cluster, home: &Path, agents: u32) -> Result<Vec<String>> {
    let names: Vec<String> = (0..agents.div_ceil(POOL))
        .map(|number| format!("bench-{number}"))
        .collect();
    let secret = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
    let mut items = vec![
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "pull", "namespace": NAMESPACE },
            "type": "kubernetes.io/dockerconfigjson", "stringData": { ".dockerconfigjson": secret } }),
    ];
    items.extend(names.iter().map(|name| {
        json!({ "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "InfraEnv",
            "metadata": { "name": name, "namespace": NAMESPACE }, "spec": { "pullSecretRef": { "name": "pull" } } })
    }));
    let file = home.join("objects.json");
    fs::write(
        &file,
        json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string(),
    )?;
    cluster.apply(&file)?;
    let ask = |name: &String| -> Result<Option<String>> {
        let words = [
            "get",
            "infraenv",
            name,
            "--namespace",
            NAMESPACE,
            "--output",
            "json",
        ];
        let found: Value = serde_json::from_str(&cluster.ask(&words)?)?;
        let has_image = found["status"]["isoDownloadURL"]
            .as_str()
            .is_some_and(|url| !url.is_empty());
        let id = found["metadata"]["annotations"]["infraenv.agent-install.openshift.io/id"].as_str();
        Ok(id.filter(|_| has_image).map(str::to_owned))
    };
    names
        .iter()
        .map(|name| wait::until(&format!("the image of {name}"), REST_LIMIT, || ask(name)))
        .collect()
}

/// The API without its certificates, for whoever watches.
fn proxy(cluster: &Cluster, home: &Path) -> Result<(process::Service, String)> {
    let port = port::free()?;
    let mut command = cluster.kubectl();
    let log = File::create(home.join("proxy.log"))?;
    command
        .args(["proxy", "--address=127.0.0.1", &format!("--port={port}")])
        .stdout(log.try_clone()?)
        .stderr(log);
    let service = process::Service::start("kubectl proxy", &mut command, Signal::TERM)?;
    let url = format!("http://127.0.0.1:{port}");
    wait::until("the proxy", Duration::from_secs(60), || {
        Ok(http::answers(&format!("{url}/readyz")).then_some(()))
    })?;
    Ok((service, url))
}

/// What is measured, and with what.
struct Stand<'a> {
    args: &'a OperatorBench,
    fleet: &'a Fleet,
    address: SocketAddr,
    bare_objects_per_second: f64,
    shown: &'a Shown,
}

/// What happened in a stretch of time.
struct Stretch {
    reads: f64,
    writes: f64,
    used: Used,
}

impl Stretch {
    fn per_minute(&self, count: f64) -> f64 {
        60.0 * count / self.used.seconds
    }
}

impl Stand<'_> {
    fn measure(&self, operator: &Operator, sheet: &mut Sheet) -> Result<()> {
        self.arrive(operator, sheet)?;
        self.nothing(operator, sheet)?;
        self.change(operator, sheet)?;
        sheet.add("RSS MB of the operator", operator.meter.rss_mb()?, plain());
        Ok(())
    }

    fn stretch(&self, operator: &Operator, deeds: impl FnOnce() -> Result<()>) -> Result<Stretch> {
        let (before, count) = (operator.meter.read()?, operator.count()?);
        deeds()?;
        let (used, now) = (operator.meter.since(before)?, operator.count()?);
        Ok(Stretch {
            reads: now.reads - count.reads,
            writes: now.writes - count.writes,
            used,
        })
    }

    /// All hosts at once, which is the worst that happens.
    fn arrive(&self, operator: &Operator, sheet: &mut Sheet) -> Result<()> {
        eprintln!("  {} hosts arrive …", self.fleet.hosts);
        let all = self.fleet.hosts as usize;
        let stretch = self.stretch(operator, || {
            let work = Arrivals(self.fleet);
            load::run(self.address, WRITERS, Amount::Items(all as u64), &work)?.clean("arrivals")?;
            wait::until_every(Duration::from_millis(200), "all Agents", ARRIVAL_LIMIT, || {
                Ok((self.shown.named() >= all).then_some(()))
            })
        })?;
        operator.rest()?;
        let each = f64::from(self.fleet.hosts);
        sheet.add(
            "Agents made and filled /s",
            each / stretch.used.seconds,
            at_least(200.0),
        );
        sheet.against(
            "bare objects",
            each / stretch.used.seconds / self.bare_objects_per_second,
        );
        sheet.add(
            "requests per new Agent",
            (stretch.reads + stretch.writes) / each,
            at_most(2.0),
        );
        sheet.add(
            "CPU ms per new Agent",
            1000.0 * stretch.used.cpu() / each,
            plain(),
        );
        Ok(())
    }

    fn nothing(&self, operator: &Operator, sheet: &mut Sheet) -> Result<()> {
        eprintln!("  hosts poll and nothing changes, {} s …", self.args.seconds);
        let time = Duration::from_secs(self.args.seconds);
        let stretch = self.stretch(operator, || {
            let started = Instant::now();
            wait::until("some time to pass", time * 2, || {
                Ok((started.elapsed() >= time).then_some(()))
            })
        })?;
        sheet.add(
            "writes per minute while nothing changes",
            stretch.per_minute(stretch.writes),
            at_most(0.0),
        );
        sheet.add(
            "reads per minute while nothing changes",
            stretch.per_minute(stretch.reads),
            plain(),
        );
        sheet.add(
            "CPU % while nothing changes",
            stretch.used.percent(),
            at_most(2.0),
        );
        Ok(())
    }

    fn change(&self, operator: &Operator, sheet: &mut Sheet) -> Result<()> {
        let (rate, time) = (self.args.changes, Duration::from_secs(self.args.seconds));
        eprintln!("  {rate} hosts a second change, {} s …", time.as_secs());
        let changes = Changes {
            fleet: self.fleet,
            sent: RefCell::default(),
        };
        let mut late = Vec::new();
        let stretch = self.stretch(operator, || {
            load::run(self.address, WRITERS, Amount::Paced(rate, time), &changes)?.clean("changes")?;
            late = self.lateness(&changes)?;
            operator.rest()
        })?;
        let count = late.len() as f64;
        sheet.add("real changes per minute", stretch.per_minute(count), plain());
        sheet.add("writes per minute", stretch.per_minute(stretch.writes), plain());
        // Status and the mirror of the inventory in an annotation are two requests by the rules of the API.
        sheet.add("writes per change", stretch.writes / count, at_most(2.0));
        sheet.add(
            "requests per change",
            (stretch.writes + stretch.reads) / count,
            plain(),
        );
        let (p50, p99) = super::image::percentiles(&mut late);
        sheet.add("host change to Agent, p50 ms", p50, plain());
        sheet.add("host change to Agent, p99 ms", p99, at_most(1000.0));
        sheet.add("CPU % of the operator", stretch.used.percent(), plain());
        sheet.add("CPU ms per change", 1000.0 * stretch.used.cpu() / count, plain());
        Ok(())
    }

    /// How long after a host reported it each change was in its Agent.
    fn lateness(&self, changes: &Changes<'_>) -> Result<Vec<Duration>> {
        let sent = changes.sent.borrow();
        wait::until_every(
            Duration::from_millis(200),
            "the last changes to show",
            REST_LIMIT,
            || {
                let mut late = Vec::with_capacity(sent.len());
                for (item, since) in sent.iter().enumerate() {
                    let (host, renamed) = changes.host(item as u64);
                    let (id, name) = (&self.fleet.ids[host as usize], fleet::host_name(host, renamed));
                    match self.shown.first_after(id, &name, *since) {
                        Some(seen) => late.push(seen.duration_since(*since)),
                        None => return Ok(None),
                    }
                }
                Ok(Some(late))
            },
        )
    }

    /// An operator that knows nothing yet looks at everything, and finds all in order.
    fn second_start(&self, operator: &Operator, sheet: &mut Sheet) -> Result<()> {
        eprintln!("  a second start …");
        operator.rest()?;
        // The looks that found it calm already are not its time.
        let rested = operator.begun.elapsed().saturating_sub(CALM_PAUSE * CALM_LOOKS);
        let count = operator.count()?;
        sheet.add("second start: s until it rests", rested.as_secs_f64(), plain());
        sheet.add("second start: writes", count.writes, at_most(0.0));
        sheet.add("second start: CPU s", operator.meter.read()?.hub, plain());
        sheet.add("second start: RSS MB", operator.meter.rss_mb()?, plain());
        Ok(())
    }

    /// All hosts ask once a minute for what to do, until it is over.
    fn stay_alive(&self, over: &AtomicBool) -> Result<()> {
        let polls = Polls {
            fleet: self.fleet,
            begun: AtomicU64::new(0),
        };
        let rate = f64::from(self.fleet.hosts) / POLL_SECONDS;
        while !over.load(Ordering::Relaxed) {
            if self.shown.named() < self.fleet.hosts as usize {
                wait::pause(Duration::from_millis(200));
                continue;
            }
            let amount = Amount::Paced(rate, Duration::from_secs(2));
            let polled = load::run(self.address, 4, amount, &polls)?;
            if polled.errors > 0 {
                bail!("{} polls were refused", polled.errors);
            }
        }
        Ok(())
    }
}
