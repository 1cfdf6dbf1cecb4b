//! `muster sim`: fleets of simulated hosts that speak the real agent protocol.

use crate::age::{parse_span, span};
use crate::exit::{Failure, Outcome};
use crate::resolve;
use muster_contract::client::HubClient;
use muster_simfleet::{Fault, Fleet, FleetConfig, Stats, StatsView};
use std::str::FromStr;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Often enough to see that it lives, seldom enough for a log.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Run simulated hosts against a hub
///
/// They register, report inventories of several kinds of hardware, install, reboot and come back as the hub tells them,
/// like real agents, until Ctrl-C stops them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster sim --infra-env lab --hosts 4 --poll 1
  muster sim --infra-env lab --hosts 1000 --seed 7 --duration 10m
  muster sim --infra-env lab --hosts 100 --fault silent:5% --fault slow-replies:10%:30s
  muster sim --infra-env lab --hosts 4 --poll 1 --install-time 30s --fault fail:#1:writing-image-to-disk

Faults are written as kind:who[:details]. Who: a share (5%), the first hosts
(2), or one host by its place (#7). WHEN: a time after the host's start (5m), or
a stage of its installation (writing-image-to-disk, rebooting, ...).
  silent:5%[:AFTER[:FOR]]       stops, and comes back after FOR or never
  dup-uuid:2                    pairs of machines show one id
  slow-replies:10%:30s          every step takes so much longer
  lost-replies:10%[:50%]        that share of its replies is lost
  doubled-replies:10%[:100%]    that share of its replies arrives twice
  reboot:1%:5m                  reboots once, so long after its start
  reboot:#3:configuring         reboots into discovery once, at that stage
  wrong-boot:#3                 boots discovery instead of its new disk, once
  power-off:#3:WHEN[:FOR]       loses power once, is back after FOR or never
  cut-off:100%:WHEN[:FOR]       cannot reach the hub for a while, or ever again
  fail:#3:STAGE                 its installer fails in that stage, once
  install-exit:#3[:CODE]        its installer cannot be started, once (1)
  slow-images:10%:5m            its check of images takes so much longer
  image-failure:#3[:TIMES]      its check of images finds none, so often (1)
  slow-disk:#3[:MS]             its disk takes that long to write (20)
  shrinking-disk:#3             its disks become too small once it is lent
  reclaim-failure:#3[:TIMES]    a reclaim cannot store its files, so often (1)
  media-loss:2%[:AFTER]         cannot read its discovery image any more
  clock-skew:10%:-5m            its clock is off
  flapping-inventory:1%[:EVERY] its inventory keeps changing")]
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
    /// What a whole installation takes; nine minutes when absent, less when polls are faster
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    install_time: Option<Duration>,
    /// How often someone boots the discovery image on installed machines that the hub waits for; `off` for never
    #[arg(long, value_name = "SPAN|off", default_value = "1m")]
    return_boots: ReturnBoots,
    /// Number of the first host; fleets side by side use other numbers
    #[arg(long, value_name = "N", default_value = "0")]
    first_index: u32,
}

/// How often, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ReturnBoots(Option<Duration>);

impl FromStr for ReturnBoots {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self(None)),
            span => parse_span(span).map(|every| Self(Some(every))),
        }
    }
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
        .map_err(|error| Failure::other(format!("the simulated fleet failed: {error}")))?;
    tell(begun, &stats);
    Ok(())
}

/// The same arguments give the same fleet.
fn fleet(hub: &HubClient, infra_env_id: uuid::Uuid, args: &SimArgs) -> Outcome<Fleet> {
    let plain = FleetConfig::default();
    let config = FleetConfig {
        hub_url: hub.base().to_owned(),
        trust: hub.trusts().clone(),
        infra_env_id,
        hosts: args.hosts,
        seed: args.seed,
        first_index: args.first_index,
        poll: args.poll,
        faults: args.fault.clone(),
        connections: args.connections.unwrap_or(plain.connections),
        revive: args.revive,
        install_time: args.install_time,
        return_boots: args.return_boots.0,
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
    let after = span(begun.elapsed().as_secs() as i64);
    eprintln!("{after:>5}  {}", summary(&stats.view()));
}

/// What did not happen is left out, except for what people look for first.
fn summary(now: &StatsView) -> String {
    let mut hosts = format!(
        "running {}, registering {}, blocked {}, installed {}",
        now.running, now.registering, now.blocked, now.installed
    );
    if now.off > 0 {
        hosts += &format!(", off {}", now.off);
    }
    if now.installs_done + now.installs_failed > 0 {
        hosts += &format!(
            "; installations: {} done, {} failed",
            now.installs_done, now.installs_failed
        );
    }
    format!(
        "{hosts}; {} polls, {} replies, {} errors, p99 {} ms",
        now.polls,
        now.replies,
        now.errors(),
        now.p99_us / 1000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_may_look_after_installed_machines() {
        assert_eq!("off".parse(), Ok(ReturnBoots(None)));
        assert_eq!("90".parse(), Ok(ReturnBoots(Some(Duration::from_secs(90)))));
        assert!("often".parse::<ReturnBoots>().is_err());
    }

    #[test]
    fn the_summary_tells_of_installations_once_there_are_some() {
        let quiet = StatsView {
            running: 4,
            ..StatsView::default()
        };
        assert_eq!(
            summary(&quiet),
            "running 4, registering 0, blocked 0, installed 0; 0 polls, 0 replies, 0 errors, p99 0 ms"
        );
        let busy = StatsView {
            installed: 2,
            off: 1,
            installs_done: 2,
            installs_failed: 1,
            ..quiet
        };
        assert!(
            summary(&busy).contains("installed 2, off 1; installations: 2 done, 1 failed; "),
            "{}",
            summary(&busy)
        );
    }
}
