//! What is to be done about a cluster. Pure: the snapshot in, steps out.

mod adoption;
mod condition;
mod credential;
mod desired;
mod leave;
pub mod manifest;
mod network;
pub mod stage;
mod status;
mod tally;
#[cfg(test)]
mod tests;
pub mod worker_pool;

use super::snapshot::{Failure, Row, Snapshot};
use crate::crd::agent_cluster_install::{condition as type_, reason};
use crate::crd::condition::{Finding, find_install};
use crate::crd::keys::{annotation, finalizer, has_finalizer};
use crate::crd::{AgentClusterInstall, ClusterDeployment};
use crate::error::Refusal;
use crate::key::Key;
use crate::runtime::event::News;
use crate::runtime::reconciler::{self, Then};
use crate::runtime::secret::Found;
pub use credential::NewSecret;
use kube::ResourceExt;
use muster_contract::v2::cluster_request::{CreateCluster, ImportCluster, UpdateCluster};
use muster_contract::v2::manifest::ManifestFolder;
use muster_contract::v2::validation::SetIgnoredValidations;
use muster_vocabulary::PreparationStatus;
use serde_json::Value;
use stage::{Kind, Stage};
use std::collections::BTreeMap;
use std::time::Duration;
use tally::Tally;
use uuid::Uuid;

pub type Plan = reconciler::Plan<Step>;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Metadata of the ClusterDeployment, and the two fields that somebody has to fill in where there is no Hive.
    PatchDeployment(Value),
    /// Metadata of the AgentClusterInstall, and the credentials in its spec.
    PatchInstall(Value),
    /// Status of the AgentClusterInstall.
    Status(Value),
    DeleteInstall,
    LabelSecret(Key, BTreeMap<String, String>),
    LabelConfigMap(Key, BTreeMap<String, String>),
    PutSecret(Box<NewSecret>),
    Tell(News),
    UnbindAgent(Key),
    DeleteAgent(Key),
    Create(Box<CreateCluster>),
    Import(Box<ImportCluster>),
    Update(Box<UpdateCluster>),
    Override(String),
    Ignore(SetIgnoredValidations),
    PutManifest(String, String),
    DeleteManifest(ManifestFolder, String),
    /// From now on the hub is known to have the manifests.
    ManifestsAreDone,
    Install,
    InstallHost {
        infra_env: Uuid,
        host: Uuid,
    },
    /// The installed cluster takes on more hosts.
    AddHosts,
    Cancel,
    DeleteCluster,
    /// Whether the cluster's own machinery may reboot workers.
    PausePool(bool),
}

/// Why the hub cannot be given what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidSpec {
    /// Only a change of the objects helps.
    Input(String),
    /// Only a change of something they name helps, which may not be watched yet.
    Content(String),
    /// Something that is not watched may help.
    Missing(String),
}

/// Failures of the hub, and things that are not there yet, go by.
const SOON: Duration = Duration::from_secs(10);
/// Manifests that are wrong stay wrong for longer.
const LATER: Duration = Duration::from_secs(60);
/// A preparation that failed is not begun again at once.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

pub fn plan(snapshot: &Snapshot) -> Plan {
    match (&snapshot.deployment, &snapshot.install) {
        (Some(deployment), Some(install)) => both(snapshot, deployment, install),
        (Some(deployment), None) => alone(snapshot, deployment),
        (None, Some(install)) => orphan(snapshot, install),
        (None, None) => Plan::default(),
    }
}

fn both(snapshot: &Snapshot, deployment: &ClusterDeployment, install: &AgentClusterInstall) -> Plan {
    if install.metadata.deletion_timestamp.is_some() {
        return leave::with_install(snapshot, install);
    }
    if deployment.metadata.deletion_timestamp.is_some() {
        // The ClusterDeployment stays until the other is really gone, which is watched.
        return Plan::of(vec![Step::DeleteInstall], Then::Rest);
    }
    if let Some(rival) = &snapshot.rival {
        let text = format!(
            "ClusterDeployment {rival} has the same id; remove the annotation {} here",
            annotation::CLUSTER_ID
        );
        return flawed(snapshot, install, &InvalidSpec::Input(text));
    }
    if let Some(step) = adoption::step(snapshot, deployment, install) {
        return Plan::of(vec![step], Then::Again);
    }
    if let Some(why) = &snapshot.hub_error {
        return blind(snapshot, install, why);
    }
    if let Some(failure) = &snapshot.failure {
        return set_back(snapshot, install, failure);
    }
    match wanted(snapshot, install) {
        Ok(plan) => plan,
        Err(mistake) => {
            // What is wrong is mostly in what is named: the operator notices a mended one once it watches it.
            let mut steps = labels(snapshot, install);
            let Plan { steps: shown, then } = flawed(snapshot, install, &mistake);
            steps.extend(shown);
            Plan::of(steps, then)
        }
    }
}

/// No object says how to install the cluster. This controller ignores that, unless there was an installation.
fn alone(snapshot: &Snapshot, deployment: &ClusterDeployment) -> Plan {
    let leaving = deployment.metadata.deletion_timestamp.is_some();
    if leaving && has_finalizer(deployment, finalizer::CLUSTER_DEPLOYMENT) {
        return leave::with_deployment(snapshot, deployment);
    }
    Plan::default()
}

/// The ClusterDeployment is not there yet, or not any more, or has to do with another installation.
fn orphan(snapshot: &Snapshot, install: &AgentClusterInstall) -> Plan {
    if install.metadata.deletion_timestamp.is_some() {
        return leave::with_install(snapshot, install);
    }
    let name = &snapshot.key.name;
    let (text, why) = match snapshot.is_stray {
        true => (
            format!(
                "ClusterDeployment {name:?} does not name this AgentClusterInstall; set its spec.clusterInstallRef."
            ),
            "No ClusterDeployment names this AgentClusterInstall.",
        ),
        false => (
            format!("There is no ClusterDeployment {name:?} here; create it."),
            "There is no ClusterDeployment.",
        ),
    };
    let synced = Finding::new(type_::SPEC_SYNCED, false, reason::INPUT_ERROR, text);
    Plan::of(status::without(snapshot, install, synced, why), Then::Rest)
}

/// First the hub gets what is wanted, then what follows from the state of the cluster is done; a snapshot in which nothing
/// of that is left is shown.
fn wanted(snapshot: &Snapshot, install: &AgentClusterInstall) -> Result<Plan, InvalidSpec> {
    let desired = desired::desired(snapshot, install)?;
    let mut steps = labels(snapshot, install);
    let Some(row) = &snapshot.row else {
        steps.push(match is_installed(snapshot) {
            true => Step::Import(Box::new(desired::import(snapshot, &desired)?)),
            false => Step::Create(Box::new(desired::create(snapshot, &desired)?)),
        });
        return Ok(Plan::of(steps, Then::Again));
    };
    steps.extend(settings(snapshot, install, row, &desired)?);
    if steps.is_empty() {
        steps.extend(credential::steps(snapshot, install, row));
    }
    if steps.is_empty() {
        steps.extend(verbs(snapshot, install, row));
    }
    if !steps.is_empty() {
        return Ok(Plan::of(steps, Then::Again));
    }
    let synced = Finding::new(type_::SPEC_SYNCED, true, reason::SYNC_OK, reason::SYNC_OK);
    let then = wait_after_failure(snapshot, install, row).map_or(Then::Rest, Then::After);
    let then = then.or(worker_pool::then(snapshot));
    let mut steps = status::of_cluster(snapshot, install, synced);
    steps.extend(worker_pool::complaint(snapshot));
    Ok(Plan::of(steps, then))
}

/// Settings that the hub takes in the state the cluster is in.
fn settings(
    snapshot: &Snapshot,
    install: &AgentClusterInstall,
    row: &Row,
    desired: &desired::DesiredCluster,
) -> Result<Vec<Step>, InvalidSpec> {
    if !row.stage().takes_settings() {
        return Ok(Vec::new());
    }
    if let Some(update) = desired::difference(row, desired, desired::Known::of(snapshot)) {
        return Ok(vec![Step::Update(Box::new(update))]);
    }
    match row.kind() {
        Kind::New => {}
        // How it was installed is history, but its new hosts are checked, too.
        Kind::AddsHosts => return Ok(ignored(install, row).into_iter().collect()),
        Kind::Other => return Ok(Vec::new()),
    }
    let mut steps = Vec::new();
    let overrides = manifest::overrides(snapshot, install)?;
    if overrides != row.view.install_config_overrides {
        steps.push(Step::Override(overrides));
    }
    steps.extend(ignored(install, row));
    steps.extend(manifest::steps(row, &manifest::wanted(snapshot, install)?));
    Ok(steps)
}

/// Checks that somebody decided to live with.
fn ignored(install: &AgentClusterInstall, row: &Row) -> Option<Step> {
    let of_cluster = manifest::ignored(install, annotation::IGNORED_CLUSTER_VALIDATIONS);
    let of_host = manifest::ignored(install, annotation::IGNORED_HOST_VALIDATIONS);
    let now = (
        &row.view.ignored_cluster_validations,
        &row.view.ignored_host_validations,
    );
    (now != (&of_cluster, &of_host)).then(|| {
        Step::Ignore(SetIgnoredValidations {
            cluster_validation_ids: Some(of_cluster),
            host_validation_ids: Some(of_host),
        })
    })
}

/// What is started because the time has come.
fn verbs(snapshot: &Snapshot, install: &AgentClusterInstall, row: &Row) -> Vec<Step> {
    match (row.kind(), row.stage()) {
        (Kind::New, Stage::Ready) if starts(snapshot, install, row) => vec![Step::Install],
        (Kind::New, Stage::Installed) => vec![Step::AddHosts],
        (Kind::AddsHosts, Stage::AddingHosts) => {
            let mut steps = worker_pool::steps(snapshot, install);
            steps.extend(more_hosts(row));
            steps
        }
        (Kind::New | Kind::AddsHosts | Kind::Other, _) => Vec::new(),
    }
}

fn starts(snapshot: &Snapshot, install: &AgentClusterInstall, row: &Row) -> bool {
    let needs = &install.spec.provision_requirements;
    condition::can_start(needs, &Tally::of(snapshot, row))
        && !is_held(snapshot)
        && wait_after_failure(snapshot, install, row).is_none()
}

/// How long an installation that could start waits, because the last one failed before it began.
fn wait_after_failure(snapshot: &Snapshot, install: &AgentClusterInstall, row: &Row) -> Option<Duration> {
    let failed = row.view.last_installation_preparation.status == PreparationStatus::Failed;
    let since = row
        .view
        .status_updated_at
        .0
        .filter(|_| failed && row.stage() == Stage::Ready)?;
    let gone_by = Duration::try_from(snapshot.now.duration_since(since)).unwrap_or_default();
    let can_start = condition::can_start(&install.spec.provision_requirements, &Tally::of(snapshot, row));
    AFTER_FAILURE
        .checked_sub(gone_by)
        .filter(|left| can_start && !left.is_zero())
}

/// Hosts that join the running cluster, each for itself.
fn more_hosts(row: &Row) -> Vec<Step> {
    if (row.kind(), row.stage()) != (Kind::AddsHosts, Stage::AddingHosts) {
        return Vec::new();
    }
    let waits = |member: &&super::snapshot::Member| {
        tally::is_known(member)
            && member
                .agent
                .as_ref()
                .is_some_and(|agent| tally::is_approved(agent))
    };
    let install = |member: &super::snapshot::Member| Step::InstallHost {
        infra_env: member.host.infra_env_id,
        host: member.host.id,
    };
    row.hosts.iter().filter(waits).map(install).collect()
}

/// What is used is watched from now on, and part of backups.
fn labels(snapshot: &Snapshot, install: &AgentClusterInstall) -> Vec<Step> {
    let spec = &install.spec;
    let here = |name: &str| Key::new(&snapshot.key.namespace, name);
    let pull_secret = snapshot
        .deployment
        .as_ref()
        .and_then(|deployment| deployment.spec.pull_secret_ref.as_ref());
    let ca = spec
        .ignition_endpoint
        .as_ref()
        .and_then(|endpoint| endpoint.ca_certificate_reference.as_ref());
    let secrets = [
        (
            pull_secret.map(|reference| here(&reference.name)),
            &snapshot.pull_secret,
        ),
        (ca.map(Key::from), &snapshot.ignition_ca),
    ];
    let mirrors = (
        spec.mirror_registry_ref.as_ref().map(Key::from),
        snapshot.mirrors.as_ref(),
    );
    let manifests = snapshot
        .config_maps
        .iter()
        .map(|(name, found)| (Some(here(name)), Some(found)));
    let missing = |key: Option<Key>, found: Option<&Found>| {
        let labels = found
            .map(|found| found.missing_labels.clone())
            .unwrap_or_default();
        key.filter(|_| !labels.is_empty()).map(|key| (key, labels))
    };
    let secrets = secrets
        .into_iter()
        .filter_map(|(key, found)| missing(key, found.as_ref()));
    let maps = manifests
        .chain([mirrors])
        .filter_map(|(key, found)| missing(key, found));
    let secrets = secrets.map(|(key, labels)| Step::LabelSecret(key, labels));
    secrets
        .chain(maps.map(|(key, labels)| Step::LabelConfigMap(key, labels)))
        .collect()
}

/// The objects, or something they name, are not in order.
fn flawed(snapshot: &Snapshot, install: &AgentClusterInstall, mistake: &InvalidSpec) -> Plan {
    let (reason, text, then) = match mistake {
        InvalidSpec::Input(text) => (reason::INPUT_ERROR, text, Then::Rest),
        InvalidSpec::Content(text) => (reason::INPUT_ERROR, text, Then::After(SOON)),
        InvalidSpec::Missing(text) => (reason::BACKEND_ERROR, text, Then::After(SOON)),
    };
    let synced = Finding::new(type_::SPEC_SYNCED, false, reason, text);
    // A cluster that is unseen is not absent.
    let steps = match snapshot.hub_error {
        None => status::of_cluster(snapshot, install, synced),
        Some(_) => status::only(snapshot, install, synced),
    };
    Plan::of(steps, then)
}

/// The hub does not answer. That does not make a valid object wrong.
fn blind(snapshot: &Snapshot, install: &AgentClusterInstall, why: &str) -> Plan {
    let conditions = install
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let synced =
        find_install(conditions, type_::SPEC_SYNCED).is_some_and(|condition| condition.status == "True");
    let finding = Finding::new(type_::SPEC_SYNCED, false, reason::BACKEND_ERROR, why);
    let steps = if synced {
        Vec::new()
    } else {
        status::only(snapshot, install, finding)
    };
    Plan::of(steps, Then::After(SOON))
}

/// The hub did not do what it was asked.
fn set_back(snapshot: &Snapshot, install: &AgentClusterInstall, failure: &Failure) -> Plan {
    let show = |failure: &Refusal, then: Option<Duration>| {
        let (mistake, usual) = match failure {
            Refusal::Internal(text) => (InvalidSpec::Missing(text.clone()), Then::After(SOON)),
            Refusal::Conflict(text) | Refusal::Input(text) => (InvalidSpec::Input(text.clone()), Then::Rest),
        };
        Plan {
            then: then.map_or(usual, Then::After),
            ..flawed(snapshot, install, &mistake)
        }
    };
    let in_order = || {
        let synced = Finding::new(type_::SPEC_SYNCED, true, reason::SYNC_OK, reason::SYNC_OK);
        status::of_cluster(snapshot, install, synced)
    };
    match failure {
        Failure::Hub(failure) => show(failure, None),
        Failure::Manifests(failure) => show(failure, Some(LATER)),
        Failure::NotNow(_) => Plan::of(in_order(), Then::After(SOON)),
        Failure::WorkerPool { pause, why } => {
            // No host waits for the pause: it has to be there when the first of them is a node, which is much later.
            let mut steps: Vec<Step> = snapshot.row.iter().flat_map(more_hosts).collect();
            steps.extend(in_order());
            steps.push(Step::Tell(worker_pool::news(*pause, why)));
            Plan::of(steps, Then::After(worker_pool::again(snapshot)))
        }
    }
}

/// By the word of Hive, by our own, or by credentials that only an installed cluster has.
fn is_installed(snapshot: &Snapshot) -> bool {
    let deployment = snapshot
        .deployment
        .as_ref()
        .is_some_and(|deployment| deployment.spec.installed);
    let status = snapshot
        .install
        .as_ref()
        .and_then(|install| install.status.as_ref());
    let conditions = status
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    let completed = find_install(conditions, type_::COMPLETED);
    let completed = completed
        .is_some_and(|condition| condition.status == "True" && condition.reason == reason::COMPLETED);
    let password = snapshot
        .metadata()
        .is_some_and(|metadata| metadata.admin_password_secret_ref.is_some());
    deployment || completed || password
}

/// Somebody does not want the installation to start yet.
fn is_held(snapshot: &Snapshot) -> bool {
    let install = snapshot
        .install
        .as_ref()
        .is_some_and(|install| install.spec.hold_installation);
    let pause = snapshot
        .deployment
        .as_ref()
        .and_then(|deployment| deployment.annotations().get(annotation::HIVE_PAUSE));
    install || pause.is_some_and(|pause| matches!(pause.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"))
}
