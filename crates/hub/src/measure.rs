//! Runs the domain's checks over what is stored about a host.

use crate::Hub;
use crate::host_change::Stored;
use crate::shared_facts::SharedFacts;
use crate::steps;
use jiff::Timestamp;
use muster_domain::checks::{self, ClusterFacts, Neighbours, Reports, Subject};
use muster_domain::cluster::Cluster;
use muster_domain::host::{Gates, Host, Media, Report, rules};
use muster_domain::inventory::Inventory;
use muster_domain::{Entry, Severity};
use std::sync::Arc;

pub struct Found {
    pub gates: Gates,
    pub complaints: String,
    pub validations: String,
    pub report: checks::Report,
}

pub fn host(hub: &Hub, host: &Host, stored: &Stored, now: Timestamp) -> Found {
    let shared = host.cluster.map(|id| shared_facts(hub, id));
    let cluster = host.cluster.and_then(|id| hub.index.cluster(id));
    with_facts(hub, host, stored, shared.as_deref(), cluster.as_deref(), now)
}

/// Whether hosts of this cluster were compared with each other before, and not yet since this hub started: what only all
/// of them together show is not forgotten until then.
pub fn waits_for_facts(hub: &Hub, id: muster_domain::ClusterId) -> bool {
    let was_reconciled = |cluster: &Cluster| !cluster.validations.is_empty() && cluster.phase.is_checked();
    hub.shared_facts.of(id).is_none()
        && hub
            .index
            .cluster(id)
            .is_some_and(|cluster| was_reconciled(&cluster))
}

/// As last put together; a cluster that was never reconciled is judged by its settings alone.
fn shared_facts(hub: &Hub, id: muster_domain::ClusterId) -> Arc<SharedFacts> {
    hub.shared_facts.of(id).unwrap_or_else(|| {
        let facts = hub
            .index
            .cluster(id)
            .map(|cluster| ClusterFacts::of(&cluster))
            .unwrap_or_default();
        Arc::new(SharedFacts {
            facts,
            ..SharedFacts::default()
        })
    })
}

/// `cluster`: as it shall be, which memory may not know yet.
pub fn with_facts(
    hub: &Hub,
    host: &Host,
    stored: &Stored,
    shared: Option<&SharedFacts>,
    cluster: Option<&Cluster>,
    now: Timestamp,
) -> Found {
    let nobody = Neighbours::default();
    let text = stored.get(&Report::Inventory).filter(|text| !text.is_empty());
    let inventory = text.map(|text| Inventory::parse(text));
    let reports = parse(stored);
    let infra_env = hub.index.infra_env(host.infra_env);
    let wanted_images = cluster
        .map(|cluster| hub.wanted_images(cluster))
        .unwrap_or_default();
    let ntp_configured = infra_env.is_some_and(|pool| pool.has_time_sources())
        || cluster.is_some_and(|cluster| {
            !cluster.additional_ntp_source.is_empty() || !cluster.ntp_sources.is_empty()
        });
    let subject = Subject {
        id: host.id,
        cluster: shared.map(|shared| &shared.facts),
        neighbours: shared.map_or(&nobody, |shared| &shared.neighbours),
        connected: host.connected,
        media_connected: host.media != Media::Disconnected,
        installation: rules::installation(host),
        inventory: inventory.as_ref().and_then(|parsed| parsed.as_ref().ok()),
        inventory_broken: matches!(inventory, Some(Err(_))) || host.inventory_broken,
        given_name: host.given_name(),
        role: host.role,
        suggested_role: host.suggested_role,
        installation_disk_id: &host.tenant.installation_disk_id,
        skip_formatting: &host.tenant.skip_formatting,
        disk_speed_skipped: hub.skips_disk_speed(host),
        reports: &reports,
        clock: host.clock,
        clock_read_at: if host.clock == 0 { now } else { host.checked_in_at },
        agent_version: &host.agent_version,
        agent_stays: steps::keeps_agent(hub, host),
        ntp_configured,
        wanted_images: &wanted_images,
        settings: &hub.settings.checks,
        requirements: &hub.settings.requirements,
    };
    let report = checks::run(&subject);
    Found {
        gates: report.gates(),
        complaints: report.complaints(),
        validations: report.to_json(),
        report,
    }
}

/// Stored reports were written by us; one that cannot be read counts as not there.
pub fn parse(stored: &Stored) -> Reports {
    fn read<T: serde::de::DeserializeOwned>(stored: &Stored, report: Report) -> Option<T> {
        stored
            .get(&report)
            .and_then(|text| serde_json::from_str(text).ok())
    }
    Reports {
        ntp_sources: read(stored, Report::NtpSources),
        connectivity: read(stored, Report::Connectivity),
        disks_info: read(stored, Report::DisksInfo).unwrap_or_default(),
        images_status: read(stored, Report::ImagesStatus).unwrap_or_default(),
        domain_resolutions: read(stored, Report::DomainNameResolutions),
        api_vip_connectivity: read(stored, Report::ApiVipConnectivity),
        tang_connectivity: read(stored, Report::TangConnectivity),
        free_addresses: read(stored, Report::FreeAddresses).unwrap_or_default(),
    }
}

/// Checks that turned bad or good, for the history.
pub fn news(host: &Host, old: &str, report: &checks::Report) -> Vec<Entry> {
    let old = checks::stored(old);
    // The first evaluation of a host's hardware is no news about it.
    if old.get(checks::CheckId::HasInventory.as_str()) != Some(&checks::Status::Success) {
        return Vec::new();
    }
    let changes = report.changes(&old);
    changes
        .into_iter()
        .filter_map(|change| match change.news {
            checks::News::Other => None,
            checks::News::Fixed => Some(host.entry(
                "host_validation_fixed",
                Severity::Info,
                format!("Host {}: check {} passes now.", host.name(), change.id),
            )),
            checks::News::Failed | checks::News::Broke => Some(host.entry(
                "host_validation_failed",
                Severity::Warning,
                format!(
                    "Host {}: check {} fails: {}",
                    host.name(),
                    change.id,
                    change.message
                ),
            )),
        })
        .collect()
}
