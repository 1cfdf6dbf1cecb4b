//! How a cluster looks on the wire.

use crate::Hub;
use crate::host_change::Stored;
use crate::http::view::host::{self, Style};
use muster_contract::time::GoTime;
use muster_contract::v2::cluster::{ClusterProgressView, ClusterView, ImageInfoView, PreparationView};
use muster_contract::v2::cluster_setting as wire;
use muster_contract::v2::network::{ClusterNetwork, HostNetworkView, MachineNetwork, ServiceNetwork, Vip};
use muster_contract::v2::operator::MonitoredOperatorView;
use muster_domain::checks::facts::effective_role;
use muster_domain::checks::{Peer, Reports};
use muster_domain::cluster::{self, Cluster, network};
use muster_domain::host::{Host, Role};
use muster_domain::input::proxy;
use muster_vocabulary::{LoadBalancerType, NetworkType, Word, Words};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A host with what is stored about it.
pub type Member = (Host, Stored);

/// Operations differ in what they show of a cluster; clients got used to each of them.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    /// On its own, with its hosts.
    Whole(&'a [Member]),
    /// On its own, with its hosts, as the answer to a change.
    Changed(&'a [Member]),
    /// On its own, hosts left out on request.
    WithoutHosts,
    /// In a list or as the answer to an action: derived lists are not computed.
    Listed(&'a [Member]),
    /// The answer to an import: nothing but what was said.
    Imported,
}

pub fn full(hub: &Hub, cluster: &Cluster, shown: Shown<'_>) -> ClusterView {
    let id = Some(cluster.id.0);
    let rows: Vec<Host> = hub
        .index
        .hosts_of_cluster(cluster.id)
        .iter()
        .map(|slot| Host::clone(&slot.row()))
        .collect();
    let ours = !cluster.imported;
    let fresh = matches!(shown, Shown::Imported);
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    ClusterView {
        kind: cluster.kind.into(),
        id: cluster.id.0,
        href: format!("{}/clusters/{}", muster_contract::v2::BASE, cluster.id),
        name: cluster.name.clone(),
        user_name: cluster.user.clone(),
        org_id: cluster.org.clone(),
        email_domain: cluster.email_domain.clone(),
        status: cluster.status().into(),
        status_info: cluster.status_info.clone().into(),
        status_updated_at: cluster.status_updated_at.into(),
        progress: (!fresh).then(|| progress(&cluster.install)),
        openshift_version: cluster.openshift_version.clone(),
        ocp_release_image: cluster.ocp_release_image.clone(),
        os_stream: String::new(),
        openshift_cluster_id: cluster.openshift_cluster_id,
        high_availability_mode: known(&cluster.high_availability_mode),
        control_plane_count: cluster.control_plane_count,
        cpu_architecture: cluster.cpu_architecture.clone().into(),
        image_info: ImageInfoView {
            created_at: image_date(cluster, shown),
            ..ImageInfoView::default()
        },
        platform: Some(platform(&cluster.platform, fresh)),
        base_dns_domain: cluster.base_dns_domain.clone(),
        cluster_network_cidr: String::new(),
        cluster_network_host_prefix: 0,
        service_network_cidr: String::new(),
        machine_network_cidr: String::new(),
        cluster_networks: (!fresh).then(|| pods(cluster)),
        service_networks: (!fresh).then(|| {
            let one = |cidr: &String| ServiceNetwork {
                cluster_id: id,
                cidr: Some(cidr.clone()),
            };
            cluster.service_networks.iter().map(one).collect()
        }),
        machine_networks: (!fresh).then(|| {
            let one = |cidr: &String| MachineNetwork {
                cluster_id: id,
                cidr: Some(cidr.clone()),
            };
            cluster.machine_networks.iter().map(one).collect()
        }),
        host_networks: match shown {
            Shown::Whole(_) | Shown::Changed(_) | Shown::WithoutHosts | Shown::Imported => {
                Some(host_networks(&rows))
            }
            Shown::Listed(_) => None,
        },
        api_vips: (!fresh).then(|| vips(cluster.id.0, &cluster.api_vips)),
        ingress_vips: (!fresh).then(|| vips(cluster.id.0, &cluster.ingress_vips)),
        api_vip_dns_name: some(&cluster.api_vip_dns_name),
        vip_dhcp_allocation: ours.then_some(cluster.vip_dhcp_allocation),
        user_managed_networking: ours.then_some(cluster.user_managed_networking),
        network_type: known(&cluster.network_type),
        ssh_public_key: cluster.ssh_public_key.clone(),
        http_proxy: proxy::shown(&cluster.proxy.http),
        https_proxy: proxy::shown(&cluster.proxy.https),
        no_proxy: cluster.proxy.no.clone(),
        additional_ntp_source: cluster.additional_ntp_source.clone(),
        ntp_sources: cluster.ntp_sources.clone(),
        hyperthreading: known(&cluster.hyperthreading),
        schedulable_masters: ours.then_some(cluster.schedulable_masters),
        schedulable_masters_forced_true: (ours || !rows.is_empty()).then(|| too_few_workers(cluster, &rows)),
        disk_encryption: (!fresh).then(|| wire::DiskEncryptionView {
            enable_on: known(&cluster.disk_encryption.enable_on),
            mode: known(&cluster.disk_encryption.mode),
            tang_servers: some(&cluster.disk_encryption.tang_servers),
        }),
        ignition_endpoint: (!fresh).then(|| wire::IgnitionEndpoint {
            url: some(&cluster.ignition_endpoint.url),
            ca_certificate: some(&cluster.ignition_endpoint.ca_certificate),
        }),
        load_balancer: Some(wire::LoadBalancerView {
            r#type: known(&cluster.load_balancer),
        }),
        tags: cluster.tags.clone(),
        pull_secret_set: !cluster.pull_secret.is_empty(),
        hosts: match shown {
            Shown::Whole(members) | Shown::Changed(members) | Shown::Listed(members) => Some(
                members
                    .iter()
                    .map(|(row, stored)| host::full(hub, row, stored.clone(), Style::Embedded))
                    .collect(),
            ),
            Shown::WithoutHosts => None,
            Shown::Imported => Some(Vec::new()),
        },
        total_host_count: count(rows.len()),
        ready_host_count: count(
            rows.iter()
                .filter(|row| row.status().is_ready_to_install())
                .count(),
        ),
        enabled_host_count: count(rows.len()),
        monitored_operators: (!fresh).then(|| operators(cluster)),
        operator_bundles: match shown {
            Shown::Whole(_) | Shown::Changed(_) | Shown::WithoutHosts => Some(Vec::new()),
            Shown::Listed(_) | Shown::Imported => None,
        },
        validations_info: if ours {
            cluster.validations.clone()
        } else {
            String::new()
        },
        connectivity_majority_groups: if ours {
            cluster.connectivity_groups.clone()
        } else {
            String::new()
        },
        ip_collisions: collisions(cluster),
        ignored_host_validations: cluster.ignored_host_validations.clone(),
        ignored_cluster_validations: cluster.ignored_cluster_validations.clone(),
        install_config_overrides: cluster.install_config_overrides.clone(),
        // Computed with the first change of an imported cluster.
        feature_usage: if ours || cluster.revision > 1 {
            features(cluster).to_string()
        } else {
            String::new()
        },
        imported: cluster.imported,
        // Clients read it as something the organisation may use, not as what this cluster does.
        org_soft_timeouts_enabled: cluster.org_soft_timeouts_enabled,
        ams_subscription_id: None,
        last_installation_preparation: preparation(&cluster.install.preparation),
        logs_info: cluster.install.logs.info.state().into(),
        controller_logs_started_at: cluster.install.logs.started_at.into(),
        controller_logs_collected_at: cluster.install.logs.collected_at.into(),
        install_started_at: cluster.install_started_at.into(),
        install_completed_at: cluster.install_completed_at.into(),
        created_at: cluster.created_at.into(),
        updated_at: cluster.updated_at.into(),
        deleted_at: None,
    }
}

fn progress(install: &cluster::Install) -> ClusterProgressView {
    let parts = install.progress;
    let stage = install.finalizing;
    ClusterProgressView {
        total_percentage: parts.total,
        preparing_for_installation_stage_percentage: parts.preparing,
        installing_stage_percentage: parts.installing,
        finalizing_stage_percentage: parts.finalizing,
        finalizing_stage: stage.map(|finalizing| finalizing.stage).into(),
        finalizing_stage_started_at: stage.map(|finalizing| finalizing.started_at).into(),
        finalizing_stage_timed_out: stage.is_some_and(|finalizing| finalizing.timed_out),
    }
}

/// Nothing is said about an installation that was never prepared.
fn preparation(preparation: &cluster::Preparation) -> PreparationView {
    if *preparation == cluster::Preparation::default() {
        return PreparationView::default();
    }
    PreparationView {
        status: preparation.status.into(),
        reason: preparation.reason.clone().into(),
    }
}

/// A cluster on its own shows no date for the image it does not have any more.
fn image_date(cluster: &Cluster, shown: Shown<'_>) -> GoTime {
    match shown {
        Shown::Whole(_) | Shown::WithoutHosts => GoTime::default(),
        Shown::Changed(_) | Shown::Listed(_) | Shown::Imported => cluster.created_at.into(),
    }
}

/// Words are checked before they are stored; one that is empty is left out.
fn known<T: Words>(word: &Word<T>) -> Option<Word<T>> {
    word.known().map(Word::from).filter(|word| !word.is_empty())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn platform(platform: &cluster::Platform, fresh: bool) -> wire::PlatformView {
    let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    wire::PlatformView {
        r#type: platform.kind.into(),
        external: (!fresh).then(|| wire::ExternalPlatformView {
            platform_name: some(&platform.external_name),
            cloud_controller_manager: known(&platform.external_cloud_controller),
        }),
    }
}

fn pods(cluster: &Cluster) -> Vec<ClusterNetwork> {
    let networks = cluster.cluster_networks.iter().map(|net| ClusterNetwork {
        cluster_id: Some(cluster.id.0),
        cidr: Some(net.cidr.clone()),
        host_prefix: Some(net.host_prefix),
    });
    networks.collect()
}

fn vips(cluster: Uuid, vips: &[cluster::Vip]) -> Vec<Vip> {
    let list = vips.iter().map(|vip| Vip {
        cluster_id: Some(cluster),
        ip: Some(vip.ip.clone()),
        verification: vip.verification.known(),
    });
    list.collect()
}

fn host_networks(rows: &[Host]) -> Vec<HostNetworkView> {
    let names: Vec<String> = rows.iter().map(Host::name).collect();
    let reports = Reports::default();
    let peers: Vec<Peer<'_>> = rows
        .iter()
        .zip(&names)
        .map(|(row, name)| Peer::of(row, name, &reports))
        .collect();
    network::host_networks(&peers)
        .into_iter()
        .map(|net| HostNetworkView {
            cidr: net.cidr,
            host_ids: Some(net.host_ids.iter().map(|host| host.0).collect()),
        })
        .collect()
}

/// With fewer than two workers the control plane must carry ordinary work too.
fn too_few_workers(cluster: &Cluster, rows: &[Host]) -> bool {
    let workers = rows
        .iter()
        .filter(|row| effective_role(row.role, row.suggested_role) == Role::Worker)
        .count();
    cluster.single_node() || workers < 2
}

fn collisions(cluster: &Cluster) -> String {
    if cluster.imported || cluster.connectivity_groups.is_empty() {
        return String::new();
    }
    serde_json::to_string(&network::merge_collisions(cluster.collisions.values())).unwrap_or_default()
}

pub fn operators(cluster: &Cluster) -> Vec<MonitoredOperatorView> {
    let list = cluster.operators.iter().map(|operator| MonitoredOperatorView {
        cluster_id: Some(cluster.id.0),
        name: operator.name.clone().into(),
        operator_type: if operator.builtin { "builtin" } else { "olm" }.into(),
        properties: operator.properties.clone(),
        version: operator.version.clone(),
        status: operator.status.reported().into(),
        status_info: operator.status_info.clone(),
        status_updated_at: operator.status_updated_at.into(),
        timeout_seconds: operator.timeout_seconds(),
        ..MonitoredOperatorView::default()
    });
    list.collect()
}

/// The optional things this cluster makes use of.
fn features(cluster: &Cluster) -> Value {
    let used = [
        (
            cluster.network_type == NetworkType::OVNKubernetes,
            "OVN network type",
            "OVN_NETWORK_TYPE",
        ),
        (
            cluster.network_type == NetworkType::OpenShiftSDN,
            "SDN network type",
            "SDN_NETWORK_TYPE",
        ),
        (cluster.single_node(), "SNO", "SNO"),
        (cluster.vip_dhcp_allocation, "VIP auto alloc.", "VIP_AUTO_ALLOC"),
        (
            !cluster.additional_ntp_source.is_empty(),
            "Additional NTP Source",
            "ADDITIONAL_NTP_SOURCE",
        ),
        (
            !cluster.proxy.http.is_empty() || !cluster.proxy.https.is_empty(),
            "Proxy",
            "PROXY",
        ),
        (
            cluster.load_balancer == LoadBalancerType::UserManaged,
            "User Managed Load Balancer",
            "USER_MANAGED_LOAD_BALANCER",
        ),
    ];
    let mut all = Map::new();
    if !cluster.hyperthreading.is_empty() {
        let data = json!({ "hyperthreading_enabled": cluster.hyperthreading });
        let entry = json!({ "data": data, "id": "HYPERTHREADING", "name": "Hyperthreading" });
        all.insert("Hyperthreading".into(), entry);
    }
    for (_, name, id) in used.iter().filter(|(used, _, _)| *used) {
        all.insert((*name).into(), json!({ "id": id, "name": name }));
    }
    Value::Object(all)
}
