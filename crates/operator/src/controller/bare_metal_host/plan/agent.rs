//! What the Agent gets from its BareMetalHost.

use super::{Draft, Go, disk, fencing, is_installing};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::keys::{annotation, label, label_value};
use crate::crd::reference::ClusterRef;
use crate::crd::{Agent, BareMetalHost, ClusterDeployment};
use crate::key::Key;
use crate::runtime::reconciler::Then;
use kube::ResourceExt;
use muster_vocabulary::{HostKind, Word};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The operator polls for a cluster in a namespace that it does not watch.
const LATER: Duration = Duration::from_secs(60);

pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    let Some(mut agent) = draft.agent.take() else {
        return Go::Stop;
    };
    if agent.metadata.deletion_timestamp.is_none() {
        copy(&snapshot.host, &mut agent);
        disk::choose(&snapshot.host, &mut agent);
        labels(&snapshot.host, &mut agent, draft);
        node_labels(&snapshot.host, &mut agent);
        cluster(snapshot, &mut agent, draft);
        fencing::steps(snapshot, &mut agent, draft);
    }
    draft.agent = Some(agent);
    Go::On
}

/// What is not written on the BareMetalHost is left as it is.
fn copy(host: &BareMetalHost, agent: &mut Agent) {
    let spec = &mut agent.spec;
    spec.approved = true;
    if let Some(role) = host.annotations().get(annotation::BMAC_ROLE) {
        spec.role = Word::read(role);
    }
    let fields = [
        (annotation::BMAC_HOSTNAME, &mut spec.hostname),
        (
            annotation::BMAC_MACHINE_CONFIG_POOL,
            &mut spec.machine_config_pool,
        ),
        (annotation::BMAC_INSTALLER_ARGS, &mut spec.installer_args),
        (
            annotation::BMAC_IGNITION_OVERRIDES,
            &mut spec.ignition_config_overrides,
        ),
    ];
    for (key, field) in fields {
        if let Some(value) = host.annotations().get(key) {
            *field = value.clone();
        }
    }
}

/// Added and overwritten, never removed.
fn labels(host: &BareMetalHost, agent: &mut Agent, draft: &mut Draft) {
    let mut wanted = prefixed(host, annotation::BMAC_AGENT_LABEL_PREFIX);
    wanted.insert(label::BARE_METAL_HOST.into(), host.name_any());
    for (key, value) in wanted {
        if value.is_empty() || label_value(&value).as_ref() == Some(&value) {
            agent.labels_mut().insert(key, value);
        } else {
            draft.mistake(format!(
                "{value:?} cannot be the value of label {key} of the Agent."
            ));
        }
    }
}

fn prefixed(host: &BareMetalHost, prefix: &str) -> BTreeMap<String, String> {
    let named = host.annotations().iter();
    let named = named.filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value)));
    named
        .filter(|(key, _)| !key.is_empty())
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// Exactly those of the BareMetalHost, and those that the Agent has from its InfraEnv. One that both name is the
/// BareMetalHost's, and is no longer noted as inherited.
fn node_labels(host: &BareMetalHost, agent: &mut Agent) {
    let mut wanted = prefixed(host, annotation::BMAC_NODE_LABEL_PREFIX);
    let now = &agent.spec.node_labels;
    let noted = agent.annotations().get(annotation::INHERITED_NODE_LABELS);
    let noted = noted.cloned().unwrap_or_default();
    let (kept, taken): (Vec<&str>, Vec<&str>) = noted
        .split(',')
        .filter(|key| !key.is_empty())
        .partition(|key| wanted.get(*key).is_none_or(|value| now.get(*key) == Some(value)));
    for key in &kept {
        if let Some(value) = now.get(*key) {
            wanted.insert((*key).to_owned(), value.clone());
        }
    }
    agent.spec.node_labels = wanted;
    if taken.is_empty() {
        return;
    }
    let annotations = agent.annotations_mut();
    match kept.is_empty() {
        true => annotations.remove(annotation::INHERITED_NODE_LABELS),
        false => annotations.insert(annotation::INHERITED_NODE_LABELS.into(), kept.join(",")),
    };
}

/// The cluster that is written on the BareMetalHost, or what is wrong with it.
pub fn cluster_named(host: &BareMetalHost) -> Option<Result<ClusterRef, &str>> {
    let text = host.annotations().get(annotation::BMAC_CLUSTER_REFERENCE)?;
    if text.is_empty() {
        return None;
    }
    let parts: Vec<&str> = text.split('/').collect();
    Some(match parts[..] {
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok(ClusterRef {
            namespace: namespace.into(),
            name: name.into(),
        }),
        _ => Err(text),
    })
}

fn cluster(snapshot: &Snapshot, agent: &mut Agent, draft: &mut Draft) {
    let infra_env = snapshot.infra_env.as_ref();
    let early = infra_env.is_some_and(|infra_env| infra_env.spec.cluster_ref.is_some());
    let wanted = match cluster_named(&snapshot.host) {
        Some(_) if early => {
            return draft.mistake(
                "cluster-reference has no effect: the InfraEnv belongs to a cluster, and so do its hosts.",
            );
        }
        Some(Err(text)) => {
            return draft.mistake(format!(
                "cluster-reference: {text:?} has not the form namespace/name."
            ));
        }
        Some(Ok(_)) if !takes_hosts(snapshot) => {
            // A cluster that goes gives its hosts back; who wrote its name here did not mean to undo that.
            draft.then = draft.then.or(Then::After(LATER));
            return;
        }
        Some(Ok(reference)) => Some(reference),
        None if early || !super::has(&snapshot.host, annotation::BMAC_CLUSTER_REFERENCE) => return,
        None => None,
    };
    let may_leave = || {
        let status = agent.status.as_ref();
        wanted.is_none() && status.is_some_and(|status| status.kind == HostKind::AddToExistingClusterHost)
    };
    if agent.spec.cluster_deployment_name == wanted || (is_installing(agent) && !may_leave()) {
        return;
    }
    agent.spec.cluster_deployment_name = wanted;
}

/// The cluster that an Agent without one gets from its BareMetalHost.
pub fn next_cluster(snapshot: &Snapshot) -> Option<(Key, &Arc<ClusterDeployment>)> {
    let agent = snapshot.agent.as_deref()?;
    let infra_env = snapshot.infra_env.as_ref();
    let early = infra_env.is_some_and(|infra_env| infra_env.spec.cluster_ref.is_some());
    if early || agent.spec.cluster_deployment_name.is_some() || !takes_hosts(snapshot) {
        return None;
    }
    let reference = cluster_named(&snapshot.host)?.ok()?;
    Some((Key::from(&reference), snapshot.deployment.as_ref()?))
}

/// It is there, and is not about to go.
fn takes_hosts(snapshot: &Snapshot) -> bool {
    let Some(deployment) = &snapshot.deployment else {
        return false;
    };
    let install = match (deployment.install_name(), &snapshot.install) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(_), Some(install)) => install.metadata.deletion_timestamp.is_none(),
    };
    install && deployment.metadata.deletion_timestamp.is_none()
}
