//! `muster cluster install`, `cancel`, `reset` and `add-hosts`.

use super::progress::{self, Stand};
use super::{Named, plan_of};
use crate::age::parse_span;
use crate::exit::Outcome;
use crate::output::{self, Format, Shown};
use crate::plan::{self, DryRunArgs};
use crate::resolve;
use crate::wait::{self, InstallWaitArgs, WaitArgs};
use clap::{Args, ValueEnum};
use muster_contract::client::{ClientError, HubClient};
use muster_contract::v1::plan::Verb;
use muster_contract::v2::cluster::ClusterView;
use std::time::Duration;
use uuid::Uuid;

/// Install a cluster on the hosts lent to it
///
/// Overwrites their disks. With --wait it ends with exit code 1 and the reason when the installation fails, is
/// cancelled, or cannot start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster install demo --dry-run    what each host becomes, and what is lost
  muster cluster install demo --wait       until it works, with the stage of every host")]
pub struct InstallArgs {
    #[command(flatten)]
    cluster: Named,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: InstallWaitArgs,
}

/// Stop an installation where it is
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster cancel demo --dry-run
  muster cluster cancel demo
  muster cluster reset demo --wait         and back to the start")]
pub struct CancelArgs {
    #[command(flatten)]
    cluster: Named,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Send a cluster whose installation failed or was cancelled back to the start
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster reset demo --dry-run
  muster cluster reset demo --wait --timeout 30m   until it can be installed again
  muster cluster install demo --wait               and once more")]
pub struct ResetArgs {
    #[command(flatten)]
    cluster: Named,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Wait for a cluster, whoever started what it does
///
/// Changes nothing. Prints progress to stderr. Ends with exit code 1 and the reason when the cluster will not get
/// there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster wait demo --for ready       until it can be installed
  muster cluster wait demo                   until it is installed")]
pub struct AwaitArgs {
    #[command(flatten)]
    cluster: Named,
    /// What to wait for
    #[arg(long = "for", value_enum, value_name = "STATE", default_value = "installed")]
    goal: Goal,
    /// How long to wait at most
    #[arg(long, value_name = "SPAN", default_value = "3h", value_parser = parse_span)]
    timeout: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Goal {
    Ready,
    Installed,
}

/// What is done to a cluster, and how the output says so.
#[derive(Clone, Copy)]
enum Act {
    Install,
    Cancel,
    Reset,
}

pub async fn install(hub: &HubClient, args: InstallArgs, format: Format) -> Outcome {
    act(
        hub,
        Act::Install,
        &args.cluster,
        args.dry_run,
        args.wait.into(),
        format,
    )
    .await
}

pub async fn cancel(hub: &HubClient, args: CancelArgs, format: Format) -> Outcome {
    act(hub, Act::Cancel, &args.cluster, args.dry_run, args.wait, format).await
}

pub async fn reset(hub: &HubClient, args: ResetArgs, format: Format) -> Outcome {
    act(hub, Act::Reset, &args.cluster, args.dry_run, args.wait, format).await
}

async fn act(
    hub: &HubClient,
    act: Act,
    named: &Named,
    dry_run: DryRunArgs,
    wait: WaitArgs,
    format: Format,
) -> Outcome {
    let cluster = resolve::cluster(hub, &named.cluster).await?;
    let request = plan_of(act.verb(), cluster.id);
    if dry_run.dry_run {
        return plan::show(hub, &request, format).await;
    }
    let from = if wait.wait { wait::head(hub).await? } else { 0 };
    let mut now = match act.ask(hub, cluster.id).await {
        Ok(now) => now,
        Err(error) => return Err(plan::with_next_action(hub, &request, error).await),
    };
    let word = match wait.wait {
        true => {
            now = progress::wait(hub, from, wait.timeout, cluster.id, act.judge()).await?;
            act.done()
        }
        false => act.begun(),
    };
    told(&now, word, format)
}

/// A word that is the status, too, is said once.
fn told(now: &ClusterView, word: &str, format: Format) -> Outcome {
    let sentence = match now.status.as_str() == word {
        true => format!("cluster/{} {word}", now.name),
        false => format!("cluster/{} {word}, {}", now.name, now.status),
    };
    output::done(format, &now.handle(), now, &sentence)
}

impl Act {
    fn verb(self) -> Verb {
        match self {
            Self::Install => Verb::InstallCluster,
            Self::Cancel => Verb::CancelCluster,
            Self::Reset => Verb::ResetCluster,
        }
    }

    async fn ask(self, hub: &HubClient, id: Uuid) -> Result<ClusterView, ClientError> {
        match self {
            Self::Install => hub.install_cluster(id).await,
            Self::Cancel => hub.cancel_cluster(id).await,
            Self::Reset => hub.reset_cluster(id).await,
        }
    }

    fn judge(self) -> fn(&ClusterView) -> Stand {
        match self {
            Self::Install => progress::installed,
            Self::Cancel => progress::cancelled,
            Self::Reset => progress::reset,
        }
    }

    fn begun(self) -> &'static str {
        match self {
            Self::Install => "installs",
            Self::Cancel => "is cancelled",
            Self::Reset => "is reset",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Install => "installed",
            Self::Cancel => "cancelled",
            Self::Reset => "reset",
        }
    }
}

pub async fn wait_for(hub: &HubClient, args: AwaitArgs, format: Format) -> Outcome {
    let cluster = resolve::cluster(hub, &args.cluster.cluster).await?;
    let from = wait::head(hub).await?;
    let (judge, word): (fn(&ClusterView) -> Stand, _) = match args.goal {
        Goal::Ready => (progress::ready, "is ready"),
        Goal::Installed => (progress::installed, "is installed"),
    };
    let now = progress::wait(hub, from, args.timeout, cluster.id, judge).await?;
    output::done(
        format,
        &now.handle(),
        &now,
        &format!("cluster/{} {word}", now.name),
    )
}

pub async fn add_hosts(hub: &HubClient, named: &Named, format: Format) -> Outcome {
    let cluster = resolve::cluster(hub, &named.cluster).await?;
    let now = hub.allow_add_hosts(cluster.id).await?;
    let sentence = format!("cluster/{} takes on more hosts, {}", now.name, now.status);
    output::done(format, &now.handle(), &now, &sentence)
}
