//! A step did not end well. Most are asked for again; of some the failure itself is what counts.

use super::{disk_speed, images_of, put, tell, upgrade_failed, write};
use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{Need, Stored};
use muster_contract::v2::step::{PostStepReply, StepType};
use muster_domain::checks::reports::{ImageStatus, ImagesReply, TangConnectivity};
use muster_domain::host::{Event, Phase, Report};
use muster_domain::{HostKey, Severity};
use xxhash_rust::xxh3::xxh3_64;

/// The container runtime's "a container of that name exists": the installer runs already.
const ALREADY_RUNNING: i64 = 125;
/// Of a program's complaint, as much as people read in a finding.
const LONGEST_CAUSE: usize = 300;

pub(super) async fn failed(
    hub: &Hub,
    key: HostKey,
    step: StepType,
    reply: &PostStepReply,
    opctx: &OpContext,
) -> Result<(), Error> {
    let exit_code = reply.exit_code.unwrap_or_default();
    let error = reply.error.as_deref().unwrap_or_default();
    tracing::debug!(host = %key, step = step.word(), exit_code, error, "step failed");
    match step {
        StepType::Install if exit_code == ALREADY_RUNNING && error.contains("already in use") => Ok(()),
        StepType::Install => {
            let why = if error.is_empty() {
                format!("exit code {exit_code}")
            } else {
                error.to_owned()
            };
            tell(hub, key, &Event::InstallFailed { why }, opctx).await
        }
        StepType::InstallationDiskSpeedCheck => {
            let output = reply
                .output
                .as_deref()
                .filter(|output| !output.is_empty())
                .unwrap_or("{}");
            disk_speed(hub, key, output, exit_code, opctx).await
        }
        StepType::DownloadBootArtifacts | StepType::RebootForReclaim => {
            tell(
                hub,
                key,
                &Event::ReclaimFailed {
                    why: error.to_owned(),
                },
                opctx,
            )
            .await
        }
        StepType::TangConnectivityCheck => tang(hub, key, &cause(exit_code, error), opctx).await,
        StepType::ContainerImageAvailability => {
            let output = reply.output.as_deref().unwrap_or_default();
            images(hub, key, output, &cause(exit_code, error), opctx).await
        }
        StepType::UpgradeAgent => upgrade_failed(hub, key, error, opctx).await,
        StepType::NtpSynchronizer => no_sources(hub, key, opctx).await,
        StepType::ConnectivityCheck
        | StepType::Execute
        | StepType::Inventory
        | StepType::FreeNetworkAddresses
        | StepType::DhcpLeaseAllocate
        | StepType::ApiVipConnectivityCheck
        | StepType::DomainResolution
        | StepType::StopInstallation
        | StepType::LogsGather
        | StepType::NextStepRunner
        | StepType::VerifyVips => Ok(()),
    }
}

/// What the step said about its failure, in one line.
fn cause(exit_code: i64, error: &str) -> String {
    let line = error.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.as_str() {
        "" => format!("exit code {exit_code}"),
        line => line.chars().take(LONGEST_CAUSE).collect(),
    }
}

/// An earlier success is no longer true.
async fn tang(hub: &Hub, key: HostKey, cause: &str, opctx: &OpContext) -> Result<(), Error> {
    let body = write(&TangConnectivity::failed(cause));
    let hash = xxh3_64(body.as_bytes());
    let known = hub
        .index
        .host(key)
        .and_then(|host| host.report_hashes.get(&Report::TangConnectivity).copied());
    if known == Some(hash) {
        return Ok(());
    }
    put(hub, key, Report::TangConnectivity, hash, body, opctx).await
}

/// Somebody who cannot tell which time servers it follows follows none, unless it reported some before.
async fn no_sources(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<(), Error> {
    const NONE: &str = "[]";
    let has_told = hub
        .index
        .host(key)
        .is_none_or(|host| host.report_hashes.contains_key(&Report::NtpSources));
    if has_told {
        return Ok(());
    }
    put(
        hub,
        key,
        Report::NtpSources,
        xxh3_64(NONE.as_bytes()),
        NONE.into(),
        opctx,
    )
    .await
}

/// What was found out about some images counts; all the others could not be tried.
async fn images(hub: &Hub, key: HostKey, output: &str, cause: &str, opctx: &OpContext) -> Result<(), Error> {
    let found: ImagesReply = super::read(output).unwrap_or_default();
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        let mut decision = snapshot.next(&Event::CheckedIn)?;
        // An installation that is not being prepared any more has no use for it.
        let (Phase::Preparing, Some(cluster)) = (snapshot.host.phase, &snapshot.cluster) else {
            return Ok(snapshot.plain(decision));
        };
        let mut all = images_of(snapshot);
        for image in &found.images {
            super::fits(&all, &image.name)?;
            all.insert(image.name.clone(), image.clone());
        }
        for name in hub.wanted_images(cluster) {
            let tried = all.get(&name).is_some_and(|image| !image.result.is_empty());
            if !tried {
                all.insert(name.clone(), ImageStatus::failed(&name, cause));
            }
        }
        let text = format!(
            "Host {}: its agent cannot test the container images: {cause}.",
            snapshot.host.name()
        );
        decision.journal.push(
            snapshot
                .host
                .entry("image_status_updated", Severity::Warning, text),
        );
        snapshot.measured(decision, Stored::from([(Report::ImagesStatus, write(&all))]))
    })
    .await?;
    Ok(())
}
