//! What a verb would do, decided by the verb's own code and not committed.

mod draft;
mod install;

use crate::Hub;
use crate::change::OpContext;
use crate::cluster_change::OneCluster;
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need};
use crate::infra_env_change::OneInfraEnv;
use crate::usecase::cluster_delete::{Fate, fates};
use crate::usecase::cluster_stop::Stop;
use crate::usecase::host_delete::decide_delete;
use crate::usecase::infra_env_delete_hosts::{Fates, MOST_AT_A_TIME};
use crate::usecase::{host_bind, infra_env_delete, infra_env_delete_hosts};
use draft::{Draft, lost};
use muster_contract::v1::plan::{PlanRequest, PlanView, Verb};
use muster_domain::checks::verdict::{Verdict, verdicts};
use muster_domain::cluster::Cluster;
use muster_domain::host::{Event, Phase, Report, Role, Route, Status};
use muster_domain::input::Invalid;
use muster_domain::inventory::Inventory;
use muster_domain::requirements::Profile;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use std::sync::Arc;
use uuid::Uuid;

/// Of thousands nobody reads more.
const NAMED_BLOCKERS: usize = 100;

pub async fn plan(hub: &Hub, request: &PlanRequest, _ask: &OpContext) -> Result<PlanView, Error> {
    if let Some(cluster) = request.cluster_id {
        hub.caught_up(ClusterId(cluster)).await;
    }
    if let Ok(key) = host_of(request) {
        hub.caught_up_host(key).await;
    }
    match request.verb {
        Verb::Bind | Verb::Move => {
            let (key, to) = (
                host_of(request)?,
                ClusterId(needed(request.cluster_id, "cluster_id")?),
            );
            lend(hub, request.verb, key, to).await
        }
        Verb::Unbind => unbind(hub, host_of(request)?).await,
        Verb::DeleteHost => delete_host(hub, host_of(request)?).await,
        Verb::DeleteCluster => delete_cluster(hub, cluster_of(request)?).await,
        Verb::DeleteInfraEnv => {
            delete_infra_env(hub, InfraEnvId(needed(request.infra_env_id, "infra_env_id")?)).await
        }
        Verb::DeleteInfraEnvWithHosts => {
            delete_infra_env_with_hosts(hub, InfraEnvId(needed(request.infra_env_id, "infra_env_id")?)).await
        }
        Verb::InstallCluster => install::cluster(hub, cluster_of(request)?).await,
        Verb::CancelCluster => install::stop(hub, cluster_of(request)?, Stop::Cancel).await,
        Verb::ResetCluster => install::stop(hub, cluster_of(request)?, Stop::Reset).await,
        Verb::InstallHost => install::host(hub, host_of(request)?).await,
        Verb::ResetHost => install::reset_host(hub, host_of(request)?).await,
        Verb::ReclaimHost => install::reclaim(hub, host_of(request)?).await,
    }
}

fn cluster_of(request: &PlanRequest) -> Result<ClusterId, Error> {
    Ok(ClusterId(needed(request.cluster_id, "cluster_id")?))
}

fn needed(id: Option<Uuid>, field: &str) -> Result<Uuid, Error> {
    id.ok_or_else(|| Invalid::rule(field, "is missing", "name it, this verb needs it").into())
}

fn host_of(request: &PlanRequest) -> Result<HostKey, Error> {
    let infra_env = InfraEnvId(needed(request.infra_env_id, "infra_env_id")?);
    Ok(HostKey {
        infra_env,
        host: HostId(needed(request.host_id, "host_id")?),
    })
}

pub async fn lend(hub: &Hub, verb: Verb, key: HostKey, to: ClusterId) -> Result<PlanView, Error> {
    hub.readable_cluster(to)?;
    let cluster = hub
        .index
        .cluster(to)
        .ok_or_else(|| Error::missing("cluster", to))?;
    let snapshot = hub.host_snapshot(key, Need::Reports).await?;
    let mut draft = Draft::new(verb);
    let change = if verb == Verb::Move {
        draft.check(&snapshot, host_bind::early_bound(&snapshot));
        draft.check(&snapshot, snapshot.next(&Event::Move { to }));
        draft.check(&snapshot, host_bind::target(&snapshot, to));
        host_bind::decide_move(&snapshot, to)
    } else {
        draft.check(&snapshot, snapshot.next(&Event::Bind { to }));
        if snapshot.host.is_free() {
            draft.check(&snapshot, host_bind::target(&snapshot, to));
        }
        host_bind::decide_bind(&snapshot, to)
    };
    draft.warnings = warnings(hub, &snapshot, &cluster);
    if let Some(change) = draft.allowed(&snapshot, change)? {
        lend_steps(&mut draft, &snapshot, change, &cluster);
    }
    Ok(draft.view())
}

fn lend_steps(draft: &mut Draft, snapshot: &HostSnapshot, change: HostChange, cluster: &Arc<Cluster>) {
    let after = change.decision.host;
    let name = &cluster.name;
    if after.cluster != Some(cluster.id) {
        if snapshot.host.cluster.is_some() {
            draft.give_back(&snapshot.host, &after);
        }
        let arrived = draft.come_back(snapshot, &after);
        draft
            .step(
                &after,
                format!("bind to cluster {name}"),
                Some(arrived),
                Some(Status::Binding),
            )
            .note =
            Some("By itself, as soon as the host is free and ready, also after a restart of the hub.".into());
        return;
    }
    let action = match snapshot.host.cluster {
        None => format!("bind to cluster {name}"),
        Some(_) => format!("hand over to cluster {name}"),
    };
    let lost = if snapshot.host.cluster.is_some() {
        lost(&snapshot.host)
    } else {
        Vec::new()
    };
    let step = draft.step(
        &snapshot.host,
        action,
        Some(snapshot.host.status()),
        Some(after.status()),
    );
    step.destroys = lost;
    step.note = Some("At once; nothing is written to the host's disk.".into());
    draft.register_again(snapshot, &after, Some(cluster));
    let note = "The hub checks the new inventory against the cluster; `explain` shows what fails.";
    draft
        .step(
            &after,
            "report its hardware to the cluster".into(),
            None,
            Some(Status::Known),
        )
        .note = Some(note.into());
}

async fn unbind(hub: &Hub, key: HostKey) -> Result<PlanView, Error> {
    let snapshot = hub.host_snapshot(key, Need::Reports).await?;
    let mut draft = Draft::new(Verb::Unbind);
    draft.check(&snapshot, snapshot.next(&Event::Unbind));
    draft.check(&snapshot, host_bind::early_bound(&snapshot));
    let change = host_bind::decide_unbind(&snapshot);
    if let Some(change) = draft.allowed(&snapshot, change)? {
        let after = change.decision.host;
        draft.give_back(&snapshot.host, &after);
        draft.come_back(&snapshot, &after);
    }
    Ok(draft.view())
}

async fn delete_host(hub: &Hub, key: HostKey) -> Result<PlanView, Error> {
    let snapshot = hub.host_snapshot(key, Need::Row).await?;
    let host = &snapshot.host;
    let mut draft = Draft::new(Verb::DeleteHost);
    draft.check(&snapshot, decide_delete(&snapshot));
    if draft.blockers.is_empty() {
        draft.forget(host);
        if host.connected {
            let note = "Its agent still runs: the hub tells it to register again, and it comes back as a \
                        new host. Switch the machine off to prevent that.";
            draft.warnings.push(note.into());
        }
        if matches!(host.phase, Phase::Installed | Phase::Added) {
            let note = "The machine stays a node of its cluster; remove the node there.";
            draft.warnings.push(note.into());
        }
    }
    Ok(draft.view())
}

pub async fn delete_cluster(hub: &Hub, id: ClusterId) -> Result<PlanView, Error> {
    hub.readable_cluster(id)?;
    let snapshot = hub.snapshot(&OneCluster::new(id).with_hosts()).await?;
    let cluster = &snapshot.cluster;
    let mut draft = Draft::new(Verb::DeleteCluster);
    let subject = format!("cluster/{}", cluster.name);
    let status = cluster.status();
    match fates(hub, &snapshot) {
        Err(Error::Refused(refused)) => draft.block(&subject, &refused),
        Err(error) => return Err(error),
        Ok((fates, _)) => {
            let mut by_hand = 0;
            for fate in fates {
                match fate {
                    Fate::Deleted(host) => draft.forget(&host),
                    Fate::Returned(change) => {
                        let after = change.decision.host;
                        let before = hub.index.host(after.key()).unwrap_or_else(|| after.clone());
                        by_hand += usize::from(after.route() == Some(Route::Boot));
                        draft.give_back(&before, &after);
                    }
                }
            }
            if by_hand > 0 {
                let text =
                    format!("{by_hand} host(s) must boot the discovery image before they are free again.");
                draft.warnings.push(text);
            }
            let step = draft.step_about(subject, "delete the cluster".into(), Some(status.into()), None);
            step.destroys = vec!["the cluster's settings and its pull secret".into()];
            step.note = Some(
                "All of it is one commit: either everything happens or nothing. Its history stays.".into(),
            );
        }
    }
    Ok(draft.view())
}

pub async fn delete_infra_env(hub: &Hub, id: InfraEnvId) -> Result<PlanView, Error> {
    hub.readable_infra_env(id)?;
    let snapshot = hub.snapshot(&OneInfraEnv { id, hosts: None }).await?;
    let mut draft = Draft::new(Verb::DeleteInfraEnv);
    let subject = format!("infra-env/{}", snapshot.infra_env.name);
    match infra_env_delete::decide_delete(hub, &snapshot) {
        Err(Error::Refused(refused)) => draft.block(&subject, &refused),
        Err(error) => return Err(error),
        Ok(_) => delete_pool(&mut draft, subject),
    }
    Ok(draft.view())
}

fn delete_pool(draft: &mut Draft, subject: String) {
    let step = draft.step_about(subject, "delete the InfraEnv".into(), None, None);
    step.destroys = vec!["its settings and its pull secret".into()];
    step.note = Some("Machines that still boot its image cannot register any more.".into());
}

pub async fn delete_infra_env_with_hosts(hub: &Hub, id: InfraEnvId) -> Result<PlanView, Error> {
    hub.readable_infra_env(id)?;
    let hosts = Some(MOST_AT_A_TIME);
    let snapshot = hub.snapshot(&OneInfraEnv { id, hosts }).await?;
    let infra_env = &snapshot.infra_env;
    let mut draft = Draft::new(Verb::DeleteInfraEnvWithHosts);
    if let Err(refused) = hub.whole_infra_env(infra_env) {
        draft.block(&format!("infra-env/{}", infra_env.name), &refused);
        return Ok(draft.view());
    }
    let Fates { hosts, blockers } = infra_env_delete_hosts::fates(&snapshot);
    for (host, refused) in blockers.iter().take(NAMED_BLOCKERS) {
        draft.block_each(&draft::subject(host), refused);
    }
    if !blockers.is_empty() {
        let text = format!("{} of its hosts block; {} would go.", blockers.len(), hosts.len());
        draft.warnings.push(text);
        return Ok(draft.view());
    }
    let subject = format!("infra-env/{}", infra_env.name);
    if !hosts.is_empty() {
        let action = format!("delete {} host(s) that were never lent", hosts.len());
        let step = draft.step_about(subject.clone(), action, None, None);
        step.destroys = vec!["their inventories and other reports".into()];
        step.note = Some(
            "The hub deletes some hundreds at a time. After an interruption, ask again to go on.".into(),
        );
    }
    let connected = hosts.iter().filter(|host| host.connected).count();
    if connected > 0 {
        let text = format!(
            "{connected} of the hosts are connected: their agents keep asking, and the hub refuses them \
             then."
        );
        draft.warnings.push(text);
    }
    delete_pool(&mut draft, subject);
    Ok(draft.view())
}

/// What the host could become in a cluster of this release.
pub fn verdicts_of(hub: &Hub, snapshot: &HostSnapshot, release: Option<&str>) -> Vec<Verdict> {
    let inventory = snapshot
        .stored
        .get(&Report::Inventory)
        .and_then(|text| Inventory::parse(text).ok());
    verdicts(inventory.as_ref(), &hub.settings.requirements, release)
}

fn warnings(hub: &Hub, snapshot: &HostSnapshot, cluster: &Cluster) -> Vec<String> {
    if !snapshot.stored.contains_key(&Report::Inventory) {
        return Vec::new();
    }
    let release = Some(cluster.openshift_version.as_str()).filter(|release| !release.is_empty());
    let all = verdicts_of(hub, snapshot, release);
    let wanted = match snapshot.host.role {
        _ if cluster.single_node() => Some(Profile::SingleNode),
        Role::Master => Some(Profile::Master),
        Role::Arbiter => Some(Profile::Arbiter),
        Role::Worker => Some(Profile::Worker),
        Role::AutoAssign => None,
    };
    match wanted {
        Some(profile) => {
            let unfit = all
                .iter()
                .filter(|verdict| verdict.profile == profile && !verdict.fits);
            unfit
                .map(|verdict| {
                    format!(
                        "does not fit {}: {}",
                        profile.as_str(),
                        verdict.reasons.join("; ")
                    )
                })
                .collect()
        }
        None => {
            let roles = all
                .iter()
                .filter(|verdict| verdict.profile != Profile::SingleNode);
            let (fit, unfit): (Vec<_>, Vec<_>) = roles.partition(|verdict| verdict.fits);
            let names: Vec<_> = fit.iter().map(|verdict| verdict.profile.as_str()).collect();
            match (names.is_empty(), unfit.is_empty()) {
                (_, true) => Vec::new(),
                (true, false) => vec!["fits no role of this cluster".into()],
                (false, false) => vec![format!("fits {} only", names.join(" and "))],
            }
        }
    }
}
