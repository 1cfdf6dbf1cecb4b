//! `muster host bind`, `unbind` and `move`: lending hosts and taking them back.

use super::settle;
use super::{Named, plan_of};
use crate::exit::Outcome;
use crate::output::{self, Format, Shown};
use crate::plan::{self, DryRunArgs};
use crate::resolve;
use crate::wait::{self, WaitArgs};
use clap::Args;
use muster_contract::client::HubClient;
use muster_contract::v1::plan::Verb;

/// Lend a free host to a cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host bind worker-0 --cluster demo --dry-run   what would happen
  muster host bind worker-0 --cluster demo --wait      until the host is judged in its cluster")]
pub struct BindArgs {
    #[command(flatten)]
    host: Named,
    /// The cluster to lend it to
    #[arg(long, value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Take a host back from its cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host unbind worker-0 --dry-run
  muster host unbind worker-0 --wait --timeout 15m")]
pub struct UnbindArgs {
    #[command(flatten)]
    host: Named,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

/// Move a host to another cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host move worker-0 --to other --dry-run
  muster host move worker-0 --to other --wait")]
pub struct MoveArgs {
    #[command(flatten)]
    host: Named,
    /// The cluster to move it to
    #[arg(long, value_name = "CLUSTER")]
    to: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

pub async fn bind(hub: &HubClient, args: BindArgs, format: Format) -> Outcome {
    let host = resolve::host(hub, &args.host.host).await?;
    let cluster = resolve::cluster(hub, &args.cluster).await?;
    let request = plan_of(Verb::Bind, &host, Some(cluster.id));
    if args.dry_run.dry_run {
        return plan::show(hub, &request, format).await;
    }
    let from = if args.wait.wait { wait::head(hub).await? } else { 0 };
    let mut now = match hub.bind_host(host.infra_env_id, host.id, cluster.id).await {
        Ok(now) => now,
        Err(error) => return Err(plan::with_next_action(hub, &request, error).await),
    };
    if args.wait.wait {
        let who = (host.infra_env_id, host.id, host.name.as_str());
        now = settle::wait(hub, from, args.wait.timeout, who, |now| {
            settle::bound_to(now, &cluster)
        })
        .await?;
    }
    let sentence = format!(
        "host/{} bound to cluster/{}, {}",
        host.name, cluster.name, now.status
    );
    output::done(format, &host.handle(), &now, &sentence)
}

pub async fn unbind(hub: &HubClient, args: UnbindArgs, format: Format) -> Outcome {
    let host = resolve::host(hub, &args.host.host).await?;
    let request = plan_of(Verb::Unbind, &host, None);
    if args.dry_run.dry_run {
        return plan::show(hub, &request, format).await;
    }
    let from = if args.wait.wait { wait::head(hub).await? } else { 0 };
    let mut now = match hub.unbind_host(host.infra_env_id, host.id).await {
        Ok(now) => now,
        Err(error) => return Err(plan::with_next_action(hub, &request, error).await),
    };
    if args.wait.wait {
        let who = (host.infra_env_id, host.id, host.name.as_str());
        now = settle::wait(hub, from, args.wait.timeout, who, settle::free).await?;
    }
    output::done(
        format,
        &host.handle(),
        &now,
        &format!("host/{} unbound, {}", host.name, now.status),
    )
}

/// `move` is a word of the language.
pub async fn shift(hub: &HubClient, args: MoveArgs, format: Format) -> Outcome {
    let host = resolve::host(hub, &args.host.host).await?;
    let cluster = resolve::cluster(hub, &args.to).await?;
    let request = plan_of(Verb::Move, &host, Some(cluster.id));
    if args.dry_run.dry_run {
        return plan::show(hub, &request, format).await;
    }
    let from = if args.wait.wait { wait::head(hub).await? } else { 0 };
    let begun = match hub.move_host(host.infra_env_id, host.id, cluster.id).await {
        Ok(begun) => begun,
        Err(error) => return Err(plan::with_next_action(hub, &request, error).await),
    };
    if !args.wait.wait {
        let sentence = format!(
            "host/{} moves to cluster/{}, {}",
            host.name, cluster.name, begun.status
        );
        return output::done(format, &host.handle(), &begun, &sentence);
    }
    let who = (host.infra_env_id, host.id, host.name.as_str());
    let now = settle::wait(hub, from, args.wait.timeout, who, |now| {
        settle::bound_to(now, &cluster)
    })
    .await?;
    let sentence = format!(
        "host/{} moved to cluster/{}, {}",
        host.name, cluster.name, now.status
    );
    output::done(format, &host.handle(), &now, &sentence)
}
