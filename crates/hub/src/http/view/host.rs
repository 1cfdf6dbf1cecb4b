//! How a host looks on the wire.

use crate::Hub;
use crate::host_change::Stored;
use muster_contract::Secret;
use muster_contract::v2::host::{FencingCredentials, HostProgressView, HostView};
use muster_domain::host::{Host, Media, Report, Role, Stage, stage};
use muster_vocabulary::{MediaStatus, Word};
use serde_json::json;
use std::collections::BTreeMap;

/// Operations differ in what they show of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// In a pool's list: stages as for a multi-node cluster.
    List,
    Get,
    /// Inside a cluster.
    Embedded,
    /// As stored: the name only if somebody gave one, no stages.
    Raw,
    /// Answer to a registration: no progress.
    Registered,
}

pub fn href(host: &Host) -> String {
    format!(
        "{}/infra-envs/{}/hosts/{}",
        muster_contract::v2::BASE,
        host.infra_env,
        host.id
    )
}

pub fn full(hub: &Hub, host: &Host, mut stored: Stored, style: Style) -> HostView {
    let mut report = |kind| stored.remove(&kind).unwrap_or_default();
    let tenant = &host.tenant;
    HostView {
        kind: host.kind.into(),
        id: host.id.0,
        href: href(host),
        infra_env_id: host.infra_env.0,
        cluster_id: host.cluster.map(|cluster| cluster.0),
        user_name: host.user.clone(),
        status: host.status().into(),
        status_info: host.status_info.clone().into(),
        status_updated_at: host.status_updated_at.into(),
        validations_info: report(Report::Validations),
        media_status: media(host.media).into(),
        connection_timed_out: host.connection_timed_out,
        progress: (style != Style::Registered).then(|| progress(host)),
        progress_stages: stages(hub, host, style),
        inventory: report(Report::Inventory),
        connectivity: report(Report::Connectivity),
        ntp_sources: report(Report::NtpSources),
        disks_info: report(Report::DisksInfo),
        free_addresses: String::new(),
        domain_name_resolutions: report(Report::DomainNameResolutions),
        api_vip_connectivity: report(Report::ApiVipConnectivity),
        tang_connectivity: report(Report::TangConnectivity),
        images_status: report(Report::ImagesStatus),
        timestamp: host.clock,
        discovery_agent_version: host.agent_version.clone(),
        checked_in_at: host.checked_in_at.into(),
        registered_at: host.registered_at.into(),
        created_at: host.created_at.into(),
        updated_at: host.updated_at.into(),
        deleted_at: None,
        role: host.role.into(),
        suggested_role: host.suggested_role.into(),
        bootstrap: host.bootstrap,
        requested_hostname: match style {
            Style::Raw => host.given_name().unwrap_or_default().to_owned(),
            Style::List | Style::Get | Style::Embedded | Style::Registered => host.name(),
        },
        installation_disk_id: tenant.installation_disk_id.clone(),
        installation_disk_path: tenant.installation_disk_path.clone(),
        installer_args: list(&tenant.installer_args),
        installer_version: host.installer_version.clone(),
        ignition_config_overrides: tenant.ignition_overrides.clone(),
        ignition_endpoint_token_set: !tenant.ignition_token.is_empty(),
        machine_config_pool_name: tenant.machine_config_pool.clone(),
        node_labels: labels(&tenant.node_labels),
        disks_to_be_formatted: host.disks_to_format.join(","),
        skip_formatting_disks: tenant.skip_formatting.join(","),
        fencing_credentials: without_password(&tenant.fencing),
        logs_info: host.logs.info.state().into(),
        logs_started_at: host.logs.started_at.into(),
        logs_collected_at: host.logs.collected_at.into(),
        ..HostView::default()
    }
}

/// The credentials as they were given, but for what only the installation needs to know.
fn without_password(fencing: &str) -> String {
    if fencing.is_empty() {
        return String::new();
    }
    let shown = serde_json::from_str::<FencingCredentials>(fencing).map(|given| FencingCredentials {
        password: Secret::hidden(),
        ..given
    });
    // What cannot be read was not written by us: it is not shown either.
    shown.map(|shown| json!(shown).to_string()).unwrap_or_default()
}

fn media(media: Media) -> Option<MediaStatus> {
    match media {
        Media::Unset => None,
        Media::Connected => Some(MediaStatus::Connected),
        Media::Disconnected => Some(MediaStatus::Disconnected),
    }
}

fn progress(host: &Host) -> HostProgressView {
    let progress = &host.progress;
    HostProgressView {
        current_stage: progress.stage.into(),
        installation_percentage: progress.percentage,
        progress_info: progress.info.clone(),
        stage_started_at: progress.started_at.into(),
        stage_updated_at: progress.updated_at.into(),
        stage_timed_out: progress.timed_out,
    }
}

fn stages(hub: &Hub, host: &Host, style: Style) -> Option<Vec<Word<Stage>>> {
    let single_node = match style {
        Style::Raw => return None,
        Style::List => false,
        Style::Get | Style::Embedded | Style::Registered => host
            .cluster
            .and_then(|id| hub.index.cluster(id))
            .is_some_and(|cluster| cluster.single_node()),
    };
    // Only a chosen role has stages to show.
    let order = if host.role == Role::AutoAssign {
        &[]
    } else {
        stage::order(host, single_node)
    };
    Some(order.iter().copied().map(Word::from).collect())
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        String::new()
    } else {
        json!(items).to_string()
    }
}

fn labels(labels: &[(String, String)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let map: BTreeMap<_, _> = labels.iter().map(|(key, value)| (key, value)).collect();
    json!(map).to_string()
}
