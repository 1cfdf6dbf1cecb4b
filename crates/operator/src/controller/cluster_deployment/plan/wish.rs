//! The cluster that the hub is to have, and what that changes about the one it has.

use super::network::{self, same_network};
use super::stage::Kind;
use super::{Flaw, World, is_installed};
use crate::controller::cluster_deployment::world::Row;
use crate::crd::AgentClusterInstall;
use crate::crd::agent_cluster_install::AgentClusterInstallSpec;
use crate::crd::keys::{data, label};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt;
use muster_contract::Secret;
use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::cluster_request::{CreateCluster, ImportCluster, UpdateCluster};
use muster_contract::v2::cluster_setting::{
    CloudControllerManager, DiskEncryption, DiskEncryptionMode, ExternalPlatform, IgnitionEndpoint,
    LoadBalancer, LoadBalancerType, NetworkType, Platform, PlatformType, RoleSet,
};
use muster_contract::v2::network::{ClusterNetwork, MachineNetwork, ServiceNetwork, Vip};
use muster_domain::input::proxy;
use muster_vocabulary::UnknownWord;
use std::str::FromStr;
use uuid::Uuid;

/// Everything the objects say about the cluster, with what follows where they say nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    pub name: String,
    pub domain: String,
    /// An installed cluster does not need one.
    pub pull_secret: Option<Secret>,
    pub control_plane_count: i64,
    pub user_managed_networking: bool,
    pub platform: Platform,
    pub machine_networks: Vec<String>,
    pub cluster_networks: Vec<(String, Option<i64>)>,
    pub service_networks: Vec<String>,
    pub network_type: Option<NetworkType>,
    pub api_vips: Vec<String>,
    pub ingress_vips: Vec<String>,
    pub ssh_key: String,
    pub ntp_sources: String,
    pub hyperthreading: RoleSet,
    pub encryption: DiskEncryption,
    pub http_proxy: String,
    pub https_proxy: String,
    pub no_proxy: String,
    pub schedulable_masters: bool,
    pub load_balancer: LoadBalancerType,
    pub ignition_url: String,
    pub ignition_ca: String,
    pub tags: String,
}

pub fn wish(world: &World, install: &AgentClusterInstall) -> Result<Wish, Flaw> {
    let deployment = world
        .deployment
        .as_ref()
        .ok_or_else(|| Flaw::Input("there is no ClusterDeployment".into()))?;
    let spec = &install.spec;
    let control_plane_count = spec.provision_requirements.control_plane_agents;
    let (platform, user_managed_networking) = shape(spec)?;
    let (ignition_url, ignition_ca) = ignition_endpoint(world, spec)?;
    let proxy = spec.proxy.clone().unwrap_or_default();
    Ok(Wish {
        name: deployment.spec.cluster_name.clone(),
        domain: deployment.spec.base_domain.clone(),
        pull_secret: pull_secret(world)?,
        control_plane_count,
        user_managed_networking,
        platform,
        machine_networks: spec
            .networking
            .machine_network
            .iter()
            .map(|net| net.cidr.clone())
            .collect(),
        cluster_networks: network::pods(&spec.networking),
        service_networks: spec.networking.service_network.clone(),
        network_type: optional("networking.networkType", &spec.networking.network_type)?,
        api_vips: network::vips(&spec.api_vips, &spec.api_vip),
        ingress_vips: network::vips(&spec.ingress_vips, &spec.ingress_vip),
        ssh_key: spec.ssh_public_key.trim().to_owned(),
        ntp_sources: spec.ntp_sources.join(","),
        hyperthreading: hyperthreading(spec)?,
        encryption: encryption(spec)?,
        http_proxy: proxy.http_proxy,
        https_proxy: proxy.https_proxy,
        no_proxy: proxy.no_proxy,
        schedulable_masters: spec.masters_schedulable,
        load_balancer: load_balancer(spec),
        ignition_url,
        ignition_ca,
        tags: tags(install),
    })
}

fn pull_secret(world: &World) -> Result<Option<Secret>, Flaw> {
    let reference = world
        .deployment
        .as_ref()
        .and_then(|deployment| deployment.spec.pull_secret_ref.as_ref());
    let Some(name) = reference.map(|reference| &reference.name) else {
        return if is_installed(world) {
            Ok(None)
        } else {
            Err(Flaw::Input(
                "The ClusterDeployment names no pull secret (spec.pullSecretRef).".into(),
            ))
        };
    };
    match &world.pull_secret {
        // Whoever is installed has one already.
        None if is_installed(world) => Ok(None),
        None => Err(Flaw::Missing(format!(
            "There is no Secret {name:?} with the pull secret."
        ))),
        Some(secret) => match secret.value(data::PULL_SECRET) {
            Some(value) => Ok(Some(value.into())),
            None => Err(Flaw::Content(format!(
                "Secret {name:?} has no key {:?}.",
                data::PULL_SECRET
            ))),
        },
    }
}

/// Who manages the network follows from the platform, and the platform from that; one host has no addresses to share.
fn shape(spec: &AgentClusterInstallSpec) -> Result<(Platform, bool), Flaw> {
    let needs = &spec.provision_requirements;
    let single_node = needs.control_plane_agents == 1 && needs.worker_agents == 0;
    let given = spec.networking.user_managed_networking;
    let word = spec.platform_type.to_lowercase();
    let kind: Option<PlatformType> = optional("platformType", &word)?;
    let kind = match (kind, single_node, given) {
        // What people write when they spell out the default.
        (Some(PlatformType::Baremetal) | None, true, _) | (None, false, Some(true)) => PlatformType::None,
        (None, false, Some(false) | None) => PlatformType::Baremetal,
        (Some(kind), _, _) => kind,
    };
    let follows = match kind {
        PlatformType::None | PlatformType::External => true,
        PlatformType::Baremetal | PlatformType::Nutanix | PlatformType::Vsphere => single_node,
    };
    Ok((
        Platform {
            r#type: kind,
            external: external(spec, kind)?,
        },
        given.unwrap_or(follows),
    ))
}

fn external(spec: &AgentClusterInstallSpec, kind: PlatformType) -> Result<Option<ExternalPlatform>, Flaw> {
    match &spec.external {
        Some(external) if kind == PlatformType::External => Ok(Some(ExternalPlatform {
            platform_name: Some(external.platform_name.clone()).filter(|name| !name.is_empty()),
            cloud_controller_manager: optional::<CloudControllerManager>(
                "external.cloudControllerManager",
                &external.cloud_controller_manager,
            )?,
        })),
        _ => Ok(None),
    }
}

/// All roles when no pool is given, else those whose pool says so.
fn hyperthreading(spec: &AgentClusterInstallSpec) -> Result<RoleSet, Flaw> {
    if spec.control_plane.is_none() && spec.arbiter.is_none() && spec.compute.is_empty() {
        return Ok(RoleSet::All);
    }
    let on = |word: &str| word == "Enabled" || word.is_empty();
    let masters = spec
        .control_plane
        .as_ref()
        .is_some_and(|pool| on(&pool.hyperthreading));
    let arbiters = spec.arbiter.as_ref().is_some_and(|pool| on(&pool.hyperthreading));
    let workers = spec.compute.iter().any(|pool| on(&pool.hyperthreading));
    let roles = [(masters, "masters"), (arbiters, "arbiters"), (workers, "workers")];
    let words: Vec<&str> = roles
        .iter()
        .filter(|(on, _)| *on)
        .map(|(_, word)| *word)
        .collect();
    match words.len() {
        0 => Ok(RoleSet::None),
        3 => Ok(RoleSet::All),
        _ => parse("hyperthreading", &words.join(",")),
    }
}

fn encryption(spec: &AgentClusterInstallSpec) -> Result<DiskEncryption, Flaw> {
    let none = DiskEncryption {
        enable_on: Some(RoleSet::None),
        mode: None,
        tang_servers: None,
    };
    let Some(wanted) = &spec.disk_encryption else {
        return Ok(none);
    };
    let roles: Option<RoleSet> = optional("diskEncryption.enableOn", &wanted.enable_on)?;
    let Some(roles) = roles.filter(|roles| *roles != RoleSet::None) else {
        return Ok(none);
    };
    let mode: Option<DiskEncryptionMode> = optional("diskEncryption.mode", &wanted.mode)?;
    Ok(DiskEncryption {
        enable_on: Some(roles),
        mode: Some(mode.unwrap_or_default()),
        tang_servers: Some(wanted.tang_servers.clone()),
    })
}

fn load_balancer(spec: &AgentClusterInstallSpec) -> LoadBalancerType {
    match spec
        .load_balancer
        .as_ref()
        .map(|balancer| balancer.type_.as_str())
    {
        Some("UserManaged") => LoadBalancerType::UserManaged,
        _ => LoadBalancerType::ClusterManaged,
    }
}

/// Address, and authority in base64; both empty when hosts ask the cluster itself.
fn ignition_endpoint(world: &World, spec: &AgentClusterInstallSpec) -> Result<(String, String), Flaw> {
    let Some(endpoint) = &spec.ignition_endpoint else {
        return Ok(Default::default());
    };
    let Some(reference) = &endpoint.ca_certificate_reference else {
        return Ok((endpoint.url.clone(), String::new()));
    };
    let name = crate::key::Key::from(reference);
    let Some(secret) = &world.ignition_ca else {
        return Err(Flaw::Missing(format!(
            "There is no Secret {name} with the ignition endpoint's certificate."
        )));
    };
    match secret.value(data::CA_CERTIFICATE) {
        Some(pem) => Ok((endpoint.url.clone(), BASE64_STANDARD.encode(pem))),
        None => Err(Flaw::Content(format!(
            "Secret {name} has no key {:?}.",
            data::CA_CERTIFICATE
        ))),
    }
}

/// A label may contain more than a tag: what it may not is written as an underscore.
fn tags(install: &AgentClusterInstall) -> String {
    let legal = |c: char| if c.is_alphanumeric() { c } else { '_' };
    install
        .labels()
        .get(label::CONSUMER)
        .map(|text| text.chars().map(legal).collect())
        .unwrap_or_default()
}

fn optional<T: FromStr<Err = UnknownWord>>(field: &str, word: &str) -> Result<Option<T>, Flaw> {
    if word.is_empty() {
        Ok(None)
    } else {
        parse(field, word).map(Some)
    }
}

fn parse<T: FromStr<Err = UnknownWord>>(field: &str, word: &str) -> Result<T, Flaw> {
    word.parse()
        .map_err(|error| Flaw::Input(format!("{field} {error}.")))
}

/// A new cluster. What is empty is left to the hub.
pub fn create(world: &World, wish: &Wish) -> Result<CreateCluster, Flaw> {
    let (set, release) = release(world)?;
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let change = full(wish);
    Ok(CreateCluster {
        name: wish.name.clone(),
        openshift_version: release.version.clone(),
        ocp_release_image: Some(set),
        cpu_architecture: optional("cpuArchitecture", &release.cpu_architecture)?,
        pull_secret: wish.pull_secret.clone().unwrap_or_default(),
        base_dns_domain: some(&wish.domain),
        control_plane_count: Some(wish.control_plane_count),
        user_managed_networking: Some(wish.user_managed_networking),
        platform: Some(wish.platform.clone()),
        cluster_networks: change.cluster_networks,
        service_networks: change.service_networks,
        machine_networks: change.machine_networks,
        api_vips: change.api_vips,
        ingress_vips: change.ingress_vips,
        network_type: wish.network_type,
        ssh_public_key: some(&wish.ssh_key),
        http_proxy: some(&wish.http_proxy),
        https_proxy: some(&wish.https_proxy),
        no_proxy: some(&wish.no_proxy),
        ntp_sources: some(&wish.ntp_sources),
        hyperthreading: Some(wish.hyperthreading),
        schedulable_masters: Some(wish.schedulable_masters),
        disk_encryption: Some(wish.encryption.clone())
            .filter(|wanted| wanted.enable_on != Some(RoleSet::None)),
        ignition_endpoint: change.ignition_endpoint.filter(|_| !wish.ignition_url.is_empty()),
        load_balancer: change
            .load_balancer
            .filter(|_| wish.load_balancer != LoadBalancerType::ClusterManaged),
        tags: some(&wish.tags),
        ..CreateCluster::default()
    })
}

/// A cluster that runs already.
pub fn import(world: &World, wish: &Wish) -> Result<ImportCluster, Flaw> {
    let deployment = world
        .deployment
        .as_ref()
        .and_then(|deployment| deployment.spec.cluster_metadata.as_ref());
    let id = deployment
        .or(world.metadata())
        .and_then(|metadata| metadata.cluster_id.parse::<Uuid>().ok());
    // What runs has a version, whether or not anybody can tell it by the name of an image.
    let version = release(world).ok().map(|(_, release)| release.version);
    Ok(ImportCluster {
        name: wish.name.clone(),
        api_vip_dnsname: format!("api.{}.{}", wish.name, wish.domain),
        // Nobody knows it, so it is told apart by ours.
        openshift_cluster_id: id.or(world.id).unwrap_or_default(),
        openshift_version: version,
    })
}

fn release(world: &World) -> Result<(String, muster_contract::v1::release::ReleaseView), Flaw> {
    let reference = world
        .install
        .as_ref()
        .and_then(|install| install.spec.image_set_ref.as_ref());
    let Some(name) = reference.map(|reference| &reference.name) else {
        return Err(Flaw::Input(
            "The AgentClusterInstall names no release (spec.imageSetRef).".into(),
        ));
    };
    let Some(set) = &world.image_set else {
        return Err(Flaw::Missing(format!(
            "There is no ClusterImageSet {name:?} yet."
        )));
    };
    match &world.release {
        Some(Ok(release)) => Ok((set.spec.release_image.clone(), release.clone())),
        Some(Err(trouble)) => Err(Flaw::Input(format!(
            "ClusterImageSet {name:?}: {}",
            trouble.text()
        ))),
        None => Err(Flaw::Missing(format!(
            "The release of ClusterImageSet {name:?} is not known yet."
        ))),
    }
}

/// What the hub was told before, of that which it does not show.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pull_secret: bool,
    proxy: bool,
}

impl Known {
    pub fn of(world: &World) -> Self {
        Self {
            pull_secret: world.pull_secret_is_known,
            proxy: world.proxy_is_known,
        }
    }
}

/// What is to be changed about the hub's cluster; nothing when it is as wanted.
pub fn difference(row: &Row, wish: &Wish, known: Known) -> Option<UpdateCluster> {
    let wanted = full(wish);
    let text = |now: &str, wish: &String| Some(wish.clone()).filter(|wish| wish != now);
    let now = &row.view;
    // The hub shows all but passwords.
    let address = |now: &str, wish: &String| {
        let same = proxy::shown(now) == proxy::shown(wish) && (known.proxy || proxy::shown(wish) == *wish);
        Some(wish.clone()).filter(|_| !same)
    };
    let added = UpdateCluster {
        pull_secret: wish.pull_secret.clone().filter(|_| !known.pull_secret),
        ssh_public_key: text(&now.ssh_public_key, &wish.ssh_key),
        http_proxy: address(&now.http_proxy, &wish.http_proxy),
        https_proxy: address(&now.https_proxy, &wish.https_proxy),
        no_proxy: text(&now.no_proxy, &wish.no_proxy),
        ignition_endpoint: wanted.ignition_endpoint.filter(|wish| !same_endpoint(now, wish)),
        tags: text(&now.tags, &wish.tags),
        ..UpdateCluster::default()
    };
    let update = match row.kind() {
        // How it was installed is history.
        Kind::AddsHosts | Kind::Other => added,
        Kind::New => UpdateCluster {
            name: text(&now.name, &wish.name),
            base_dns_domain: text(&now.base_dns_domain, &wish.domain),
            ntp_sources: text(&now.ntp_sources, &wish.ntp_sources),
            // Only one of the two lists can be given.
            additional_ntp_source: (!wish.ntp_sources.is_empty() && !now.additional_ntp_source.is_empty())
                .then(String::new),
            control_plane_count: Some(wish.control_plane_count)
                .filter(|count| *count != now.control_plane_count),
            user_managed_networking: Some(wish.user_managed_networking)
                .filter(|managed| Some(*managed) != now.user_managed_networking),
            platform: Some(wish.platform.clone())
                .filter(|platform| !same_platform(now.platform.as_ref(), platform)),
            cluster_networks: wanted.cluster_networks.filter(|_| !same_pods(now, wish)),
            service_networks: wanted.service_networks.filter(|_| {
                let now = now
                    .service_networks
                    .iter()
                    .flatten()
                    .filter_map(|net| net.cidr.as_deref());
                !same_network(now, &wish.service_networks)
            }),
            machine_networks: wanted.machine_networks.filter(|_| {
                let now = now
                    .machine_networks
                    .iter()
                    .flatten()
                    .filter_map(|net| net.cidr.as_deref());
                !same_network(now, &wish.machine_networks)
            }),
            api_vips: wanted
                .api_vips
                .filter(|_| !same_vips(now.api_vips.as_deref(), &wish.api_vips)),
            ingress_vips: wanted
                .ingress_vips
                .filter(|_| !same_vips(now.ingress_vips.as_deref(), &wish.ingress_vips)),
            network_type: wish.network_type.filter(|wish| Some(*wish) != now.network_type),
            hyperthreading: Some(wish.hyperthreading).filter(|wish| Some(*wish) != now.hyperthreading),
            schedulable_masters: Some(wish.schedulable_masters)
                .filter(|wish| Some(*wish) != now.schedulable_masters),
            disk_encryption: Some(wish.encryption.clone()).filter(|wish| !same_encryption(now, wish)),
            load_balancer: wanted.load_balancer.filter(|wish| {
                let now = now
                    .load_balancer
                    .as_ref()
                    .and_then(|balancer| balancer.r#type)
                    .unwrap_or_default();
                wish.r#type != Some(now)
            }),
            ..added
        },
    };
    // Size, platform and network say something about each other: whoever changes one names all.
    let update = match &update {
        UpdateCluster {
            control_plane_count: None,
            user_managed_networking: None,
            platform: None,
            ..
        } => update,
        _ => UpdateCluster {
            control_plane_count: Some(wish.control_plane_count),
            user_managed_networking: Some(wish.user_managed_networking),
            platform: Some(wish.platform.clone()),
            ..update
        },
    };
    (update != UpdateCluster::default()).then_some(update)
}

/// Lists and compounds as the hub takes them; lists that are empty are left to it.
fn full(wish: &Wish) -> UpdateCluster {
    let vips = |vips: &[String]| {
        let one = |ip: &String| Vip {
            ip: Some(ip.clone()),
            ..Vip::default()
        };
        (!vips.is_empty()).then(|| vips.iter().map(one).collect())
    };
    let pods = wish
        .cluster_networks
        .iter()
        .map(|(cidr, host_prefix)| ClusterNetwork {
            cluster_id: None,
            cidr: Some(cidr.clone()),
            host_prefix: *host_prefix,
        });
    let services = wish.service_networks.iter().map(|cidr| ServiceNetwork {
        cluster_id: None,
        cidr: Some(cidr.clone()),
    });
    let machines = wish.machine_networks.iter().map(|cidr| MachineNetwork {
        cluster_id: None,
        cidr: Some(cidr.clone()),
    });
    UpdateCluster {
        cluster_networks: (!wish.cluster_networks.is_empty()).then(|| pods.collect()),
        service_networks: (!wish.service_networks.is_empty()).then(|| services.collect()),
        machine_networks: (!wish.machine_networks.is_empty()).then(|| machines.collect()),
        api_vips: vips(&wish.api_vips),
        ingress_vips: vips(&wish.ingress_vips),
        ignition_endpoint: Some(IgnitionEndpoint {
            url: Some(wish.ignition_url.clone()),
            ca_certificate: Some(wish.ignition_ca.clone()),
        }),
        load_balancer: Some(LoadBalancer {
            r#type: Some(wish.load_balancer),
        }),
        ..UpdateCluster::default()
    }
}

fn same_endpoint(now: &ClusterView, wish: &IgnitionEndpoint) -> bool {
    let words = |endpoint: &IgnitionEndpoint| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (text(&endpoint.url), text(&endpoint.ca_certificate))
    };
    words(&now.ignition_endpoint.clone().unwrap_or_default()) == words(wish)
}

fn same_platform(now: Option<&Platform>, wish: &Platform) -> bool {
    let details = |platform: &Platform| {
        let external = platform.external.clone().unwrap_or_default();
        (
            external.platform_name.unwrap_or_default(),
            external.cloud_controller_manager.unwrap_or_default(),
        )
    };
    now.is_some_and(|now| {
        now.r#type == wish.r#type && (wish.external.is_none() || details(now) == details(wish))
    })
}

fn same_pods(now: &ClusterView, wish: &Wish) -> bool {
    let pods: Vec<_> = now.cluster_networks.iter().flatten().collect();
    let cidrs: Vec<String> = wish
        .cluster_networks
        .iter()
        .map(|(cidr, _)| cidr.clone())
        .collect();
    let prefixes = wish
        .cluster_networks
        .iter()
        .zip(&pods)
        .all(|((_, prefix), now)| prefix.is_none() || *prefix == now.host_prefix);
    same_network(pods.iter().filter_map(|net| net.cidr.as_deref()), &cidrs) && prefixes
}

fn same_vips(now: Option<&[Vip]>, wish: &[String]) -> bool {
    let ip = |text: &str| {
        text.parse::<std::net::IpAddr>()
            .map_or_else(|_| text.to_owned(), |ip| ip.to_string())
    };
    let now: Vec<String> = now
        .into_iter()
        .flatten()
        .filter_map(|vip| vip.ip.as_deref())
        .map(ip)
        .collect();
    now == wish.iter().map(|vip| ip(vip)).collect::<Vec<_>>()
}

fn same_encryption(now: &ClusterView, wish: &DiskEncryption) -> bool {
    let roles = |encryption: &DiskEncryption| encryption.enable_on.unwrap_or(RoleSet::None);
    let now = now.disk_encryption.clone().unwrap_or_default();
    if roles(wish) == RoleSet::None {
        return roles(&now) == RoleSet::None;
    }
    let words = |encryption: &DiskEncryption| {
        (
            roles(encryption),
            encryption.mode.unwrap_or_default(),
            encryption.tang_servers.clone().unwrap_or_default(),
        )
    };
    words(&now) == words(wish)
}
