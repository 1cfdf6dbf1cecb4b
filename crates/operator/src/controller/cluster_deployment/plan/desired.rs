//! The cluster that the hub is to have, and what that changes about the one it has.

use super::network::{self, same_network};
use super::stage::Kind;
use super::{InvalidSpec, Snapshot, is_installed};
use crate::controller::cluster_deployment::snapshot::Row;
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
    LoadBalancer, LoadBalancerType, NetworkType, Platform, PlatformType, PlatformView, RoleSet,
};
use muster_contract::v2::network::{ClusterNetwork, MachineNetwork, ServiceNetwork, Vip};
use muster_domain::input::proxy;
use muster_vocabulary::{UnknownWord, Word, Words};
use std::str::FromStr;
use uuid::Uuid;

/// Everything the objects say about the cluster, with what follows where they say nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredCluster {
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

pub fn desired(snapshot: &Snapshot, install: &AgentClusterInstall) -> Result<DesiredCluster, InvalidSpec> {
    let deployment = snapshot
        .deployment
        .as_ref()
        .ok_or_else(|| InvalidSpec::Input("there is no ClusterDeployment".into()))?;
    let spec = &install.spec;
    let control_plane_count = spec.provision_requirements.control_plane_agents;
    let (platform, user_managed_networking) = shape(spec)?;
    let (ignition_url, ignition_ca) = ignition_endpoint(snapshot, spec)?;
    let proxy = spec.proxy.clone().unwrap_or_default();
    Ok(DesiredCluster {
        name: deployment.spec.cluster_name.clone(),
        domain: deployment.spec.base_domain.clone(),
        pull_secret: pull_secret(snapshot)?,
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
        network_type: optional("networking.networkType", spec.networking.network_type.as_str())?,
        api_vips: network::vips(&spec.api_vips, &spec.api_vip),
        ingress_vips: network::vips(&spec.ingress_vips, &spec.ingress_vip),
        ssh_key: spec.ssh_public_key.trim().to_owned(),
        ntp_sources: spec.ntp_sources.join(","),
        hyperthreading: hyperthreading(spec),
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

fn pull_secret(snapshot: &Snapshot) -> Result<Option<Secret>, InvalidSpec> {
    let reference = snapshot
        .deployment
        .as_ref()
        .and_then(|deployment| deployment.spec.pull_secret_ref.as_ref());
    let Some(name) = reference.map(|reference| &reference.name) else {
        return if is_installed(snapshot) {
            Ok(None)
        } else {
            Err(InvalidSpec::Input(
                "The ClusterDeployment names no pull secret (spec.pullSecretRef).".into(),
            ))
        };
    };
    match &snapshot.pull_secret {
        // Whoever is installed has one already.
        None if is_installed(snapshot) => Ok(None),
        None => Err(InvalidSpec::Missing(format!(
            "There is no Secret {name:?} with the pull secret."
        ))),
        Some(secret) => match secret.value(data::PULL_SECRET) {
            Some(value) => Ok(Some(value.into())),
            None => Err(InvalidSpec::Content(format!(
                "Secret {name:?} has no key {:?}.",
                data::PULL_SECRET
            ))),
        },
    }
}

/// Who manages the network follows from the platform, and the platform from that; one host has no addresses to share.
fn shape(spec: &AgentClusterInstallSpec) -> Result<(Platform, bool), InvalidSpec> {
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

fn external(
    spec: &AgentClusterInstallSpec,
    kind: PlatformType,
) -> Result<Option<ExternalPlatform>, InvalidSpec> {
    match &spec.external {
        Some(external) if kind == PlatformType::External => Ok(Some(ExternalPlatform {
            platform_name: Some(external.platform_name.clone()).filter(|name| !name.is_empty()),
            cloud_controller_manager: optional::<CloudControllerManager>(
                "external.cloudControllerManager",
                &external.cloud_controller_manager,
            )?,
        })),
        Some(_) | None => Ok(None),
    }
}

/// All roles when no pool is given, else those whose pool says so.
fn hyperthreading(spec: &AgentClusterInstallSpec) -> RoleSet {
    if spec.control_plane.is_none() && spec.arbiter.is_none() && spec.compute.is_empty() {
        return RoleSet::All;
    }
    let on = |word: &str| word == "Enabled" || word.is_empty();
    let masters = spec
        .control_plane
        .as_ref()
        .is_some_and(|pool| on(&pool.hyperthreading));
    let arbiters = spec.arbiter.as_ref().is_some_and(|pool| on(&pool.hyperthreading));
    let workers = spec.compute.iter().any(|pool| on(&pool.hyperthreading));
    match (masters, arbiters, workers) {
        (true, true, true) => RoleSet::All,
        (true, true, false) => RoleSet::MastersArbiters,
        (true, false, true) => RoleSet::MastersWorkers,
        (true, false, false) => RoleSet::Masters,
        (false, true, true) => RoleSet::ArbitersWorkers,
        (false, true, false) => RoleSet::Arbiters,
        (false, false, true) => RoleSet::Workers,
        (false, false, false) => RoleSet::None,
    }
}

fn encryption(spec: &AgentClusterInstallSpec) -> Result<DiskEncryption, InvalidSpec> {
    let none = DiskEncryption {
        enable_on: Some(RoleSet::None),
        mode: None,
        tang_servers: None,
    };
    let Some(wanted) = &spec.disk_encryption else {
        return Ok(none);
    };
    let roles: Option<RoleSet> = optional("diskEncryption.enableOn", wanted.enable_on.as_str())?;
    let Some(roles) = roles.filter(|roles| *roles != RoleSet::None) else {
        return Ok(none);
    };
    let mode: Option<DiskEncryptionMode> = optional("diskEncryption.mode", wanted.mode.as_str())?;
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
fn ignition_endpoint(
    snapshot: &Snapshot,
    spec: &AgentClusterInstallSpec,
) -> Result<(String, String), InvalidSpec> {
    let Some(endpoint) = &spec.ignition_endpoint else {
        return Ok(Default::default());
    };
    let Some(reference) = &endpoint.ca_certificate_reference else {
        return Ok((endpoint.url.clone(), String::new()));
    };
    let name = crate::key::Key::from(reference);
    let Some(secret) = &snapshot.ignition_ca else {
        return Err(InvalidSpec::Missing(format!(
            "There is no Secret {name} with the ignition endpoint's certificate."
        )));
    };
    match secret.value(data::CA_CERTIFICATE) {
        Some(pem) => Ok((endpoint.url.clone(), BASE64_STANDARD.encode(pem))),
        None => Err(InvalidSpec::Content(format!(
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

fn optional<T: FromStr<Err = UnknownWord>>(field: &str, word: &str) -> Result<Option<T>, InvalidSpec> {
    if word.is_empty() {
        Ok(None)
    } else {
        parse(field, word).map(Some)
    }
}

fn parse<T: FromStr<Err = UnknownWord>>(field: &str, word: &str) -> Result<T, InvalidSpec> {
    word.parse()
        .map_err(|error| InvalidSpec::Input(format!("{field} {error}.")))
}

/// A new cluster. What is empty is left to the hub.
pub fn create(snapshot: &Snapshot, desired: &DesiredCluster) -> Result<CreateCluster, InvalidSpec> {
    let (set, release) = release(snapshot)?;
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let change = full(desired);
    Ok(CreateCluster {
        name: desired.name.clone(),
        openshift_version: release.version.clone(),
        ocp_release_image: Some(set),
        cpu_architecture: optional("cpuArchitecture", &release.cpu_architecture)?,
        pull_secret: desired.pull_secret.clone().unwrap_or_default(),
        base_dns_domain: some(&desired.domain),
        control_plane_count: Some(desired.control_plane_count),
        user_managed_networking: Some(desired.user_managed_networking),
        platform: Some(desired.platform.clone()),
        cluster_networks: change.cluster_networks,
        service_networks: change.service_networks,
        machine_networks: change.machine_networks,
        api_vips: change.api_vips,
        ingress_vips: change.ingress_vips,
        network_type: desired.network_type,
        ssh_public_key: some(&desired.ssh_key),
        http_proxy: some(&desired.http_proxy),
        https_proxy: some(&desired.https_proxy),
        no_proxy: some(&desired.no_proxy),
        ntp_sources: some(&desired.ntp_sources),
        hyperthreading: Some(desired.hyperthreading),
        schedulable_masters: Some(desired.schedulable_masters),
        disk_encryption: Some(desired.encryption.clone())
            .filter(|wanted| wanted.enable_on != Some(RoleSet::None)),
        ignition_endpoint: change
            .ignition_endpoint
            .filter(|_| !desired.ignition_url.is_empty()),
        load_balancer: change
            .load_balancer
            .filter(|_| desired.load_balancer != LoadBalancerType::ClusterManaged),
        tags: some(&desired.tags),
        ..CreateCluster::default()
    })
}

/// A cluster that runs already.
pub fn import(snapshot: &Snapshot, desired: &DesiredCluster) -> Result<ImportCluster, InvalidSpec> {
    let deployment = snapshot
        .deployment
        .as_ref()
        .and_then(|deployment| deployment.spec.cluster_metadata.as_ref());
    let id = deployment
        .or(snapshot.metadata())
        .and_then(|metadata| metadata.cluster_id.parse::<Uuid>().ok());
    // What runs has a version, whether or not the name of an image shows it.
    let version = release(snapshot).ok().map(|(_, release)| release.version);
    Ok(ImportCluster {
        name: desired.name.clone(),
        api_vip_dnsname: format!("api.{}.{}", desired.name, desired.domain),
        // Nobody knows it, so ours identifies it.
        openshift_cluster_id: id.or(snapshot.id).unwrap_or_default(),
        openshift_version: version,
    })
}

fn release(snapshot: &Snapshot) -> Result<(String, muster_contract::v1::release::ReleaseView), InvalidSpec> {
    let reference = snapshot
        .install
        .as_ref()
        .and_then(|install| install.spec.image_set_ref.as_ref());
    let Some(name) = reference.map(|reference| &reference.name) else {
        return Err(InvalidSpec::Input(
            "The AgentClusterInstall names no release (spec.imageSetRef).".into(),
        ));
    };
    let Some(set) = &snapshot.image_set else {
        return Err(InvalidSpec::Missing(format!(
            "There is no ClusterImageSet {name:?} yet."
        )));
    };
    match &snapshot.release {
        Some(Ok(release)) => Ok((set.spec.release_image.clone(), release.clone())),
        Some(Err(failure)) => Err(InvalidSpec::Input(format!(
            "ClusterImageSet {name:?}: {}",
            failure.text()
        ))),
        None => Err(InvalidSpec::Missing(format!(
            "The hub does not know the release of ClusterImageSet {name:?} yet."
        ))),
    }
}

/// What the hub already has of the values that it does not show.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    pull_secret: bool,
    proxy: bool,
}

impl Known {
    pub fn of(snapshot: &Snapshot) -> Self {
        Self {
            pull_secret: snapshot.pull_secret_is_known,
            proxy: snapshot.proxy_is_known,
        }
    }
}

/// What is to be changed about the hub's cluster; nothing when it is as wanted.
pub fn difference(row: &Row, desired: &DesiredCluster, known: Known) -> Option<UpdateCluster> {
    let wanted = full(desired);
    let text = |now: &str, desired: &String| Some(desired.clone()).filter(|desired| desired != now);
    let now = &row.view;
    // The hub shows all but passwords.
    let address = |now: &str, desired: &String| {
        let same =
            proxy::shown(now) == proxy::shown(desired) && (known.proxy || proxy::shown(desired) == *desired);
        Some(desired.clone()).filter(|_| !same)
    };
    let added = UpdateCluster {
        pull_secret: desired.pull_secret.clone().filter(|_| !known.pull_secret),
        ssh_public_key: text(&now.ssh_public_key, &desired.ssh_key),
        http_proxy: address(&now.http_proxy, &desired.http_proxy),
        https_proxy: address(&now.https_proxy, &desired.https_proxy),
        no_proxy: text(&now.no_proxy, &desired.no_proxy),
        ignition_endpoint: wanted
            .ignition_endpoint
            .filter(|desired| !same_endpoint(now, desired)),
        tags: text(&now.tags, &desired.tags),
        ..UpdateCluster::default()
    };
    let update = match row.kind() {
        // How it was installed is history.
        Kind::AddsHosts | Kind::Other => added,
        Kind::New => UpdateCluster {
            name: text(&now.name, &desired.name),
            base_dns_domain: text(&now.base_dns_domain, &desired.domain),
            ntp_sources: text(&now.ntp_sources, &desired.ntp_sources),
            // Only one of the two lists can be given.
            additional_ntp_source: (!desired.ntp_sources.is_empty() && !now.additional_ntp_source.is_empty())
                .then(String::new),
            control_plane_count: Some(desired.control_plane_count)
                .filter(|count| *count != now.control_plane_count),
            user_managed_networking: Some(desired.user_managed_networking)
                .filter(|managed| Some(*managed) != now.user_managed_networking),
            platform: Some(desired.platform.clone())
                .filter(|platform| !same_platform(now.platform.as_ref(), platform)),
            cluster_networks: wanted.cluster_networks.filter(|_| !same_pods(now, desired)),
            service_networks: wanted.service_networks.filter(|_| {
                let now = now
                    .service_networks
                    .iter()
                    .flatten()
                    .filter_map(|net| net.cidr.as_deref());
                !same_network(now, &desired.service_networks)
            }),
            machine_networks: wanted.machine_networks.filter(|_| {
                let now = now
                    .machine_networks
                    .iter()
                    .flatten()
                    .filter_map(|net| net.cidr.as_deref());
                !same_network(now, &desired.machine_networks)
            }),
            api_vips: wanted
                .api_vips
                .filter(|_| !same_vips(now.api_vips.as_deref(), &desired.api_vips)),
            ingress_vips: wanted
                .ingress_vips
                .filter(|_| !same_vips(now.ingress_vips.as_deref(), &desired.ingress_vips)),
            network_type: desired
                .network_type
                .filter(|desired| differs(&now.network_type, *desired)),
            hyperthreading: Some(desired.hyperthreading)
                .filter(|desired| differs(&now.hyperthreading, *desired)),
            schedulable_masters: Some(desired.schedulable_masters)
                .filter(|desired| Some(*desired) != now.schedulable_masters),
            disk_encryption: Some(desired.encryption.clone())
                .filter(|desired| !same_encryption(now, desired)),
            load_balancer: wanted.load_balancer.filter(|desired| {
                let now = now.load_balancer.clone().unwrap_or_default();
                desired.r#type != or_default(now.r#type).known()
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
            control_plane_count: Some(desired.control_plane_count),
            user_managed_networking: Some(desired.user_managed_networking),
            platform: Some(desired.platform.clone()),
            ..update
        },
    };
    (update != UpdateCluster::default()).then_some(update)
}

/// Lists and compounds as the hub takes them; lists that are empty are left to it.
fn full(desired: &DesiredCluster) -> UpdateCluster {
    let vips = |vips: &[String]| {
        let one = |ip: &String| Vip {
            ip: Some(ip.clone()),
            ..Vip::default()
        };
        (!vips.is_empty()).then(|| vips.iter().map(one).collect())
    };
    let pods = desired
        .cluster_networks
        .iter()
        .map(|(cidr, host_prefix)| ClusterNetwork {
            cluster_id: None,
            cidr: Some(cidr.clone()),
            host_prefix: *host_prefix,
        });
    let services = desired.service_networks.iter().map(|cidr| ServiceNetwork {
        cluster_id: None,
        cidr: Some(cidr.clone()),
    });
    let machines = desired.machine_networks.iter().map(|cidr| MachineNetwork {
        cluster_id: None,
        cidr: Some(cidr.clone()),
    });
    UpdateCluster {
        cluster_networks: (!desired.cluster_networks.is_empty()).then(|| pods.collect()),
        service_networks: (!desired.service_networks.is_empty()).then(|| services.collect()),
        machine_networks: (!desired.machine_networks.is_empty()).then(|| machines.collect()),
        api_vips: vips(&desired.api_vips),
        ingress_vips: vips(&desired.ingress_vips),
        ignition_endpoint: Some(IgnitionEndpoint {
            url: Some(desired.ignition_url.clone()),
            ca_certificate: Some(desired.ignition_ca.clone()),
        }),
        load_balancer: Some(LoadBalancer {
            r#type: Some(desired.load_balancer),
        }),
        ..UpdateCluster::default()
    }
}

fn same_endpoint(now: &ClusterView, desired: &IgnitionEndpoint) -> bool {
    let words = |endpoint: &IgnitionEndpoint| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (text(&endpoint.url), text(&endpoint.ca_certificate))
    };
    words(&now.ignition_endpoint.clone().unwrap_or_default()) == words(desired)
}

/// What is absent, or only known to a newer hub, is not what is desired either.
fn differs<T: Words>(now: &Option<Word<T>>, desired: T) -> bool {
    now.as_ref().is_none_or(|now| *now != desired)
}

/// What is absent means what is usual.
fn or_default<T: Words + Default>(now: Option<Word<T>>) -> Word<T> {
    now.unwrap_or_else(|| T::default().into())
}

fn same_platform(now: Option<&PlatformView>, desired: &Platform) -> bool {
    let is_same = |external: &ExternalPlatform| {
        let now = now.and_then(|now| now.external.clone()).unwrap_or_default();
        now.platform_name.unwrap_or_default() == external.platform_name.clone().unwrap_or_default()
            && or_default(now.cloud_controller_manager)
                == external.cloud_controller_manager.unwrap_or_default()
    };
    now.is_some_and(|now| now.r#type == desired.r#type && desired.external.as_ref().is_none_or(is_same))
}

fn same_pods(now: &ClusterView, desired: &DesiredCluster) -> bool {
    let pods: Vec<_> = now.cluster_networks.iter().flatten().collect();
    let cidrs: Vec<String> = desired
        .cluster_networks
        .iter()
        .map(|(cidr, _)| cidr.clone())
        .collect();
    let prefixes = desired
        .cluster_networks
        .iter()
        .zip(&pods)
        .all(|((_, prefix), now)| prefix.is_none() || *prefix == now.host_prefix);
    same_network(pods.iter().filter_map(|net| net.cidr.as_deref()), &cidrs) && prefixes
}

fn same_vips(now: Option<&[Vip]>, desired: &[String]) -> bool {
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
    now == desired.iter().map(|vip| ip(vip)).collect::<Vec<_>>()
}

fn same_encryption(now: &ClusterView, desired: &DiskEncryption) -> bool {
    let now = now.disk_encryption.clone().unwrap_or_default();
    let roles = now.enable_on.unwrap_or_else(|| RoleSet::None.into());
    let wanted = desired.enable_on.unwrap_or(RoleSet::None);
    if wanted == RoleSet::None {
        return roles == RoleSet::None;
    }
    roles == wanted
        && or_default(now.mode) == desired.mode.unwrap_or_default()
        && now.tang_servers.unwrap_or_default() == desired.tang_servers.clone().unwrap_or_default()
}
