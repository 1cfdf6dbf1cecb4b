//! An agent tells what came of a step. Replies come late, twice and out of order: each is judged against now.

mod failed;

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, Stored};
use crate::index::Slot;
use crate::usecase::cluster_update;
use muster_contract::v2::step::{PostStepReply, StepType};
use muster_domain::checks::facts::effective_role;
use muster_domain::checks::reports::{
    ApiVipConnectivity, Connectivity, DiskInfo, DiskSpeed, DiskSpeedReply, DomainResolutions, FreeNetwork,
    ImageStatus, ImagesReply, NtpReply, TangConnectivity, UpgradeReply, VerifiedVip,
};
use muster_domain::host::machine::{self, Verdict};
use muster_domain::host::{Event, Host, Media, Report, disks, rules};
use muster_domain::input::bounds;
use muster_domain::inventory::Inventory;
use muster_domain::requirements::Profile;
use muster_domain::{HostKey, Severity};
use muster_vocabulary::ReplyResult;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// What the agent says when it cannot read the media it runs from.
const MEDIA_LOST: i64 = 256;
/// A control plane on slower disks is not supported.
const SLOWEST_DISK_MS: i64 = 10;

pub async fn host_report(
    hub: &Hub,
    key: HostKey,
    reply: &PostStepReply,
    opctx: &OpContext,
) -> Result<(), Error> {
    let Some(slot) = hub.index.slot(key) else {
        // What the hub told a deleted host's agent to do last is done; "not found" might freeze it.
        return if hub.index.is_deleted(key) {
            Ok(())
        } else {
            Err(Error::missing("host", key.host))
        };
    };
    let exit_code = reply.exit_code.unwrap_or_default();
    if exit_code == MEDIA_LOST {
        return tell(hub, key, &Event::MediaLost, opctx).await;
    }
    let Some(step) = reply.step_type else {
        return Ok(());
    };
    slot.live.outstanding.answered(step);
    if exit_code != 0 {
        return failed::failed(hub, key, step, reply, opctx).await;
    }
    if slot.row().media == Media::Disconnected {
        tell(hub, key, &Event::MediaBack, opctx).await?;
    }
    succeeded(
        hub,
        key,
        &slot,
        step,
        reply.output.as_deref().unwrap_or_default(),
        opctx,
    )
    .await
}

async fn succeeded(
    hub: &Hub,
    key: HostKey,
    slot: &Slot,
    step: StepType,
    output: &str,
    opctx: &OpContext,
) -> Result<(), Error> {
    let held = slot.row();
    let row: &Host = &held;
    match step {
        StepType::Inventory => inventory(hub, key, slot, output, opctx).await,
        StepType::ConnectivityCheck => {
            keep(
                hub,
                key,
                row,
                Report::Connectivity,
                output,
                rewrite::<Connectivity>,
                opctx,
            )
            .await
        }
        StepType::FreeNetworkAddresses => {
            keep(
                hub,
                key,
                row,
                Report::FreeAddresses,
                output,
                rewrite::<Vec<FreeNetwork>>,
                opctx,
            )
            .await
        }
        StepType::NtpSynchronizer => {
            keep(hub, key, row, Report::NtpSources, output, ntp_sources, opctx).await
        }
        StepType::DomainResolution => {
            keep(
                hub,
                key,
                row,
                Report::DomainNameResolutions,
                output,
                rewrite::<DomainResolutions>,
                opctx,
            )
            .await
        }
        StepType::ApiVipConnectivityCheck => {
            keep(
                hub,
                key,
                row,
                Report::ApiVipConnectivity,
                output,
                rewrite::<ApiVipConnectivity>,
                opctx,
            )
            .await
        }
        StepType::TangConnectivityCheck => {
            keep(
                hub,
                key,
                row,
                Report::TangConnectivity,
                output,
                rewrite::<TangConnectivity>,
                opctx,
            )
            .await
        }
        // An agent that finds the same test running answers with nothing; that is no news.
        StepType::InstallationDiskSpeedCheck | StepType::ContainerImageAvailability if output.is_empty() => {
            Ok(())
        }
        StepType::InstallationDiskSpeedCheck => disk_speed(hub, key, output, 0, opctx).await,
        StepType::ContainerImageAvailability => images(hub, key, output, opctx).await,
        StepType::VerifyVips => {
            let verified: Vec<VerifiedVip> = read(output)?;
            match row.cluster {
                Some(cluster) => cluster_update::vips_verified(hub, cluster, &verified, opctx).await,
                None => Ok(()),
            }
        }
        StepType::UpgradeAgent => upgraded(hub, key, output, opctx).await,
        StepType::DownloadBootArtifacts => tell(hub, key, &Event::ReclaimReady, opctx).await,
        StepType::StopInstallation => tell(hub, key, &Event::InstallerStopped, opctx).await,
        // Their effect shows elsewhere: in progress reports, uploads, or the next registration.
        StepType::Install
        | StepType::LogsGather
        | StepType::RebootForReclaim
        | StepType::DhcpLeaseAllocate
        | StepType::Execute
        | StepType::NextStepRunner => Ok(()),
    }
}

async fn tell(hub: &Hub, key: HostKey, event: &Event, opctx: &OpContext) -> Result<(), Error> {
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        let decision = snapshot.next(event)?;
        if decision.host == snapshot.host {
            return Ok(snapshot.plain(decision));
        }
        snapshot.measured(decision, Stored::new())
    })
    .await?;
    Ok(())
}

async fn inventory(
    hub: &Hub,
    key: HostKey,
    slot: &Slot,
    output: &str,
    opctx: &OpContext,
) -> Result<(), Error> {
    let hash = xxh3_64(output.as_bytes());
    // The common case by far: nothing new, nothing to do.
    let row = slot.row();
    if row.report_hashes.get(&Report::Inventory) == Some(&hash) && !row.inventory_broken {
        slot.live.heard_machine(hub.now());
        return Ok(());
    }
    let parsed = match readable(output) {
        Ok(parsed) => parsed,
        Err(error) => {
            // The agent only logs the refusal: the checks tell people.
            hub.change_host(key, Need::Reports, opctx, |snapshot| {
                let mut decision = snapshot.unchanged();
                // Where an earlier one is on record, the checks go on with that.
                decision.host.inventory_broken |= !snapshot.stored.contains_key(&Report::Inventory);
                snapshot.measured(decision, Stored::new())
            })
            .await?;
            return Err(error);
        }
    };
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        if !rules::takes_inventory(&snapshot.host) {
            let mut decision = snapshot.next(&Event::CheckedIn)?;
            decision.host.inventory_broken = false;
            return Ok(snapshot.plain(decision));
        }
        let silence = hub.settings.timers.silence;
        let heard_at = slot.live.machine_heard();
        match machine::judge(&snapshot.host.machine, &parsed, heard_at, snapshot.now, silence) {
            Verdict::Rival => {
                let mut decision = snapshot.next(&Event::CheckedIn)?;
                let warning = machine::contested(&mut decision.host, &parsed, snapshot.now);
                decision.journal.extend(warning);
                decision.host.inventory_broken = false;
                Ok(snapshot.plain(decision))
            }
            verdict @ (Verdict::Same | Verdict::Replaced) => {
                take_inventory(snapshot, parsed.clone(), hash, verdict)
            }
        }
    })
    .await?;
    if slot.row().report_hashes.get(&Report::Inventory) == Some(&hash) {
        slot.live.heard_machine(hub.now());
    }
    Ok(())
}

fn readable(output: &str) -> Result<Inventory, Error> {
    let parsed = Inventory::reported(output).map_err(Error::BadReport)?;
    if parsed.cpu.is_none() && !parsed.disks.is_empty() {
        return Err(Error::BadReport(
            "the inventory lists disks but no `cpu`: send the whole inventory".into(),
        ));
    }
    Ok(parsed)
}

fn take_inventory(
    snapshot: &HostSnapshot,
    mut inventory: Inventory,
    hash: u64,
    verdict: Verdict,
) -> Result<HostChange, Error> {
    let mut decision = snapshot.next(&Event::CheckedIn)?;
    decision.host.inventory_broken = false;
    let news = machine::known(&mut decision.host, &inventory, verdict, snapshot.now);
    decision.journal.extend(news);
    inventory.keep_real_interfaces();
    judge_disks(snapshot, &mut decision.host, &mut inventory);
    decision.host.digest = inventory.digest();
    decision.host.report_hashes.insert(Report::Inventory, hash);
    snapshot.measured(decision, Stored::from([(Report::Inventory, inventory.to_json())]))
}

/// Decides which disks can be used and which one is, by the role the host would have.
pub fn judge_disks(snapshot: &HostSnapshot, host: &mut Host, inventory: &mut Inventory) {
    let needs = &snapshot.hub.settings.requirements;
    let release = snapshot
        .cluster
        .as_ref()
        .map(|cluster| cluster.openshift_version.as_str())
        .filter(|v| !v.is_empty());
    let least_gb = match &snapshot.cluster {
        None => needs.roles(None).least_disk_size_gb(),
        Some(cluster) => {
            let role = effective_role(host.role, host.suggested_role);
            let single_node = cluster.single_node() && !cluster.adds_hosts();
            needs
                .roles(release)
                .get(Profile::of(role, single_node, inventory.is_edge()))
                .disk_size_gb
        }
    };
    disks::judge(inventory, least_gb, release);
    let chosen = disks::choose(inventory, &host.tenant.installation_disk_id);
    disks::note(&mut host.tenant, chosen);
    host.disks_to_format = disks::to_be_formatted(inventory);
}

/// Keeps a report as it came, in our own spelling, and runs the checks over it.
async fn keep(
    hub: &Hub,
    key: HostKey,
    row: &Host,
    report: Report,
    output: &str,
    spell: fn(&str) -> Result<String, Error>,
    opctx: &OpContext,
) -> Result<(), Error> {
    let hash = xxh3_64(output.as_bytes());
    if row.report_hashes.get(&report) == Some(&hash) {
        return Ok(());
    }
    put(hub, key, report, hash, spell(output)?, opctx).await
}

/// Keeps a report whose text had this hash.
async fn put(
    hub: &Hub,
    key: HostKey,
    report: Report,
    hash: u64,
    body: String,
    opctx: &OpContext,
) -> Result<(), Error> {
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        let mut decision = snapshot.next(&Event::CheckedIn)?;
        if !rules::takes_reports(&snapshot.host) {
            return Ok(snapshot.plain(decision));
        }
        decision.host.report_hashes.insert(report, hash);
        snapshot.measured(decision, Stored::from([(report, body.clone())]))
    })
    .await?;
    Ok(())
}

async fn disk_speed(
    hub: &Hub,
    key: HostKey,
    output: &str,
    exit_code: i64,
    opctx: &OpContext,
) -> Result<(), Error> {
    let reply: DiskSpeedReply = read(output)?;
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        let mut decision = snapshot.next(&Event::CheckedIn)?;
        if !rules::takes_tests(&snapshot.host) {
            return Ok(snapshot.plain(decision));
        }
        let path = match reply.path.as_str() {
            "" => snapshot.host.tenant.installation_disk_id.clone(),
            path => path.to_owned(),
        };
        let mut all: BTreeMap<String, DiskInfo> = snapshot
            .stored
            .get(&Report::DisksInfo)
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let speed = DiskSpeed {
            exit_code,
            speed_ms: reply.io_sync_duration,
            tested: true,
        };
        if exit_code == 0 && reply.io_sync_duration > SLOWEST_DISK_MS {
            let text = format!(
                "Host {}: disk {path} takes {} ms to write, more than the {SLOWEST_DISK_MS} ms that are supported.",
                snapshot.host.name(),
                reply.io_sync_duration
            );
            let entry = snapshot.host.entry("disk_speed_slower_than_supported", Severity::Warning, text);
            decision.journal.push(entry);
        }
        fits(&all, &path)?;
        all.insert(
            path.clone(),
            DiskInfo {
                disk_speed: Some(speed),
                path,
            },
        );
        snapshot.measured(decision, Stored::from([(Report::DisksInfo, write(&all))]))
    })
    .await?;
    Ok(())
}

async fn images(hub: &Hub, key: HostKey, output: &str, opctx: &OpContext) -> Result<(), Error> {
    let reply: ImagesReply = read(output)?;
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        let mut decision = snapshot.next(&Event::CheckedIn)?;
        if !rules::takes_tests(&snapshot.host) {
            return Ok(snapshot.plain(decision));
        }
        let mut all = images_of(snapshot);
        for image in &reply.images {
            let text = format!(
                "Host {}: image {}: {}.",
                snapshot.host.name(),
                image.name,
                image.result
            );
            decision
                .journal
                .push(snapshot.host.entry("image_status_updated", Severity::Info, text));
            fits(&all, &image.name)?;
            all.insert(image.name.clone(), image.clone());
        }
        snapshot.measured(decision, Stored::from([(Report::ImagesStatus, write(&all))]))
    })
    .await?;
    Ok(())
}

/// What is known about images so far, by name.
fn images_of(snapshot: &HostSnapshot) -> BTreeMap<String, ImageStatus> {
    let text = snapshot.stored.get(&Report::ImagesStatus);
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

async fn upgraded(hub: &Hub, key: HostKey, output: &str, opctx: &OpContext) -> Result<(), Error> {
    if output.is_empty() {
        return Ok(());
    }
    let reply: UpgradeReply = read(output)?;
    if reply.result != ReplyResult::Success {
        return upgrade_failed(hub, key, &reply.agent_image, opctx).await;
    }
    let (outcome, about) = ("was replaced by", reply.agent_image.as_str());
    upgrade_news(
        hub,
        key,
        "upgrade_agent_finished",
        Severity::Info,
        outcome,
        about,
        opctx,
    )
    .await
}

pub async fn upgrade_started(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<(), Error> {
    let outcome = "was told to replace itself by";
    let about = &hub.settings.images.agent;
    upgrade_news(
        hub,
        key,
        "upgrade_agent_started",
        Severity::Info,
        outcome,
        about,
        opctx,
    )
    .await
}

/// Agents repeat themselves every minute; history tells it once an hour.
async fn upgrade_news(
    hub: &Hub,
    key: HostKey,
    name: &'static str,
    severity: Severity,
    outcome: &str,
    about: &str,
    opctx: &OpContext,
) -> Result<(), Error> {
    let now = hub.now();
    let Some(slot) = hub
        .index
        .slot(key)
        .filter(|slot| slot.live.hourly.may_tell(name, now))
    else {
        return Ok(());
    };
    let host = slot.host();
    let text = format!("Host {}: its agent {outcome} {about}", host.name());
    hub.tell(host.entry(name, severity, text), opctx).await
}

async fn upgrade_failed(hub: &Hub, key: HostKey, about: &str, opctx: &OpContext) -> Result<(), Error> {
    let outcome = "could not replace itself:";
    upgrade_news(
        hub,
        key,
        "upgrade_agent_failed",
        Severity::Error,
        outcome,
        about,
        opctx,
    )
    .await
}

fn read<T: DeserializeOwned>(output: &str) -> Result<T, Error> {
    bounds::reported(output)
        .map_err(|why| Error::BadReport(format!("the hub cannot read the step's output: {why}")))
}

/// What is known adds up over many reports, each of which may be of something else.
fn fits<T>(known: &BTreeMap<String, T>, name: &str) -> Result<(), Error> {
    if known.len() < bounds::RESULTS || known.contains_key(name) {
        return Ok(());
    }
    Err(Error::BadReport(format!(
        "the hub already has results for {} things of this host: report on those",
        bounds::RESULTS
    )))
}

fn write<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn rewrite<T: DeserializeOwned + Serialize>(output: &str) -> Result<String, Error> {
    read::<T>(output).map(|parsed| write(&parsed))
}

fn ntp_sources(output: &str) -> Result<String, Error> {
    read::<NtpReply>(output).map(|reply| write(&reply.ntp_sources))
}
