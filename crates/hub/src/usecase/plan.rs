//! What a verb would do, decided by the verb's own code and not committed.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, Need, Scene, Turn};
use crate::usecase::cluster_delete::{Fate, fates};
use crate::usecase::{host_bind, infra_env_delete};
use muster_contract::v1::plan::{Blocker, PlanRequest, PlanStep, PlanView, Verb};
use muster_domain::checks::verdict::{Verdict, verdicts};
use muster_domain::cluster::{Cluster, lifecycle};
use muster_domain::host::{Event, Host, Phase, Report, Role, Tenant, rules};
use muster_domain::input::Invalid;
use muster_domain::inventory::Inventory;
use muster_domain::requirements::Profile;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId, Refused};
use std::borrow::Cow;
use std::sync::Arc;
use uuid::Uuid;

pub async fn plan(hub: &Hub, request: &PlanRequest, _ask: &Ask) -> Result<PlanView, Error> {
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
        Verb::DeleteCluster => delete_cluster(hub, ClusterId(needed(request.cluster_id, "cluster_id")?)),
        Verb::DeleteInfraEnv => {
            delete_infra_env(hub, InfraEnvId(needed(request.infra_env_id, "infra_env_id")?))
        }
    }
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
    let cluster = hub
        .index
        .cluster(to)
        .ok_or_else(|| Error::missing("cluster", to))?;
    let scene = hub.scene(key, Need::Reports, false).await?;
    let mut draft = Draft::new(verb);
    let turn = if verb == Verb::Move {
        draft.check(&scene, host_bind::early_bound(&scene));
        draft.check(&scene, scene.next(&Event::Move { to }));
        draft.check(&scene, host_bind::target(&scene, to));
        host_bind::move_turn(&scene, to)
    } else {
        draft.check(&scene, scene.next(&Event::Bind { to }));
        if scene.host.is_free() {
            draft.check(&scene, host_bind::target(&scene, to));
        }
        host_bind::bind_turn(&scene, to)
    };
    draft.warnings = warnings(hub, &scene, &cluster);
    if let Some(turn) = draft.allowed(&scene, turn)? {
        lend_steps(&mut draft, &scene, turn, &cluster);
    }
    Ok(draft.view())
}

fn lend_steps(draft: &mut Draft, scene: &Scene<'_>, turn: Turn, cluster: &Arc<Cluster>) {
    let after = turn.decision.host;
    let name = &cluster.name;
    if after.cluster != Some(cluster.id) {
        if scene.host.cluster.is_some() {
            draft.give_back(&scene.host, &after);
        }
        let arrived = draft.come_back(scene, &after);
        draft
            .step(
                &after,
                format!("bind to cluster {name}"),
                Some(&arrived),
                Some("binding"),
            )
            .note =
            Some("By itself, as soon as the host is free and ready, also after a restart of the hub.".into());
        return;
    }
    let action = match scene.host.cluster {
        None => format!("bind to cluster {name}"),
        Some(_) => format!("hand over to cluster {name}"),
    };
    let lost = if scene.host.cluster.is_some() {
        lost(&scene.host)
    } else {
        Vec::new()
    };
    let step = draft.step(
        &scene.host,
        action,
        Some(scene.host.status().word()),
        Some(after.status().word()),
    );
    step.destroys = lost;
    step.note = Some("At once; nothing is written to the host's disk.".into());
    draft.register_again(scene, &after, Some(cluster));
    let note = "The checks of the cluster run over the new inventory; what fails is told by explain.";
    draft
        .step(
            &after,
            "report its hardware to the cluster".into(),
            None,
            Some("known"),
        )
        .note = Some(note.into());
}

async fn unbind(hub: &Hub, key: HostKey) -> Result<PlanView, Error> {
    let scene = hub.scene(key, Need::Reports, false).await?;
    let mut draft = Draft::new(Verb::Unbind);
    draft.check(&scene, scene.next(&Event::Unbind));
    draft.check(&scene, host_bind::early_bound(&scene));
    let turn = host_bind::unbind_turn(&scene);
    if let Some(turn) = draft.allowed(&scene, turn)? {
        let after = turn.decision.host;
        draft.give_back(&scene.host, &after);
        draft.come_back(&scene, &after);
    }
    Ok(draft.view())
}

async fn delete_host(hub: &Hub, key: HostKey) -> Result<PlanView, Error> {
    let scene = hub.scene(key, Need::Row, false).await?;
    let host = &scene.host;
    let mut draft = Draft::new(Verb::DeleteHost);
    draft.check(&scene, rules::deletable(host).map_err(Error::from));
    if draft.blockers.is_empty() {
        draft.forget(host);
        if host.connected {
            let note = "Its agent still runs: it is told to register again and comes back as a new host. Switch the \
                        machine off to prevent that.";
            draft.warnings.push(note.into());
        }
        if matches!(host.phase, Phase::Installed | Phase::Added) {
            let note = "The machine stays a node of its cluster; remove the node there.";
            draft.warnings.push(note.into());
        }
    }
    Ok(draft.view())
}

pub fn delete_cluster(hub: &Hub, id: ClusterId) -> Result<PlanView, Error> {
    let cluster = hub
        .index
        .cluster(id)
        .ok_or_else(|| Error::missing("cluster", id))?;
    let mut draft = Draft::new(Verb::DeleteCluster);
    let subject = format!("cluster/{}", cluster.name);
    let status = lifecycle::status(&cluster);
    match fates(hub, &cluster) {
        Err(Error::Refused(refused)) => draft.block(&subject, &refused),
        Err(error) => return Err(error),
        Ok((fates, _)) => {
            let mut by_hand = 0;
            for fate in fates {
                match fate {
                    Fate::Deleted(host) => draft.forget(&host),
                    Fate::Returned(turn) => {
                        let after = turn.decision.host;
                        let before = hub.index.host(after.key()).unwrap_or_else(|| after.clone());
                        by_hand += usize::from(after.phase == Phase::ReturnPending);
                        draft.give_back(&before, &after);
                    }
                }
            }
            if by_hand > 0 {
                let text =
                    format!("{by_hand} host(s) must boot the discovery image before they are free again.");
                draft.warnings.push(text);
            }
            let step = draft.step_about(subject, "delete the cluster".into(), Some(status), None);
            step.destroys = vec!["the cluster's settings and its pull secret".into()];
            step.note = Some(
                "All of it is one commit: either everything happens or nothing. Its history stays.".into(),
            );
        }
    }
    Ok(draft.view())
}

pub fn delete_infra_env(hub: &Hub, id: InfraEnvId) -> Result<PlanView, Error> {
    let infra_env = hub
        .index
        .infra_env(id)
        .ok_or_else(|| Error::missing("infra-env", id))?;
    let mut draft = Draft::new(Verb::DeleteInfraEnv);
    let subject = format!("infra-env/{}", infra_env.name);
    match infra_env_delete::may_delete(hub, &infra_env) {
        Err(refused) => draft.block(&subject, &refused),
        Ok(()) => {
            let step = draft.step_about(subject, "delete the InfraEnv".into(), None, None);
            step.destroys = vec!["its settings and its pull secret".into()];
            step.note = Some("Machines that still boot its image cannot register any more.".into());
        }
    }
    Ok(draft.view())
}

/// A plan in the making.
struct Draft {
    verb: Verb,
    steps: Vec<PlanStep>,
    blockers: Vec<Blocker>,
    warnings: Vec<String>,
}

impl Draft {
    fn new(verb: Verb) -> Self {
        Self {
            verb,
            steps: Vec::new(),
            blockers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn view(self) -> PlanView {
        let Self {
            verb,
            steps,
            blockers,
            warnings,
        } = self;
        PlanView {
            verb,
            allowed: blockers.is_empty(),
            steps,
            blockers,
            warnings,
        }
    }

    fn block(&mut self, subject: &str, refused: &Refused) {
        if self.blockers.iter().any(|known| known.code == refused.code) {
            return;
        }
        self.blockers.push(Blocker {
            code: Cow::Owned(refused.code.clone()),
            subject: subject.to_owned(),
            reason: refused.reason.clone(),
            next_action: refused.next_action.clone(),
        });
    }

    /// One of several questions that are asked even if another one was answered with no.
    fn check<T>(&mut self, scene: &Scene<'_>, answer: Result<T, Error>) {
        if let Err(Error::Refused(refused)) = answer {
            self.block(&subject(&scene.host), &refused);
        }
    }

    /// The verb's own answer has the last word.
    fn allowed(&mut self, scene: &Scene<'_>, turn: Result<Turn, Error>) -> Result<Option<Turn>, Error> {
        match turn {
            Ok(turn) => {
                self.blockers.clear();
                Ok(Some(turn))
            }
            Err(Error::Refused(refused)) => {
                self.block(&subject(&scene.host), &refused);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn step(&mut self, host: &Host, action: String, from: Option<&str>, to: Option<&str>) -> &mut PlanStep {
        self.step_about(subject(host), action, from, to)
    }

    fn step_about(
        &mut self,
        subject: String,
        action: String,
        from: Option<&str>,
        to: Option<&str>,
    ) -> &mut PlanStep {
        let order = u32::try_from(self.steps.len() + 1).unwrap_or(u32::MAX);
        let owned = |word: &str| Cow::Owned(word.to_owned());
        let (from, to) = (from.map(owned), to.map(owned));
        self.steps.push(PlanStep {
            order,
            subject,
            action: action.into(),
            from,
            to,
            note: None,
            destroys: Vec::new(),
        });
        self.steps.last_mut().expect("a step was pushed a line above")
    }

    fn give_back(&mut self, before: &Host, after: &Host) {
        let (from, to) = (before.status().word(), after.status().word());
        let step = self.step(before, "return to its pool".into(), Some(from), Some(to));
        step.destroys = lost(before);
        step.note = match after.phase {
            Phase::ReturnPending => {
                Some("Its disk may hold an installed system: somebody must boot the discovery image.".into())
            }
            _ => Some("Its agent is told to exit and to register again.".into()),
        };
    }

    /// How a returned host becomes free; says the status it has then.
    fn come_back(&mut self, scene: &Scene<'_>, after: &Host) -> String {
        if after.phase == Phase::ReturnPending {
            let step = self.step(
                after,
                "boot the discovery image, by hand or by BMC".into(),
                None,
                None,
            );
            step.note = Some("Not needed if the agent of the discovery image still runs there.".into());
        }
        self.register_again(scene, after, None);
        let ready = "known-unbound";
        let step = self.step(after, "report its hardware".into(), None, Some(ready));
        step.note = Some("Free for the next cluster.".into());
        ready.to_owned()
    }

    fn register_again(&mut self, scene: &Scene<'_>, after: &Host, cluster: Option<&Arc<Cluster>>) {
        let around = scene.hub.around(cluster.map(AsRef::as_ref), scene.now);
        let event = Event::Registered {
            agent_version: after.agent_version.clone(),
        };
        let arrives = muster_domain::host::lifecycle::next(after, &event, &around);
        let to = arrives.map(|decision| decision.host.status().word()).ok();
        let step = self.step(after, "register again".into(), Some(after.status().word()), to);
        step.note = Some("At the agent's next poll, within about a minute.".into());
    }

    fn forget(&mut self, host: &Host) {
        let step = self.step(host, "delete the host".into(), Some(host.status().word()), None);
        step.destroys = lost(host);
        step.destroys.push("its inventory and other reports".into());
        step.note = Some("Its disk is not touched, and its history stays.".into());
    }
}

fn subject(host: &Host) -> String {
    format!("host/{}", host.name())
}

/// What the borrower put on the host and will not find again.
fn lost(host: &Host) -> Vec<String> {
    let Tenant {
        hostname,
        installer_args,
        ignition_overrides,
        ignition_token,
        ignition_headers,
        machine_config_pool,
        node_labels,
        skip_formatting,
        fencing,
        installation_disk_id,
        // Goes with the id; who chose it is no loss of its own.
        installation_disk_path: _,
        installation_disk_label: _,
        disk_chosen,
    } = &host.tenant;
    let all = [
        (hostname.is_some(), "the hostname given for this cluster"),
        (host.role != Role::AutoAssign, "its role"),
        (!installer_args.is_empty(), "its installer arguments"),
        (!ignition_overrides.is_empty(), "its ignition overrides"),
        (
            !ignition_token.is_empty() || !ignition_headers.is_empty(),
            "its ignition token and headers",
        ),
        (!machine_config_pool.is_empty(), "its machine config pool"),
        (!node_labels.is_empty(), "its node labels"),
        (
            !skip_formatting.is_empty(),
            "its list of disks that are not formatted",
        ),
        (!fencing.is_empty(), "its fencing credentials"),
        (
            *disk_chosen && !installation_disk_id.is_empty(),
            "the choice of its installation disk",
        ),
        (host.progress.stage.is_some(), "the record of its installation"),
    ];
    all.into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, text)| text.to_owned())
        .collect()
}

/// What the host could become in a cluster of this release.
pub fn verdicts_of(hub: &Hub, scene: &Scene<'_>, release: Option<&str>) -> Vec<Verdict> {
    let inventory = scene
        .stored
        .get(&Report::Inventory)
        .and_then(|text| Inventory::parse(text).ok());
    verdicts(inventory.as_ref(), &hub.settings.requirements, release)
}

fn warnings(hub: &Hub, scene: &Scene<'_>, cluster: &Cluster) -> Vec<String> {
    if !scene.stored.contains_key(&Report::Inventory) {
        return Vec::new();
    }
    let release = Some(cluster.openshift_version.as_str()).filter(|release| !release.is_empty());
    let all = verdicts_of(hub, scene, release);
    let wanted = match scene.host.role {
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
