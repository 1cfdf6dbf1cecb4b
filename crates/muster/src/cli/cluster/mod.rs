//! `muster cluster`: what hosts are lent to.

mod create;
mod delete;
mod files;
mod ignition;
mod install;
mod manifest;
mod progress;
mod show;
mod update;

use super::host;
use crate::exit::Outcome;
use crate::names::Names;
use crate::output::{self, Format, OutputArgs};
use crate::resolve;
use clap::{Args, Subcommand};
use muster_contract::client::HubClient;
use muster_contract::v1::host::HostsQuery;
use muster_contract::v1::plan::{PlanRequest, Verb};
use muster_contract::v2::cluster_request::ClustersQuery;
use uuid::Uuid;

/// Clusters: what hosts are lent to
#[derive(Debug, Args)]
pub struct ClusterArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: ClusterVerb,
}

#[derive(Debug, Subcommand)]
enum ClusterVerb {
    /// List clusters
    #[command(after_help = "Examples:\n  muster cluster list\n  muster cluster list -o json")]
    List,
    /// Show one cluster, and how far its hosts are while it installs
    #[command(
        visible_alias = "show",
        after_help = "Examples:\n  muster cluster get demo\n  muster cluster get demo -o yaml"
    )]
    Get(Named),
    Create(create::CreateArgs),
    Import(create::ImportArgs),
    Update(update::UpdateArgs),
    Delete(delete::DeleteArgs),
    Install(install::InstallArgs),
    Cancel(install::CancelArgs),
    Reset(install::ResetArgs),
    Wait(install::AwaitArgs),
    /// Let an installed cluster take on more hosts
    #[command(after_help = "\
Examples:
  muster cluster add-hosts demo
  muster host bind worker-3 --cluster demo --wait
  muster host install worker-3 --wait")]
    AddHosts(Named),
    /// List the hosts of a cluster
    #[command(after_help = "Examples:\n  muster cluster hosts demo\n  muster cluster hosts demo -o name")]
    Hosts(Named),
    /// Show why a cluster is in its state, and what to do next
    #[command(after_help = "Examples:\n  muster cluster explain demo")]
    Explain(Named),
    Ignition(ignition::IgnitionArgs),
    Manifest(manifest::ManifestArgs),
    InstallConfig(files::InstallConfigArgs),
    Credentials(files::CredentialsArgs),
    Kubeconfig(files::KubeconfigArgs),
    File(files::FileArgs),
    Logs(files::LogsArgs),
}

#[derive(Debug, Args)]
struct Named {
    /// Id, beginning of the id, or name
    #[arg(value_name = "CLUSTER")]
    cluster: String,
}

pub async fn run(hub: &HubClient, args: ClusterArgs) -> Outcome {
    let format = args.output.output;
    match args.verb {
        ClusterVerb::List => {
            let clusters = hub.clusters(&ClustersQuery::default()).await?;
            output::list(format, &clusters, &Names::none())
        }
        ClusterVerb::Get(named) => show::one(&resolve::cluster(hub, &named.cluster).await?, format),
        ClusterVerb::Create(args) => create::create(hub, args, format).await,
        ClusterVerb::Import(args) => create::import(hub, args, format).await,
        ClusterVerb::Update(args) => update::run(hub, args, format).await,
        ClusterVerb::Delete(args) => delete::run(hub, args, format).await,
        ClusterVerb::Install(args) => install::install(hub, args, format).await,
        ClusterVerb::Cancel(args) => install::cancel(hub, args, format).await,
        ClusterVerb::Reset(args) => install::reset(hub, args, format).await,
        ClusterVerb::Wait(args) => install::wait_for(hub, args, format).await,
        ClusterVerb::AddHosts(named) => install::add_hosts(hub, &named, format).await,
        ClusterVerb::Hosts(named) => hosts(hub, &named, format).await,
        ClusterVerb::Explain(named) => {
            let cluster = resolve::cluster(hub, &named.cluster).await?;
            host::explain::show(&hub.explain_cluster(cluster.id).await?, &[], format)
        }
        ClusterVerb::Ignition(args) => ignition::run(hub, args, format).await,
        ClusterVerb::Manifest(args) => manifest::run(hub, args, format).await,
        ClusterVerb::InstallConfig(args) => files::install_config(hub, args, format).await,
        ClusterVerb::Credentials(args) => files::credentials(hub, args, format).await,
        ClusterVerb::Kubeconfig(args) => files::kubeconfig(hub, args).await,
        ClusterVerb::File(args) => files::file(hub, args).await,
        ClusterVerb::Logs(args) => files::logs(hub, args).await,
    }
}

async fn hosts(hub: &HubClient, named: &Named, format: Format) -> Outcome {
    let cluster = resolve::cluster(hub, &named.cluster).await?;
    let query = HostsQuery {
        cluster_id: Some(cluster.id),
        ..HostsQuery::default()
    };
    let hosts = resolve::hosts(hub, query).await?;
    output::list(format, &hosts, &Names::load(hub).await?)
}

fn plan_of(verb: Verb, cluster: Uuid) -> PlanRequest {
    PlanRequest {
        verb,
        infra_env_id: None,
        host_id: None,
        cluster_id: Some(cluster),
    }
}
