//! `muster cluster delete`: the cluster goes, its hosts come back.

use crate::cli::host::settle::{self, Settled};
use crate::exit::{Kind, Outcome};
use crate::output::{self, Format, Shown};
use crate::plan::{self, DryRunArgs};
use crate::resolve;
use crate::wait::{self, Seen, WaitArgs};
use clap::Args;
use muster_contract::client::HubClient;
use muster_contract::v1::host::{HostSummary, HostsQuery};
use muster_contract::v1::plan::Verb;

/// Delete a cluster; its hosts return to the free pool
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster delete demo --dry-run
  muster cluster delete demo
  muster cluster delete demo --wait --timeout 20m   until its hosts are free again")]
pub struct DeleteArgs {
    /// Id, beginning of the id, or name
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    dry_run: DryRunArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

pub async fn run(hub: &HubClient, args: DeleteArgs, format: Format) -> Outcome {
    let cluster = resolve::cluster(hub, &args.cluster).await?;
    let request = super::plan_of(Verb::DeleteCluster, cluster.id);
    if args.dry_run.dry_run {
        return plan::show(hub, &request, format).await;
    }
    let query = HostsQuery {
        cluster_id: Some(cluster.id),
        ..HostsQuery::default()
    };
    let hosts = if args.wait.wait {
        resolve::hosts(hub, query).await?
    } else {
        Vec::new()
    };
    let from = if args.wait.wait { wait::head(hub).await? } else { 0 };
    if let Err(error) = hub.delete_cluster(cluster.id).await {
        return Err(plan::with_next_action(hub, &request, error).await);
    }
    if args.wait.wait {
        let concerns =
            |change: &muster_contract::v1::change::Change| hosts.iter().any(|host| host.id == change.id);
        wait::until(hub, from, args.wait.timeout, concerns, async || {
            all_free(hub, &hosts).await
        })
        .await?;
    }
    output::done(
        format,
        &cluster.handle(),
        &cluster,
        &format!("cluster/{} deleted", cluster.name),
    )
}

async fn all_free(hub: &HubClient, hosts: &[HostSummary]) -> Outcome<Seen<()>> {
    let mut busy = Vec::new();
    for host in hosts {
        match hub.host(host.infra_env_id, host.id).await {
            // Free is enough; whether it is good enough for the next cluster is another question.
            Ok(now) if settle::free(&now) != Settled::NotYet => {}
            Ok(now) => busy.push(format!("{} is {}", host.name, now.status)),
            Err(error) => match crate::exit::Failure::from(error) {
                // Gone is as good as free.
                failure if failure.kind == Kind::NotFound => {}
                failure => return Err(failure),
            },
        }
    }
    match busy.is_empty() {
        true => Ok(Seen::Done(())),
        false => Ok(Seen::NotYet(format!(
            "{} of {} hosts free; {}",
            hosts.len() - busy.len(),
            hosts.len(),
            busy[0]
        ))),
    }
}
