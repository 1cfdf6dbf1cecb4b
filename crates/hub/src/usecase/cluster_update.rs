//! Changes a cluster: every setting is judged here, for new clusters too.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::usecase::cluster_reconcile::at_once;
use muster_contract::v2::cluster_request::UpdateCluster;
use muster_contract::v2::cluster_setting as wire;
use muster_contract::v2::network as wire_network;
use muster_domain::checks::reports::VerifiedVip;
use muster_domain::cluster::{
    Cluster, ClusterNetwork, Decision, Event, IgnitionEndpoint, Operator, Vip, lifecycle,
};
use muster_domain::infra_env::Proxy;
use muster_domain::input::platform::{
    NetworkTypeSetting, Platform, external_platform, network_type, platform_and_networking, vip_dhcp_served,
};
use muster_domain::input::vip::{VipSetting, vip_pair, vips};
use muster_domain::input::{
    Invalid, address, cluster as options, control_plane, disk, ignition_endpoint, name, network, ntp,
    operator, proxy, pull_secret, ssh_key,
};
use muster_domain::{ClusterId, Entry, Severity};
use muster_vocabulary::{HighAvailabilityMode, LoadBalancerType, VipType, Word};
use std::net::IpAddr;
use std::sync::Arc;

/// When the settings are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    AtBirth,
    Later,
}

pub async fn cluster_update(
    hub: &Hub,
    id: ClusterId,
    wish: &UpdateCluster,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    change_at_once(hub, id, opctx, |cluster| {
        lifecycle::next(cluster, &Event::Update, hub.now())?;
        let proxy = cluster.proxy.clone();
        apply(cluster, wish, Given::Later)?;
        Ok(proxy_news(cluster, &proxy).into_iter().collect())
    })
    .await
}

/// Changes the settings of a cluster in one commit with what follows for it and its hosts, for whoever is answered with that.
async fn change_at_once(
    hub: &Hub,
    id: ClusterId,
    opctx: &OpContext,
    apply: impl Fn(&mut Cluster) -> Result<Vec<Entry>, Error> + Sync,
) -> Result<Arc<Cluster>, Error> {
    let changed = at_once::change(hub, id, opctx, |before| set(before, &apply)).await?;
    // For the rare case that it was written alone.
    hub.caught_up(id).await;
    Ok(hub.index.cluster(id).unwrap_or(changed))
}

/// Proxies may carry a password: the event says that they changed, not what they are.
fn proxy_news(cluster: &Cluster, before: &Proxy) -> Option<Entry> {
    let text = format!("Cluster {}: its proxy settings changed.", cluster.name);
    (cluster.proxy != *before).then(|| cluster.entry("proxy_settings_changed", Severity::Info, text))
}

/// An installed cluster begins to take on more hosts.
pub async fn cluster_add_hosts(hub: &Hub, id: ClusterId, opctx: &OpContext) -> Result<Arc<Cluster>, Error> {
    // Its hosts are judged by other measures from now on.
    change_at_once(hub, id, opctx, |cluster| {
        let decision = lifecycle::next(cluster, &Event::AddHosts, hub.now())?;
        *cluster = decision.cluster;
        if cluster.api_vip_dns_name.is_empty() {
            cluster.api_vip_dns_name = format!("api.{}.{}", cluster.name, cluster.base_dns_domain);
        }
        Ok(decision.journal)
    })
    .await
}

/// Agents tried the virtual addresses: what they found is kept with the addresses.
pub async fn vips_verified(
    hub: &Hub,
    id: ClusterId,
    verified: &[VerifiedVip],
    opctx: &OpContext,
) -> Result<(), Error> {
    if hub.index.cluster(id).is_none() {
        return Ok(());
    }
    cluster_change(hub, id, opctx, |cluster| {
        for found in verified {
            let put = |vips: &mut Vec<Vip>| {
                vips.iter_mut()
                    .filter(|vip| vip.ip == found.vip)
                    .for_each(|vip| vip.verification.clone_from(&found.verification));
            };
            match found.vip_type.known() {
                Some(VipType::Api) => put(&mut cluster.api_vips),
                Some(VipType::Ingress) => put(&mut cluster.ingress_vips),
                None => {}
            }
        }
        Ok(Vec::new())
    })
    .await
    .map(drop)
}

/// Changes the settings of a cluster.
pub async fn cluster_change(
    hub: &Hub,
    id: ClusterId,
    opctx: &OpContext,
    apply: impl Fn(&mut Cluster) -> Result<Vec<Entry>, Error>,
) -> Result<Arc<Cluster>, Error> {
    hub.change_cluster(id, opctx, |before| Ok((set(before, &apply)?, Vec::new())))
        .await
}

fn set(
    before: &Cluster,
    apply: impl Fn(&mut Cluster) -> Result<Vec<Entry>, Error>,
) -> Result<Decision, Error> {
    let mut cluster = before.clone();
    let journal = apply(&mut cluster)?;
    Ok(Decision {
        cluster,
        journal,
        effects: Vec::new(),
        why: "its settings were changed",
    })
}

pub fn apply(cluster: &mut Cluster, wish: &UpdateCluster, given: Given) -> Result<(), Invalid> {
    let before = addressing(cluster);
    put_shape(cluster, wish)?;
    put_names(cluster, wish)?;
    put_access(cluster, wish)?;
    put_networks(cluster, wish)?;
    put_vips(cluster, wish)?;
    // A single node that is installed has its own address as virtual one; nobody set that.
    if addressing(cluster) != before {
        judge_vips(cluster)?;
    }
    put_network_type(cluster, wish, given)?;
    put_time(cluster, wish)?;
    put_operators(cluster, wish)?;
    put_options(cluster, wish)
}

/// The older word for the size of a control plane.
pub fn availability(control_plane_count: i64) -> HighAvailabilityMode {
    match control_plane_count {
        1 => HighAvailabilityMode::None,
        _ => HighAvailabilityMode::Full,
    }
}

/// Size of the control plane, platform, and who manages the network: each says something about the others.
fn put_shape(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    if let Some(count) = wish.control_plane_count {
        cluster.control_plane_count =
            control_plane::control_plane(Some(count), None, &cluster.openshift_version)?;
        cluster.high_availability_mode = availability(cluster.control_plane_count).into();
    }
    if wish.control_plane_count.is_none() && wish.platform.is_none() && wish.user_managed_networking.is_none()
    {
        return Ok(());
    }
    let asked = wish.platform.as_ref().map(|platform| platform.r#type);
    let says_something_new = wish
        .user_managed_networking
        .is_some_and(|umn| umn != cluster.user_managed_networking);
    let (platform, umn) = platform_and_networking(
        asked.or((!says_something_new).then_some(cluster.platform.kind)),
        wish.user_managed_networking,
        cluster.control_plane_count,
    )?;
    cluster.platform.kind = platform;
    cluster.user_managed_networking = umn;
    if let Some(external) = wish
        .platform
        .as_ref()
        .and_then(|platform| platform.external.as_ref())
    {
        cluster.platform.external_name = external.platform_name.clone().unwrap_or_default();
        cluster.platform.external_cloud_controller =
            external.cloud_controller_manager.unwrap_or_default().into();
    }
    let details = &cluster.platform;
    external_platform(
        platform,
        &details.external_name,
        details.external_cloud_controller.as_str(),
    )
}

fn put_names(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    if let Some(wanted) = &wish.name {
        name::cluster_name(
            wanted,
            cluster.platform.kind == Platform::None || cluster.imported,
        )?;
        cluster.name.clone_from(wanted);
    }
    if let Some(domain) = &wish.base_dns_domain {
        name::base_dns_domain(domain)?;
        cluster.base_dns_domain.clone_from(domain);
    }
    if let Some(api) = &wish.api_vip_dns_name {
        name::api_vip_dns_name_update(api, cluster.adds_hosts())?;
        cluster.api_vip_dns_name.clone_from(api);
    }
    Ok(())
}

fn put_access(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    if let Some(secret) = wish.pull_secret.as_ref().filter(|secret| !secret.0.is_empty()) {
        pull_secret::pull_secret(&secret.0)?;
        cluster.pull_secret.clone_from(&secret.0);
    }
    if let Some(keys) = &wish.ssh_public_key {
        ssh_key::ssh_keys("ssh_public_key", keys)?;
        cluster.ssh_public_key.clone_from(keys);
    }
    put_proxy("http_proxy", &mut cluster.proxy.http, &wish.http_proxy)?;
    put_proxy("https_proxy", &mut cluster.proxy.https, &wish.https_proxy)?;
    put(&mut cluster.proxy.no, &wish.no_proxy);
    proxy::proxy("", &cluster.proxy)
}

/// An address that is absent stays as it is.
pub fn put_proxy(field: &str, url: &mut String, wanted: &Option<String>) -> Result<(), Invalid> {
    if let Some(wanted) = wanted {
        *url = proxy::given(field, wanted, url)?;
    }
    Ok(())
}

fn put_networks(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    let pods = asked_pods(wish);
    let services = asked(
        wish.service_networks
            .as_ref()
            .map(|list| list.iter().map(|net| net.cidr.clone())),
        wish.service_network_cidr.as_ref(),
    );
    let machines = asked(
        wish.machine_networks
            .as_ref()
            .map(|list| list.iter().map(|net| net.cidr.clone())),
        wish.machine_network_cidr.as_ref(),
    );
    if pods.is_none() && services.is_none() && machines.is_none() {
        return Ok(());
    }
    if let Some(items) = pods {
        let networks = network::cluster_networks(&items)?;
        cluster.cluster_networks = networks
            .iter()
            .map(|net| ClusterNetwork {
                cidr: net.cidr.to_string(),
                host_prefix: net.host_prefix.into(),
            })
            .collect();
    }
    if let Some(items) = services {
        cluster.service_networks = texts(&network::service_networks(&items)?);
    }
    if let Some(items) = machines {
        cluster.machine_networks = texts(&network::machine_networks(&items, cluster.single_node())?);
        // An empty list hands the matter back to us.
        cluster.machine_networks_given = !cluster.machine_networks.is_empty();
    }
    overlaps(cluster)
}

fn overlaps(cluster: &Cluster) -> Result<(), Invalid> {
    let pods: Vec<_> = cluster
        .cluster_networks
        .iter()
        .map(|net| (net.cidr.clone(), Some(net.host_prefix)))
        .collect();
    network::no_overlap(
        &network::cluster_networks(&pods)?,
        &network::service_networks(&cluster.service_networks)?,
        &network::machine_networks(&cluster.machine_networks, true)?,
    )
}

/// The list, or the old field for a single network, in which an empty text means none.
fn asked(list: Option<impl Iterator<Item = Option<String>>>, one: Option<&String>) -> Option<Vec<String>> {
    match list {
        Some(list) => Some(list.map(Option::unwrap_or_default).collect()),
        None => one.map(|cidr| {
            Some(cidr.clone())
                .filter(|cidr| !cidr.is_empty())
                .into_iter()
                .collect()
        }),
    }
}

fn asked_pods(wish: &UpdateCluster) -> Option<Vec<(String, Option<i64>)>> {
    let of = |net: &wire_network::ClusterNetwork| (net.cidr.clone().unwrap_or_default(), net.host_prefix);
    match (&wish.cluster_networks, &wish.cluster_network_cidr) {
        (Some(list), _) => Some(list.iter().map(of).collect()),
        (None, Some(cidr)) if cidr.is_empty() => Some(Vec::new()),
        (None, Some(cidr)) => Some(vec![(cidr.clone(), wish.cluster_network_host_prefix)]),
        (None, None) => None,
    }
}

fn texts(networks: &[impl ToString]) -> Vec<String> {
    networks.iter().map(ToString::to_string).collect()
}

fn put_vips(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    if let Some(on) = wish.vip_dhcp_allocation {
        cluster.vip_dhcp_allocation = on;
    }
    if let Some(load_balancer) = wish.load_balancer.as_ref().and_then(|given| given.r#type) {
        options::load_balancer(load_balancer.word(), cluster.platform.kind, cluster.single_node())?;
        cluster.load_balancer = load_balancer.into();
    }
    if let Some(wanted) = &wish.api_vips {
        cluster.api_vips = addresses("api_vips", wanted, &cluster.api_vips)?;
    }
    if let Some(wanted) = &wish.ingress_vips {
        cluster.ingress_vips = addresses("ingress_vips", wanted, &cluster.ingress_vips)?;
    }
    Ok(())
}

/// Everything that says something about virtual addresses.
fn addressing(cluster: &Cluster) -> (Vec<Vip>, Vec<Vip>, bool, bool, Word<LoadBalancerType>) {
    (
        cluster.api_vips.clone(),
        cluster.ingress_vips.clone(),
        cluster.user_managed_networking,
        cluster.vip_dhcp_allocation,
        cluster.load_balancer.clone(),
    )
}

fn judge_vips(cluster: &Cluster) -> Result<(), Invalid> {
    let setting = VipSetting {
        user_managed_networking: cluster.user_managed_networking,
        vip_dhcp_allocation: cluster.vip_dhcp_allocation,
        user_managed_load_balancer: cluster.load_balancer == LoadBalancerType::UserManaged,
    };
    vip_pair(
        &parsed(&cluster.api_vips),
        &parsed(&cluster.ingress_vips),
        setting,
    )
}

/// What is known about an address stays known as long as the address stays.
fn addresses(field: &str, wanted: &[wire_network::Vip], known: &[Vip]) -> Result<Vec<Vip>, Invalid> {
    let wanted: Vec<String> = wanted
        .iter()
        .map(|vip| vip.ip.clone().unwrap_or_default())
        .collect();
    let list = vips(field, &wanted)?;
    Ok(list
        .iter()
        .map(|ip| {
            let ip = ip.to_string();
            known.iter().find(|vip| vip.ip == ip).cloned().unwrap_or(Vip {
                ip,
                verification: Word::default(),
            })
        })
        .collect())
}

fn parsed(vips: &[Vip]) -> Vec<IpAddr> {
    vips.iter().filter_map(|vip| vip.ip.parse().ok()).collect()
}

fn put_network_type(cluster: &mut Cluster, wish: &UpdateCluster, given: Given) -> Result<(), Invalid> {
    if cluster.imported {
        return Ok(());
    }
    let networks = cluster.machine_networks.iter().chain(&cluster.service_networks);
    let networks = networks.chain(cluster.cluster_networks.iter().map(|net| &net.cidr));
    let any_ipv6 = networks
        .filter_map(|cidr| address::network("", cidr).ok())
        .any(|net| net.addr().is_ipv6())
        || parsed(&cluster.api_vips).iter().any(IpAddr::is_ipv6);
    let setting = NetworkTypeSetting {
        version: &cluster.openshift_version,
        single_node: cluster.single_node(),
        vip_dhcp_allocation: cluster.vip_dhcp_allocation,
        user_managed_networking: cluster.user_managed_networking,
        any_ipv6,
    };
    let fitting = network_type(wish.network_type.map(wire::NetworkType::word), &setting)?;
    if given == Given::AtBirth || wish.network_type.is_some() {
        cluster.network_type = fitting.into();
    }
    vip_dhcp_served(&cluster.network_type, cluster.vip_dhcp_allocation)
}

fn put_time(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    put(&mut cluster.additional_ntp_source, &wish.additional_ntp_source);
    put(&mut cluster.ntp_sources, &wish.ntp_sources);
    ntp::ntp_sources("additional_ntp_source", &cluster.additional_ntp_source)?;
    ntp::ntp_sources("ntp_sources", &cluster.ntp_sources)?;
    ntp::not_both(
        ("additional_ntp_source", &cluster.additional_ntp_source),
        ("ntp_sources", &cluster.ntp_sources),
    )
}

fn put_operators(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    if wish
        .operator_bundles
        .as_ref()
        .is_some_and(|bundles| !bundles.is_empty())
    {
        let problem = "names bundles, which this hub does not know";
        return Err(Invalid::rule(
            "operator_bundles",
            problem,
            "name the operators themselves in `olm_operators`",
        ));
    }
    let Some(wanted) = &wish.olm_operators else {
        return Ok(());
    };
    if cluster.adds_hosts() && !wanted.is_empty() {
        return Err(Invalid::rule(
            "olm_operators",
            "cannot be chosen for a cluster that runs already",
            "install them in the cluster itself",
        ));
    }
    let names: Vec<&str> = wanted
        .iter()
        .map(|operator| operator.name.as_deref().unwrap_or_default())
        .collect();
    operator::operators(&names)?;
    cluster.operators.retain(|operator| operator.builtin);
    cluster.operators.extend(wanted.iter().map(|operator| Operator {
        name: operator.name.clone().unwrap_or_default(),
        properties: operator.properties.clone().unwrap_or_default(),
        ..Operator::default()
    }));
    Ok(())
}

fn put_options(cluster: &mut Cluster, wish: &UpdateCluster) -> Result<(), Invalid> {
    if let Some(roles) = wish.hyperthreading {
        cluster.hyperthreading = roles.into();
    }
    if let Some(on) = wish.schedulable_masters {
        cluster.schedulable_masters = on;
    }
    if let Some(wanted) = &wish.disk_encryption {
        let to = &mut cluster.disk_encryption;
        wanted.enable_on.inspect(|roles| to.enable_on = (*roles).into());
        wanted.mode.inspect(|mode| to.mode = (*mode).into());
        put(&mut to.tang_servers, &wanted.tang_servers);
        let some = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
        let (enable_on, mode) = (some(to.enable_on.as_str()), some(to.mode.as_str()));
        let servers = some(&to.tang_servers);
        disk::disk_encryption(enable_on.as_deref(), mode.as_deref(), servers.as_deref())?;
    }
    if let Some(wanted) = &wish.ignition_endpoint {
        ignition_endpoint::ignition_endpoint(wanted.url.as_deref(), wanted.ca_certificate.as_deref())?;
        let IgnitionEndpoint { url, ca_certificate } = &mut cluster.ignition_endpoint;
        put(url, &wanted.url);
        put(ca_certificate, &wanted.ca_certificate);
    }
    if let Some(tags) = &wish.tags {
        options::tags(tags)?;
        cluster.tags.clone_from(tags);
    }
    Ok(())
}

fn put(field: &mut String, wanted: &Option<String>) {
    if let Some(wanted) = wanted {
        field.clone_from(wanted);
    }
}

/// Checks the owner decided to live with; both lists as JSON texts that were judged before.
pub async fn cluster_ignore(
    hub: &Hub,
    id: ClusterId,
    cluster_checks: Option<String>,
    host_checks: Option<String>,
    opctx: &OpContext,
) -> Result<Arc<Cluster>, Error> {
    change_at_once(hub, id, opctx, |cluster| {
        let before = (
            cluster.ignored_cluster_validations.clone(),
            cluster.ignored_host_validations.clone(),
        );
        put(&mut cluster.ignored_cluster_validations, &cluster_checks);
        put(&mut cluster.ignored_host_validations, &host_checks);
        let after = (
            &cluster.ignored_cluster_validations,
            &cluster.ignored_host_validations,
        );
        if (&before.0, &before.1) == after {
            return Ok(Vec::new());
        }
        let text = format!(
            "Cluster {}: the hub ignores other checks now: {} {}",
            cluster.name, after.0, after.1
        );
        Ok(vec![cluster.entry("validations_ignored", Severity::Info, text)])
    })
    .await
}

/// Changes to the install config are kept for the installation.
pub async fn cluster_install_config(
    hub: &Hub,
    id: ClusterId,
    overrides: &str,
    opctx: &OpContext,
) -> Result<(), Error> {
    hub.index
        .cluster(id)
        .ok_or_else(|| Error::missing("cluster", id))?;
    muster_domain::input::install_config::install_config_overrides(overrides)?;
    cluster_change(hub, id, opctx, |cluster| {
        lifecycle::next(cluster, &Event::Update, hub.now())?;
        cluster.install_config_overrides = overrides.to_owned();
        let text = format!(
            "Cluster {}: the hub saved changes to its install config.",
            cluster.name
        );
        Ok(vec![cluster.entry(
            "install_config_applied",
            Severity::Info,
            text,
        )])
    })
    .await?;
    Ok(())
}
