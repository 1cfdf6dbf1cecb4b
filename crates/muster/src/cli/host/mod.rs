//! `muster host`: the machines, free or lent to a cluster.

pub mod explain;
mod install;
mod lend;
pub mod settle;
mod update;

use crate::age::since;
use crate::exit::Outcome;
use crate::names::Names;
use crate::output::{self, Column, Format, OutputArgs, Shown, col, short, wide};
use crate::plan::{self, DryRunArgs};
use crate::resolve;
use clap::{Args, Subcommand};
use muster_contract::client::HubClient;
use muster_contract::rules::CommaList;
use muster_contract::v1::host::{HostSummary, HostsQuery};
use muster_contract::v1::plan::{PlanRequest, Verb};

/// Hosts: the machines, free or lent to a cluster
#[derive(Debug, Args)]
pub struct HostArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: HostVerb,
}

#[derive(Debug, Subcommand)]
enum HostVerb {
    List(ListArgs),
    /// Show one host
    #[command(
        visible_alias = "show",
        after_help = "\
Examples:
  muster host get worker-0
  muster host get worker-0 -o json     all of it, inventory included"
    )]
    Get(Named),
    Bind(lend::BindArgs),
    Unbind(lend::UnbindArgs),
    Move(lend::MoveArgs),
    Install(install::InstallArgs),
    Reset(install::ResetArgs),
    Reclaim(install::ReclaimArgs),
    Update(update::UpdateArgs),
    /// Delete a host's record
    ///
    /// A machine that still runs the discovery image registers again.
    #[command(after_help = "\
Examples:
  muster host delete worker-0 --dry-run
  muster host delete worker-0")]
    Delete {
        #[command(flatten)]
        host: Named,
        #[command(flatten)]
        dry_run: DryRunArgs,
    },
    Explain(explain::ExplainArgs),
    Verdicts(explain::VerdictsArgs),
}

#[derive(Debug, Args)]
pub struct Named {
    /// Id, beginning of the id, name, or INFRA-ENV/HOST
    #[arg(value_name = "HOST")]
    pub host: String,
}

/// List hosts
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host list
  muster host list --free
  muster host list --cluster demo -o wide
  muster host list --status known-unbound,insufficient-unbound
  muster host list --free -o name | head -3")]
struct ListArgs {
    /// Only of this InfraEnv
    #[arg(long, value_name = "INFRA-ENV")]
    infra_env: Option<String>,
    /// Only of this cluster
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Only in one of these states
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<String>,
    /// Only hosts without a cluster
    #[arg(long)]
    free: bool,
}

impl Shown for HostSummary {
    const COLUMNS: &'static [Column] = &[
        col("NAME"),
        col("ID"),
        col("STATUS"),
        col("CLUSTER"),
        col("ROLE"),
        col("CPUS"),
        col("MEMORY"),
        wide("DISK"),
        col("SEEN"),
        wide("INFRA-ENV"),
        wide("FULL ID"),
        wide("INFO"),
    ];

    fn cells(&self, names: &Names) -> Vec<String> {
        vec![
            self.name.clone(),
            short(self.id),
            self.status.to_string(),
            names.of_some(self.cluster_id),
            self.role.to_string(),
            self.cpus.to_string(),
            format!("{}Gi", self.memory_mib / 1024),
            format!("{}G", self.disk_gb),
            since(self.checked_in_at, names.now),
            names.of(self.infra_env_id),
            self.id.to_string(),
            self.status_info.to_string(),
        ]
    }

    fn handle(&self) -> String {
        self.id.to_string()
    }
}

pub async fn run(hub: &HubClient, args: HostArgs) -> Outcome {
    let format = args.output.output;
    match args.verb {
        HostVerb::List(args) => list(hub, args, format).await,
        HostVerb::Get(named) => get(hub, &named, format).await,
        HostVerb::Bind(args) => lend::bind(hub, args, format).await,
        HostVerb::Unbind(args) => lend::unbind(hub, args, format).await,
        HostVerb::Move(args) => lend::shift(hub, args, format).await,
        HostVerb::Install(args) => install::install(hub, args, format).await,
        HostVerb::Reset(args) => install::reset(hub, args, format).await,
        HostVerb::Reclaim(args) => install::reclaim(hub, args, format).await,
        HostVerb::Update(args) => update::run(hub, args, format).await,
        HostVerb::Delete { host, dry_run } => delete(hub, &host, dry_run.dry_run, format).await,
        HostVerb::Explain(args) => explain::explain(hub, args, format).await,
        HostVerb::Verdicts(args) => explain::verdicts(hub, args, format).await,
    }
}

async fn list(hub: &HubClient, args: ListArgs, format: Format) -> Outcome {
    let mut query = HostsQuery {
        free: args.free.then_some(true),
        ..HostsQuery::default()
    };
    if !args.status.is_empty() {
        query.status = Some(CommaList(args.status));
    }
    if let Some(infra_env) = &args.infra_env {
        query.infra_env_id = Some(resolve::infra_env(hub, infra_env).await?.id);
    }
    if let Some(cluster) = &args.cluster {
        query.cluster_id = Some(resolve::cluster(hub, cluster).await?.id);
    }
    let hosts = resolve::hosts(hub, query).await?;
    match format {
        Format::Name => output::print(&handles(&hosts)),
        Format::Table | Format::Wide | Format::Json | Format::Yaml => {
            output::list(format, &hosts, &Names::load(hub).await?)
        }
    }
}

/// Ids; the InfraEnv tells a machine seen through two images apart.
fn handles(hosts: &[HostSummary]) -> String {
    let mut seen = std::collections::HashMap::<uuid::Uuid, usize>::new();
    hosts
        .iter()
        .for_each(|host| *seen.entry(host.id).or_default() += 1);
    hosts
        .iter()
        .map(|host| match seen[&host.id] > 1 {
            true => format!("{}/{}\n", host.infra_env_id, host.id),
            false => format!("{}\n", host.id),
        })
        .collect()
}

async fn get(hub: &HubClient, named: &Named, format: Format) -> Outcome {
    let host = resolve::host(hub, &named.host).await?;
    match format {
        Format::Table | Format::Wide | Format::Name => output::one(format, &host, &Names::load(hub).await?),
        Format::Json | Format::Yaml => output::data(format, &hub.host(host.infra_env_id, host.id).await?),
    }
}

async fn delete(hub: &HubClient, named: &Named, dry_run: bool, format: Format) -> Outcome {
    let host = resolve::host(hub, &named.host).await?;
    let request = plan_of(Verb::DeleteHost, &host, None);
    if dry_run {
        return plan::show(hub, &request, format).await;
    }
    if let Err(error) = hub.delete_host(host.infra_env_id, host.id).await {
        return Err(plan::with_next_action(hub, &request, error).await);
    }
    output::done(
        format,
        &host.handle(),
        &host,
        &format!("host/{} deleted", host.name),
    )
}

fn plan_of(verb: Verb, host: &HostSummary, cluster_id: Option<uuid::Uuid>) -> PlanRequest {
    PlanRequest {
        verb,
        infra_env_id: Some(host.infra_env_id),
        host_id: Some(host.id),
        cluster_id,
    }
}
