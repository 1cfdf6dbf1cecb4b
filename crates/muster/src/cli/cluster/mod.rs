//! `muster cluster`: what hosts are lent to.

mod create;
mod delete;
mod update;

use super::host;
use crate::age::since;
use crate::exit::Outcome;
use crate::names::Names;
use crate::output::{self, Column, Format, OutputArgs, Shown, col, short, wide};
use crate::resolve;
use clap::{Args, Subcommand};
use muster_contract::client::HubClient;
use muster_contract::v1::host::HostsQuery;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::ClustersQuery;

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
    /// Show one cluster
    #[command(after_help = "Examples:\n  muster cluster get demo\n  muster cluster get demo -o yaml")]
    Get {
        /// Id, beginning of the id, or name
        #[arg(value_name = "CLUSTER")]
        cluster: String,
    },
    Create(create::CreateArgs),
    Import(create::ImportArgs),
    Update(update::UpdateArgs),
    Delete(delete::DeleteArgs),
    /// List the hosts of a cluster
    #[command(after_help = "Examples:\n  muster cluster hosts demo\n  muster cluster hosts demo -o name")]
    Hosts {
        /// Id, beginning of the id, or name
        #[arg(value_name = "CLUSTER")]
        cluster: String,
    },
    /// Tell why a cluster is in its state and what to do next
    #[command(after_help = "Examples:\n  muster cluster explain demo")]
    Explain {
        /// Id, beginning of the id, or name
        #[arg(value_name = "CLUSTER")]
        cluster: String,
    },
}

impl Shown for ClusterView {
    const COLUMNS: &'static [Column] = &[
        col("NAME"),
        col("ID"),
        col("STATUS"),
        col("VERSION"),
        col("HOSTS"),
        col("READY"),
        col("AGE"),
        wide("FULL ID"),
        wide("BASE DOMAIN"),
        wide("INFO"),
    ];

    fn cells(&self, names: &Names) -> Vec<String> {
        vec![
            self.name.clone(),
            short(self.id),
            self.status.to_string(),
            self.openshift_version.clone(),
            self.total_host_count.to_string(),
            self.ready_host_count.to_string(),
            since(self.created_at.0, names.now),
            self.id.to_string(),
            self.base_dns_domain.clone(),
            self.status_info.to_string(),
        ]
    }

    fn handle(&self) -> String {
        self.id.to_string()
    }
}

pub async fn run(hub: &HubClient, args: ClusterArgs) -> Outcome {
    let format = args.output.output;
    match args.verb {
        ClusterVerb::List => {
            let clusters = hub.clusters(&ClustersQuery::default()).await?;
            output::list(format, &clusters, &Names::none())
        }
        ClusterVerb::Get { cluster } => {
            output::one(format, &resolve::cluster(hub, &cluster).await?, &Names::none())
        }
        ClusterVerb::Create(args) => create::create(hub, args, format).await,
        ClusterVerb::Import(args) => create::import(hub, args, format).await,
        ClusterVerb::Update(args) => update::run(hub, args, format).await,
        ClusterVerb::Delete(args) => delete::run(hub, args, format).await,
        ClusterVerb::Hosts { cluster } => hosts(hub, &cluster, format).await,
        ClusterVerb::Explain { cluster } => {
            let cluster = resolve::cluster(hub, &cluster).await?;
            host::explain::show(&hub.explain_cluster(cluster.id).await?, &[], format)
        }
    }
}

async fn hosts(hub: &HubClient, wanted: &str, format: Format) -> Outcome {
    let cluster = resolve::cluster(hub, wanted).await?;
    let query = HostsQuery {
        cluster_id: Some(cluster.id),
        ..HostsQuery::default()
    };
    let hosts = resolve::hosts(hub, query).await?;
    output::list(format, &hosts, &Names::load(hub).await?)
}
