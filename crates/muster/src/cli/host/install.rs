//! `muster host install`, `reset` and `reclaim`: single hosts of clusters that run already.

use super::settle::{self, Settled};
use super::{Named, plan_of};
use crate::exit::Outcome;
use crate::output::{self, Format, Shown};
use crate::plan::{self, DryRunArgs};
use crate::resolve;
use crate::wait::{self, InstallWaitArgs, WaitArgs};
use clap::Args;
use muster_contract::client::{ClientError, HubClient};
use muster_contract::v1::host::HostSummary;
use muster_contract::v1::plan::Verb;
use muster_contract::v2::host::HostView;

/// Install a host into a cluster that runs already
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host install worker-3 --dry-run
  muster host install worker-3 --wait      until it is a node of its cluster

The cluster must take on more hosts: see `muster cluster add-hosts` and
`muster cluster import`. All hosts of a new cluster are installed together, with
`muster cluster install`.")]
pub struct InstallArgs {
    #[command(flatten)]
    host: Named,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: InstallWaitArgs,
}

/// Send a host that joins a running cluster back to the start
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host reset worker-3 --dry-run
  muster host reset worker-3 --wait        until it is discovered again")]
pub struct ResetArgs {
    #[command(flatten)]
    host: Named,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Take a host back that runs its installed system, without a power controller
///
/// The machine fetches the discovery image itself and boots it. When it cannot,
/// it waits for a person to boot it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host reclaim worker-3 --dry-run
  muster host reclaim worker-3 --wait --timeout 1h   until it is free")]
pub struct ReclaimArgs {
    #[command(flatten)]
    host: Named,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// What is done to a host, and how the output says so.
#[derive(Clone, Copy)]
enum Act {
    Install,
    Reset,
    Reclaim,
}

pub async fn install(hub: &HubClient, args: InstallArgs, format: Format) -> Outcome {
    act(
        hub,
        Act::Install,
        &args.host,
        args.dry_run,
        args.wait.into(),
        format,
    )
    .await
}

pub async fn reset(hub: &HubClient, args: ResetArgs, format: Format) -> Outcome {
    act(hub, Act::Reset, &args.host, args.dry_run, args.wait, format).await
}

pub async fn reclaim(hub: &HubClient, args: ReclaimArgs, format: Format) -> Outcome {
    act(hub, Act::Reclaim, &args.host, args.dry_run, args.wait, format).await
}

async fn act(
    hub: &HubClient,
    act: Act,
    named: &Named,
    dry_run: DryRunArgs,
    wait: WaitArgs,
    format: Format,
) -> Outcome {
    let host = resolve::host(hub, &named.host).await?;
    let request = plan_of(act.verb(), &host, None);
    if dry_run.dry_run {
        return plan::show(hub, &request, format).await;
    }
    let from = if wait.wait { wait::head(hub).await? } else { 0 };
    let mut now = match act.ask(hub, &host).await {
        Ok(now) => now,
        Err(error) => return Err(plan::with_next_action(hub, &request, error).await),
    };
    let word = match wait.wait {
        true => {
            let who = (host.infra_env_id, host.id, host.name.as_str());
            now = settle::wait(hub, from, wait.timeout, who, act.judge()).await?;
            act.done()
        }
        false => act.begun(),
    };
    let sentence = format!("host/{} {word}, {}", host.name, now.status);
    output::done(format, &host.handle(), &now, &sentence)
}

impl Act {
    fn verb(self) -> Verb {
        match self {
            Self::Install => Verb::InstallHost,
            Self::Reset => Verb::ResetHost,
            Self::Reclaim => Verb::ReclaimHost,
        }
    }

    async fn ask(self, hub: &HubClient, host: &HostSummary) -> Result<HostView, ClientError> {
        let (infra_env, id) = (host.infra_env_id, host.id);
        match self {
            Self::Install => hub.install_host(infra_env, id).await,
            Self::Reset => hub.reset_host(infra_env, id).await,
            Self::Reclaim => {
                hub.reclaim_host(infra_env, id).await?;
                hub.host(infra_env, id).await
            }
        }
    }

    fn judge(self) -> fn(&HostView) -> Settled {
        match self {
            Self::Install => settle::installed,
            Self::Reset => settle::discovered,
            Self::Reclaim => settle::free,
        }
    }

    fn begun(self) -> &'static str {
        match self {
            Self::Install => "installs",
            Self::Reset => "is reset",
            Self::Reclaim => "is reclaimed",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Install => "installed",
            Self::Reset => "reset",
            Self::Reclaim => "reclaimed",
        }
    }
}
