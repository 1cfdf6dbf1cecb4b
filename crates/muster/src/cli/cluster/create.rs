//! `muster cluster create` and `import`, with defaults that make a first cluster one word long.

use super::update::Settings;
use crate::exit::{Failure, Kind, Outcome};
use crate::input::{self, word_parser};
use crate::output::{self, Format, Shown};
use clap::Args;
use muster_contract::client::HubClient;
use muster_contract::v2::cluster_request::{CreateCluster, ImportCluster, UpdateCluster};
use muster_contract::v2::cluster_setting::{HighAvailabilityMode, ReleaseArchitecture};
use muster_contract::v2::version::OpenshiftVersionsQuery;
use uuid::Uuid;

/// Reserved for examples, so it cannot be anybody's.
const PRACTICE_DOMAIN: &str = "example.com";

/// Create a cluster
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster create demo
  muster cluster create demo --openshift-version 4.18 --base-domain lab.example.com --pull-secret pull-secret.json
  muster cluster create edge --single-node
  muster cluster create demo --api-vip 192.168.10.5 --ingress-vip 192.168.10.6")]
pub struct CreateArgs {
    /// Name of the cluster
    name: String,
    /// Version to install; the hub's default when absent
    #[arg(long, value_name = "VERSION")]
    openshift_version: Option<String>,
    /// Processor architecture
    #[arg(long, value_name = "ARCH", value_parser = word_parser!(ReleaseArchitecture))]
    arch: Option<ReleaseArchitecture>,
    /// One host that does everything
    #[arg(long)]
    single_node: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Import a cluster that was installed elsewhere, to add hosts to it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster cluster import prod --api-address api.prod.example.com --openshift-cluster-id 6a7f0c52-...")]
pub struct ImportArgs {
    /// Name of the cluster
    name: String,
    /// DNS name or address of its API
    #[arg(long, value_name = "NAME")]
    api_address: String,
    /// The cluster's own id; a new one when absent
    #[arg(long, value_name = "UUID")]
    openshift_cluster_id: Option<Uuid>,
    /// Version the cluster runs
    #[arg(long, value_name = "VERSION")]
    openshift_version: Option<String>,
}

pub async fn create(hub: &HubClient, args: CreateArgs, format: Format) -> Outcome {
    let CreateArgs {
        name,
        openshift_version,
        arch,
        single_node,
        settings,
    } = args;
    let openshift_version = match openshift_version {
        Some(version) => version,
        None => default_version(hub).await?,
    };
    let pull_secret = input::pull_secret(settings.pull_secret.as_deref())?;
    let wire = settings.wire()?;
    let UpdateCluster {
        base_dns_domain,
        machine_networks,
        api_vips,
        ingress_vips,
        user_managed_networking,
        network_type,
        ssh_public_key,
        http_proxy,
        https_proxy,
        no_proxy,
        additional_ntp_source,
        control_plane_count,
        schedulable_masters,
        tags,
        ..
    } = wire;
    let body = CreateCluster {
        name,
        openshift_version,
        pull_secret,
        cpu_architecture: arch,
        high_availability_mode: single_node.then_some(HighAvailabilityMode::None),
        base_dns_domain: base_dns_domain.or_else(|| Some(PRACTICE_DOMAIN.into())),
        machine_networks,
        api_vips,
        ingress_vips,
        user_managed_networking,
        network_type,
        ssh_public_key,
        http_proxy,
        https_proxy,
        no_proxy,
        additional_ntp_source,
        control_plane_count,
        schedulable_masters,
        tags,
        ..CreateCluster::default()
    };
    let made = hub.create_cluster(&body).await?;
    let sentence = format!(
        "cluster/{} created, id {}, version {}",
        made.name, made.id, made.openshift_version
    );
    output::done(format, &made.handle(), &made, &sentence)
}

async fn default_version(hub: &HubClient) -> Outcome<String> {
    let versions = hub
        .openshift_versions(&OpenshiftVersionsQuery::default())
        .await?
        .0;
    let found = versions
        .iter()
        .find(|(_, version)| version.default)
        .or_else(|| versions.last_key_value());
    found.map(|(name, _)| name.clone()).ok_or_else(|| {
        Failure::new(Kind::Refused, "the hub offers no version to install")
            .next("give the hub release images (muster serve --release-images), or name one with --openshift-version")
    })
}

pub async fn import(hub: &HubClient, args: ImportArgs, format: Format) -> Outcome {
    let body = ImportCluster {
        name: args.name,
        api_vip_dnsname: args.api_address,
        openshift_cluster_id: args.openshift_cluster_id.unwrap_or_else(Uuid::new_v4),
        openshift_version: args.openshift_version,
    };
    let made = hub.import_cluster(&body).await?;
    output::done(
        format,
        &made.handle(),
        &made,
        &format!("cluster/{} imported, id {}", made.name, made.id),
    )
}
