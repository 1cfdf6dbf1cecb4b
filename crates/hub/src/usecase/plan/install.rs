//! Plans of installations: what every host becomes, what is written over, and what stopping would leave behind.

use super::draft::Draft;
use crate::Hub;
use crate::cluster_change::{ClusterChange, ClusterSnapshot, OneCluster};
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need};
use crate::ignition::UPLOADED;
use crate::ignition::uploaded::roles_of;
use crate::usecase::cluster_install;
use crate::usecase::cluster_reconcile::cluster_reconcile;
use crate::usecase::cluster_stop::{self, Stop};
use crate::usecase::host_install::{decide_install, decide_reclaim, decide_reset};
use muster_contract::v1::plan::{PlanView, Verb};
use muster_domain::cluster::{Cluster, IgnitionSource};
use muster_domain::host::{Host, Kind, Phase, Status, install_order};
use muster_domain::{ClusterId, HostKey};

pub async fn cluster(hub: &Hub, id: ClusterId) -> Result<PlanView, Error> {
    hub.readable_cluster(id)?;
    // The verb reconciles first, too: the last report may not have been evaluated yet.
    let before = cluster_reconcile(hub, id)
        .await?
        .ok_or_else(|| Error::missing("cluster", id))?;
    let scope = OneCluster::new(id).with_hosts().files_below(UPLOADED);
    let ClusterSnapshot { files, hosts, .. } = hub.snapshot(&scope).await?;
    let uploaded = roles_of(&files);
    let mut draft = Draft::new(Verb::InstallCluster);
    let answer = cluster_install::start(hub, &before, &hosts, &uploaded);
    let Some(whole) = allowed(&mut draft, &before, answer)? else {
        for host in hosts.iter().filter(|host| host.status() != Status::Known) {
            draft
                .warnings
                .push(format!("{} is {}", host.name(), host.status().word()));
        }
        return Ok(draft.view());
    };
    for decision in &whole.hosts {
        let host = &decision.host;
        let status = Some(host.status());
        let mut action = format!("become {}", host.role.word());
        if host.bootstrap {
            action.push_str(" and start the control plane");
        }
        draft.step(host, action, status, status).note = Some("At once, together with all others.".into());
    }
    let step = whole_step(&mut draft, &before, &whole, "prepare the installation");
    step.note = Some(files_note(&whole.cluster.cluster));
    for decision in &whole.hosts {
        let host = &decision.host;
        let step = draft.step(
            host,
            "test its disk and pull images".into(),
            None,
            Some(Status::PreparingSuccessful),
        );
        step.note = Some("17 minutes at most; nothing is written to the disk.".into());
    }
    for decision in &whole.hosts {
        write_over(&mut draft, &decision.host);
        draft.warnings.extend(hub.system_warning(&decision.host, &before));
    }
    Ok(draft.view())
}

fn files_note(cluster: &Cluster) -> String {
    match cluster.ignition_source {
        IgnitionSource::Installer if !cluster.ignition_endpoint.url.is_empty() => "The hub's openshift-install makes the files; the ignition endpoint is for hosts that are added later.",
        IgnitionSource::Installer => "The hub's openshift-install makes the files; if that fails, the cluster is ready again and says why.",
        IgnitionSource::Uploaded => "The hub uses the uploaded ignition.",
        IgnitionSource::Endpoint => "Hosts fetch their ignition from the cluster's endpoint, and tell the hub when they run from their disks.",
    }
    .into()
}

/// How an installation ends that goes well.
fn installed(host: &Host) -> Status {
    match host.kind {
        Kind::Host => Status::Installed,
        Kind::AddToExistingClusterHost => Status::AddedToExistingCluster,
    }
}

/// The step after which there is no way back.
fn write_over(draft: &mut Draft, host: &Host) {
    let disk = match host.tenant.installation_disk_path.as_str() {
        "" => "its installation disk".to_owned(),
        path => path.to_owned(),
    };
    let formatted = install_order::disks_to_format(host).len();
    let step = draft.step(
        host,
        format!("install to {disk} and reboot from it"),
        Some(Status::Installing),
        Some(installed(host)),
    );
    step.destroys = vec![format!("everything on {disk}")];
    if formatted > 1 {
        step.destroys
            .push(format!("the boot sectors of {formatted} bootable disks"));
    }
}

pub async fn stop(hub: &Hub, id: ClusterId, how: Stop) -> Result<PlanView, Error> {
    hub.readable_cluster(id)?;
    let scope = OneCluster::new(id).with_hosts();
    let ClusterSnapshot {
        cluster: before,
        hosts,
        ..
    } = hub.snapshot(&scope).await?;
    let (verb, action) = match how {
        Stop::Cancel => (Verb::CancelCluster, "cancel the installation"),
        Stop::Reset => (Verb::ResetCluster, "reset the installation"),
    };
    let mut draft = Draft::new(verb);
    let answer = cluster_stop::stop(hub, &before, &hosts, how);
    let Some(whole) = allowed(&mut draft, &before, answer)? else {
        return Ok(draft.view());
    };
    for decision in &whole.hosts {
        let was = hosts.iter().find(|host| host.key() == decision.host.key());
        let from = was.map(|host| host.status());
        let step = draft.step(&decision.host, action.into(), from, Some(decision.host.status()));
        step.note = Some(after_stop(&decision.host));
    }
    let step = whole_step(&mut draft, &before, &whole, action);
    if how == Stop::Reset {
        step.destroys = vec!["the files that were made for the installation".into()];
        step.note = Some("Uploaded manifests, uploaded ignition and collected logs stay.".into());
    }
    Ok(draft.view())
}

fn after_stop(host: &Host) -> String {
    let text = match host.phase {
        Phase::ResetPending if !host.agent_is_gone() => "The hub tells its agent to register again.",
        Phase::ResetPending => "Somebody must boot the discovery image there.",
        Phase::Cancelled if host.installer_may_run => {
            "The hub tells a running installer to stop, and collects logs."
        }
        Phase::Cancelled => "It stays bound until the cluster is reset or the host is unbound.",
        Phase::Discovery
        | Phase::Binding
        | Phase::Unbinding
        | Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting
        | Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installing
        | Phase::InProgress
        | Phase::BootFix
        | Phase::Installed
        | Phase::Added
        | Phase::Failed
        | Phase::Resetting => "Nothing was written to its disk.",
    };
    text.into()
}

fn whole_step<'a>(
    draft: &'a mut Draft,
    before: &Cluster,
    whole: &ClusterChange,
    action: &str,
) -> &'a mut muster_contract::v1::plan::PlanStep {
    draft.step_about(
        format!("cluster/{}", before.name),
        action.into(),
        Some(before.status().into()),
        Some(whole.cluster.cluster.status().into()),
    )
}

fn allowed(
    draft: &mut Draft,
    before: &Cluster,
    answer: Result<ClusterChange, Error>,
) -> Result<Option<ClusterChange>, Error> {
    match answer {
        Ok(whole) => Ok(Some(whole)),
        Err(Error::Refused(refused)) => {
            draft.block(&format!("cluster/{}", before.name), &refused);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub async fn host(hub: &Hub, key: HostKey) -> Result<PlanView, Error> {
    one(
        hub,
        key,
        Verb::InstallHost,
        decide_install,
        |draft, snapshot, after| {
            let step = draft.step(
                &snapshot.host,
                format!("become {} and start installing", after.role.word()),
                Some(snapshot.host.status()),
                Some(after.status()),
            );
            step.note = Some("At its next poll.".into());
            write_over(draft, after);
            if let Some(cluster) = &snapshot.cluster {
                draft.warnings.extend(hub.system_warning(after, cluster));
            }
        },
    )
    .await
}

pub async fn reset_host(hub: &Hub, key: HostKey) -> Result<PlanView, Error> {
    one(
        hub,
        key,
        Verb::ResetHost,
        decide_reset,
        |draft, snapshot, after| {
            let step = draft.step(
                &snapshot.host,
                "reset its installation".into(),
                Some(snapshot.host.status()),
                Some(after.status()),
            );
            step.note = Some(after_stop(after));
        },
    )
    .await
}

pub async fn reclaim(hub: &Hub, key: HostKey) -> Result<PlanView, Error> {
    one(
        hub,
        key,
        Verb::ReclaimHost,
        decide_reclaim,
        |draft, snapshot, after| {
            draft.give_back(&snapshot.host, after);
            draft.come_back(snapshot, after);
        },
    )
    .await
}

async fn one(
    hub: &Hub,
    key: HostKey,
    verb: Verb,
    decide: fn(&HostSnapshot) -> Result<HostChange, Error>,
    tell: impl Fn(&mut Draft, &HostSnapshot, &Host),
) -> Result<PlanView, Error> {
    let snapshot = hub.host_snapshot(key, Need::Row).await?;
    let mut draft = Draft::new(verb);
    if let Some(change) = draft.allowed(&snapshot, decide(&snapshot))? {
        tell(&mut draft, &snapshot, &change.decision.host);
    }
    Ok(draft.view())
}
