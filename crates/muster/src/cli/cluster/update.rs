//! `muster cluster update`, and the settings it shares with `create`.

use crate::exit::Outcome;
use crate::input::{self, word_parser};
use crate::output::{self, Format, Shown};
use crate::resolve;
use clap::Args;
use muster_contract::client::HubClient;
use muster_contract::v2::cluster_request::UpdateCluster;
use muster_contract::v2::cluster_setting::NetworkType;
use muster_contract::v2::network::{MachineNetwork, Vip};
use std::path::PathBuf;

/// Settings that can be given at creation and changed later.
#[derive(Debug, Args)]
pub struct Settings {
    /// DNS domain of the cluster; example.com for a new cluster when absent
    #[arg(long, value_name = "DOMAIN")]
    pub base_domain: Option<String>,
    /// File with the pull secret (- for stdin)
    #[arg(long, value_name = "FILE")]
    pub pull_secret: Option<PathBuf>,
    /// File with the SSH key that may log in to the cluster's hosts
    #[arg(long, value_name = "FILE")]
    ssh_key: Option<PathBuf>,
    /// How many hosts form the control plane
    #[arg(long, value_name = "N")]
    control_planes: Option<i64>,
    /// Let ordinary work run on the control plane
    #[arg(long, value_name = "YES/NO", num_args = 0..=1, default_missing_value = "true")]
    schedulable_masters: Option<bool>,
    /// Network the hosts' addresses are in; may be repeated
    #[arg(long, value_name = "CIDR")]
    machine_network: Vec<String>,
    /// Virtual address of the API; may be repeated
    #[arg(long, value_name = "IP")]
    api_vip: Vec<String>,
    /// Virtual address of the ingress; may be repeated
    #[arg(long, value_name = "IP")]
    ingress_vip: Vec<String>,
    /// Load balancing and DNS are yours
    #[arg(long, value_name = "YES/NO", num_args = 0..=1, default_missing_value = "true")]
    user_managed_networking: Option<bool>,
    /// Network plug-in
    #[arg(long, value_name = "TYPE", value_parser = word_parser!(NetworkType))]
    network_type: Option<NetworkType>,
    /// Time servers beside the default ones, separated by commas
    #[arg(long, value_name = "LIST")]
    ntp_sources: Option<String>,
    /// Proxy for http
    #[arg(long, value_name = "URL")]
    http_proxy: Option<String>,
    /// Proxy for https
    #[arg(long, value_name = "URL")]
    https_proxy: Option<String>,
    /// Where no proxy is used
    #[arg(long, value_name = "LIST")]
    no_proxy: Option<String>,
    /// Tags, separated by commas
    #[arg(long, value_name = "LIST")]
    tags: Option<String>,
}

/// Change a cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster update demo --machine-network 192.168.10.0/24
  muster cluster update demo --api-vip 192.168.10.5 --ingress-vip 192.168.10.6
  muster cluster update demo --name demo2")]
pub struct UpdateArgs {
    /// Id, beginning of the id, or name
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    /// A new name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

pub async fn run(hub: &HubClient, args: UpdateArgs, format: Format) -> Outcome {
    let body = UpdateCluster {
        name: args.name,
        ..args.settings.wire()?
    };
    let id = resolve::cluster(hub, &args.cluster).await?.id;
    let now = hub.update_cluster(id, &body).await?;
    output::done(
        format,
        &now.handle(),
        &now,
        &format!("cluster/{} updated, {}", now.name, now.status),
    )
}

impl Settings {
    pub fn wire(self) -> Outcome<UpdateCluster> {
        let networks = |list: Vec<String>| {
            some(list, |cidr| MachineNetwork {
                cidr: Some(cidr),
                ..MachineNetwork::default()
            })
        };
        let vips = |list: Vec<String>| {
            some(list, |ip| Vip {
                ip: Some(ip),
                ..Vip::default()
            })
        };
        Ok(UpdateCluster {
            base_dns_domain: self.base_domain,
            pull_secret: input::pull_secret_opt(self.pull_secret.as_deref())?,
            ssh_public_key: input::text_opt(self.ssh_key.as_deref())?,
            control_plane_count: self.control_planes,
            schedulable_masters: self.schedulable_masters,
            machine_networks: networks(self.machine_network),
            api_vips: vips(self.api_vip),
            ingress_vips: vips(self.ingress_vip),
            user_managed_networking: self.user_managed_networking,
            network_type: self.network_type,
            additional_ntp_source: self.ntp_sources,
            http_proxy: self.http_proxy,
            https_proxy: self.https_proxy,
            no_proxy: self.no_proxy,
            tags: self.tags,
            ..UpdateCluster::default()
        })
    }
}

/// Nothing given leaves the list as it is.
fn some<T>(list: Vec<String>, wrap: impl Fn(String) -> T) -> Option<Vec<T>> {
    if list.is_empty() {
        None
    } else {
        Some(list.into_iter().map(wrap).collect())
    }
}
