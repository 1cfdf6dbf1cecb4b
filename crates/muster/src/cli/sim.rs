//! `muster sim`: fleets of simulated hosts that speak the real agent protocol.

use crate::age::{parse_span, span};
use crate::exit::{Failure, Outcome};
use crate::resolve;
use muster_contract::client::HubClient;
use muster_simfleet::{Fault, Fleet, FleetConfig, Stats};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Often enough to see that it lives, seldom enough for a log.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Run simulated hosts against a hub
///
/// They register, report inventories of several kinds of hardware, and obey
/// the hub like real agents do, until they are stopped with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster sim --infra-env lab --hosts 4 --poll 1
  muster sim --infra-env lab --hosts 1000 --seed 7 --duration 10m
  muster sim --infra-env lab --hosts 100 --fault silent:5% --fault slow-replies:10%:30s

Faults are written as kind:who[:details]. Who: a share (5%), the first hosts
(2), or one host by its place (#7).
  silent:5%[:AFTER[:FOR]]       stops, and comes back after FOR or never
  dup-uuid:2                    pairs of machines show one id
  slow-replies:10%:30s          every step takes so much longer
  lost-replies:10%[:50%]        that share of its replies is lost
  doubled-replies:10%[:100%]    that share of its replies arrives twice
  reboot:1%:5m                  reboots once, so long after its start
  reboot:#3:Rebooting           reboots once, at a stage of the installation
  media-loss:2%[:AFTER]         the discovery image cannot be read any more
  clock-skew:10%:-5m            its clock is off
  flapping-inventory:1%[:EVERY] its inventory changes to and fro")]
pub struct SimArgs {
    /// The InfraEnv they arrive in: id, beginning of the id, or name
    #[arg(long, value_name = "INFRA-ENV")]
    infra_env: String,
    /// How many hosts
    #[arg(long, value_name = "N")]
    hosts: u32,
    /// The same seed gives the same hosts
    #[arg(long, value_name = "S", default_value = "1")]
    seed: u64,
    /// Seconds between polls, when not what the hub says
    #[arg(long, value_name = "SECONDS", value_parser = parse_span)]
    poll: Option<Duration>,
    /// Something that goes wrong; may be repeated
    #[arg(long, value_name = "SPEC")]
    fault: Vec<Fault>,
    /// Stop after this time
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    duration: Option<Duration>,
    /// How many connections to the hub at most
    #[arg(long, value_name = "N")]
    connections: Option<usize>,
    /// Reboot machines whose agent gave up, after this time
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    revive: Option<Duration>,
    /// Number of the first host; fleets side by side use other numbers
    #[arg(long, value_name = "N", default_value = "0")]
    first_index: u32,
}

pub async fn run(hub: &HubClient, args: SimArgs) -> Outcome {
    super::serve::start_log("warn", super::serve::LogFormat::Text)?;
    let infra_env = resolve::infra_env(hub, &args.infra_env).await?;
    let fleet = fleet(hub, infra_env.id, &args)?;
    let stats = fleet.stats();
    let end = end(args.duration)?;
    eprintln!(
        "{} hosts of seed {} arrive in infra-env/{} at {}",
        args.hosts,
        args.seed,
        infra_env.name,
        hub.base()
    );
    let begun = Instant::now();
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(fleet.run(stopped));
    let mut report = tokio::time::interval_at(tokio::time::Instant::now() + REPORT_EVERY, REPORT_EVERY);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            _ = report.tick() => tell(begun, &stats),
        }
    }
    // The fleet finishes what is in flight; when it is gone already there is nobody to tell.
    let _ = stop.send(true);
    running
        .await
        .map_err(|error| Failure::other(format!("the fleet broke down: {error}")))?;
    tell(begun, &stats);
    Ok(())
}

/// The same arguments give the same fleet.
fn fleet(hub: &HubClient, infra_env_id: uuid::Uuid, args: &SimArgs) -> Outcome<Fleet> {
    let plain = FleetConfig::default();
    let config = FleetConfig {
        hub_url: hub.base().to_owned(),
        infra_env_id,
        hosts: args.hosts,
        seed: args.seed,
        first_index: args.first_index,
        poll: args.poll,
        faults: args.fault.clone(),
        connections: args.connections.unwrap_or(plain.connections),
        revive: args.revive,
        ..plain
    };
    Fleet::new(config).map_err(|error| Failure::usage(error.to_string()))
}

/// When to stop: at a signal, or when the time is over.
fn end(duration: Option<Duration>) -> Outcome<impl Future<Output = ()>> {
    let signal = super::serve::stop_signal()?;
    Ok(async move {
        let over = async {
            match duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = signal => {}
            () = over => {}
        }
    })
}

fn tell(begun: Instant, stats: &Stats) {
    let now = stats.view();
    eprintln!(
        "{:>5}  running {}, registering {}, blocked {}, installed {}; {} polls, {} replies, {} errors, p99 {} ms",
        span(begun.elapsed().as_secs() as i64),
        now.running,
        now.registering,
        now.blocked,
        now.installed,
        now.polls,
        now.replies,
        now.errors(),
        now.p99_us / 1000,
    );
}
