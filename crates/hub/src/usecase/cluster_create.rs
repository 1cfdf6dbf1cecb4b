//! A new cluster: what was asked for, and sensible answers to everything that was not.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::usecase::cluster_update::{Given, apply, availability};
use muster_contract::v2::cluster_request::{CreateCluster, UpdateCluster};
use muster_contract::v2::cluster_setting::{HighAvailabilityMode, ReleaseArchitecture};
use muster_domain::catalog::Release;
use muster_domain::cluster::{
    Cluster, ClusterNetwork, DiskEncryption, Gates, IgnitionEndpoint, IgnitionSource, Install, Kind,
    Operator, Phase, Platform, PlatformType, lifecycle,
};
use muster_domain::infra_env::Proxy;
use muster_domain::input::{control_plane, image, schema};
use muster_domain::{ClusterId, Severity};
use muster_vocabulary::{DiskEncryptionMode, LoadBalancerType, RoleSet, Word};
use std::net::IpAddr;
use std::sync::Arc;
use uuid::Uuid;

/// Networks nobody has to think about: pods with the share of one host, services.
const PODS_V4: (&str, i64) = ("10.128.0.0/14", 23);
const PODS_V6: (&str, i64) = ("fd01::/48", 64);
const SERVICES_V4: &str = "172.30.0.0/16";
const SERVICES_V6: &str = "fd02::/112";

pub async fn cluster_create(
    hub: &Hub,
    wish: &CreateCluster,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    cluster_create_as(hub, ClusterId(Uuid::new_v4()), wish, opctx).await
}

/// Under an id that the caller chose; stale if it is taken.
pub async fn cluster_create_as(
    hub: &Hub,
    id: ClusterId,
    wish: &CreateCluster,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    let mut cluster = new_cluster(hub, wish, opctx)?;
    cluster.id = id;
    let text = format!("Cluster {} was created.", cluster.name);
    let entry = cluster.entry("cluster_registration_succeeded", Severity::Info, text);
    hub.add_cluster(cluster, entry, opctx).await
}

fn new_cluster(hub: &Hub, wish: &CreateCluster, opctx: &OpContext) -> Result<Cluster, Error> {
    // The length is a matter of form and judged before anything that needs thought.
    schema::length(
        "name",
        &wish.name,
        1,
        muster_domain::input::name::CLUSTER_NAME_MAX,
    )?;
    let word = wish.cpu_architecture.map(ReleaseArchitecture::word);
    let architecture = image::cpu_architecture(word, &image::CLUSTER_ARCHITECTURES)?;
    let release = release(hub, wish, &architecture)?;
    let mode = wish.high_availability_mode.map(HighAvailabilityMode::word);
    let count = control_plane::control_plane(wish.control_plane_count, mode, &release.version)?;
    let mut cluster = blank(hub, opctx);
    cluster.openshift_version.clone_from(&release.version);
    cluster.ocp_release_image = wish
        .ocp_release_image
        .clone()
        .unwrap_or_else(|| release.url.clone());
    cluster.cpu_architecture.clone_from(&release.cpu_architecture);
    cluster.control_plane_count = count;
    cluster.high_availability_mode = availability(count).into();
    cluster.operators = vec![Operator {
        name: "console".into(),
        builtin: true,
        ..Operator::default()
    }];
    if wish.additional_ntp_source.is_none() && wish.ntp_sources.is_none() {
        cluster
            .additional_ntp_source
            .clone_from(&hub.settings.default_ntp);
    }
    apply(&mut cluster, &settings_of(wish, count), Given::AtBirth)?;
    if cluster.pull_secret.is_empty() {
        muster_domain::input::pull_secret::pull_secret("")?;
    }
    default_networks(&mut cluster);
    Ok(cluster)
}

/// Whoever names an image that is a release of this version means that one, listed here or not.
fn release(hub: &Hub, wish: &CreateCluster, architecture: &str) -> Result<Release, Error> {
    let catalog = &hub.settings.catalog;
    let named = wish
        .ocp_release_image
        .as_deref()
        .and_then(|image| catalog.release_of_image(image).ok());
    match named.filter(|release| release.version == wish.openshift_version) {
        Some(release) => Ok(release),
        None => Ok(catalog.release(&wish.openshift_version, architecture)?.clone()),
    }
}

/// A cluster of which nothing is known yet.
pub fn blank(hub: &Hub, opctx: &OpContext) -> Cluster {
    let now = hub.now();
    let mut cluster = Cluster {
        id: ClusterId(Uuid::new_v4()),
        revision: 0,
        kind: Kind::Cluster,
        phase: Phase::Draft,
        since: now,
        // Nothing was measured yet; clients know a new cluster as one that lacks hosts.
        gates: Gates {
            inputs: true,
            vips_defined: true,
            required: false,
        },
        status_info: String::new(),
        status_updated_at: now,
        created_at: now,
        updated_at: now,
        name: String::new(),
        openshift_version: String::new(),
        ocp_release_image: String::new(),
        base_dns_domain: String::new(),
        control_plane_count: 0,
        high_availability_mode: Word::default(),
        cluster_networks: Vec::new(),
        service_networks: Vec::new(),
        machine_networks: Vec::new(),
        machine_networks_given: false,
        api_vips: Vec::new(),
        ingress_vips: Vec::new(),
        vip_dhcp_allocation: false,
        user_managed_networking: false,
        platform: Platform {
            kind: PlatformType::Baremetal,
            ..Platform::default()
        },
        network_type: Word::default(),
        pull_secret: String::new(),
        ssh_public_key: String::new(),
        proxy: Proxy::default(),
        additional_ntp_source: String::new(),
        ntp_sources: String::new(),
        operators: Vec::new(),
        hyperthreading: RoleSet::All.into(),
        schedulable_masters: false,
        cpu_architecture: String::new(),
        disk_encryption: DiskEncryption {
            enable_on: RoleSet::None.into(),
            mode: DiskEncryptionMode::Tpmv2.into(),
            tang_servers: String::new(),
        },
        ignition_endpoint: IgnitionEndpoint::default(),
        tags: String::new(),
        load_balancer: LoadBalancerType::ClusterManaged.into(),
        api_vip_dns_name: String::new(),
        openshift_cluster_id: None,
        imported: false,
        install_config_overrides: String::new(),
        ignored_cluster_validations: String::new(),
        ignored_host_validations: String::new(),
        org_soft_timeouts_enabled: hub.settings.soft_timeouts,
        validations: String::new(),
        connectivity_groups: String::new(),
        collisions: std::collections::BTreeMap::new(),
        install: Install::default(),
        ignition_source: IgnitionSource::default(),
        install_started_at: None,
        install_completed_at: None,
        user: opctx.caller.user.clone(),
        org: opctx.caller.org.clone(),
        email_domain: opctx.caller.email_domain.clone(),
    };
    cluster.status_info = lifecycle::status_text(cluster.status()).into();
    cluster
}

/// Everything that can also be changed later is judged by the same code as a change.
fn settings_of(wish: &CreateCluster, count: i64) -> UpdateCluster {
    let wish = wish.clone();
    UpdateCluster {
        name: Some(wish.name),
        pull_secret: Some(wish.pull_secret),
        machine_network_cidr: None,
        api_vip_dns_name: None,
        base_dns_domain: wish.base_dns_domain,
        cluster_network_cidr: wish.cluster_network_cidr,
        cluster_network_host_prefix: wish.cluster_network_host_prefix,
        service_network_cidr: wish.service_network_cidr,
        cluster_networks: wish.cluster_networks,
        service_networks: wish.service_networks,
        machine_networks: wish.machine_networks,
        api_vips: wish.api_vips,
        ingress_vips: wish.ingress_vips,
        vip_dhcp_allocation: wish.vip_dhcp_allocation,
        user_managed_networking: wish.user_managed_networking,
        platform: wish.platform,
        network_type: wish.network_type,
        ssh_public_key: wish.ssh_public_key,
        http_proxy: wish.http_proxy,
        https_proxy: wish.https_proxy,
        no_proxy: wish.no_proxy,
        additional_ntp_source: wish.additional_ntp_source,
        ntp_sources: wish.ntp_sources,
        olm_operators: wish.olm_operators,
        operator_bundles: wish.operator_bundles,
        hyperthreading: wish.hyperthreading,
        schedulable_masters: wish.schedulable_masters,
        control_plane_count: Some(count),
        disk_encryption: wish.disk_encryption,
        ignition_endpoint: wish.ignition_endpoint,
        load_balancer: wish.load_balancer,
        tags: wish.tags,
        os_stream: wish.os_stream,
    }
}

/// Pod and service networks of the families the machines use; IPv4 while nobody said anything.
fn default_networks(cluster: &mut Cluster) {
    let addresses = cluster
        .machine_networks
        .iter()
        .map(|net| net.split('/').next().unwrap_or(net).to_owned());
    let vips = cluster.api_vips.iter().map(|vip| vip.ip.clone());
    let families: Vec<IpAddr> = addresses
        .chain(vips)
        .filter_map(|text| text.parse().ok())
        .collect();
    let v6 = families.iter().any(IpAddr::is_ipv6);
    let v4 = !v6 || families.iter().any(IpAddr::is_ipv4);
    if cluster.cluster_networks.is_empty() {
        cluster.cluster_networks = [(v4, PODS_V4), (v6, PODS_V6)]
            .into_iter()
            .filter(|(used, _)| *used)
            .map(|(_, (cidr, host_prefix))| ClusterNetwork {
                cidr: cidr.into(),
                host_prefix,
            })
            .collect();
    }
    if cluster.service_networks.is_empty() {
        cluster.service_networks = [(v4, SERVICES_V4), (v6, SERVICES_V6)]
            .into_iter()
            .filter(|(used, _)| *used)
            .map(|(_, cidr)| cidr.to_owned())
            .collect();
    }
}

/// The defaults as clients see them: for IPv4, or for both families.
pub fn default_network_texts(dual: bool) -> (Vec<(&'static str, i64)>, Vec<&'static str>) {
    if dual {
        (vec![PODS_V4, PODS_V6], vec![SERVICES_V4, SERVICES_V6])
    } else {
        (vec![PODS_V4], vec![SERVICES_V4])
    }
}
