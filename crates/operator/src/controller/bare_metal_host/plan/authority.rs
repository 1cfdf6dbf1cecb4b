//! The authority behind the ignition of a running cluster: a host that joins it must trust the server that it fetches its
//! ignition from.
//!
//! It is written into the ignition overrides of the BareMetalHost, beside what people wrote there, and taken out again
//! when the host is back in the pool.

use super::{Draft, Go, agent};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::keys::annotation;
use crate::key::Key;
use crate::runtime::spoke::NoSpoke;
use crate::runtime::trust;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt;
use muster_domain::render::merge;
use muster_vocabulary::{HostStatus, Word};
use serde_json::{Value, json};

/// Where clusters keep it, in this order: namespace and name of a ConfigMap, and the key in it. The last two are those of
/// hosted clusters.
pub const PLACES: [(&str, &str, &str); 4] = [
    (
        "openshift-machine-config-operator",
        "machine-config-server-ca",
        "ca-bundle.crt",
    ),
    ("kube-system", "root-ca", "ca.crt"),
    ("openshift-config", "kube-root-ca", "ca.crt"),
    ("openshift-config", "kube-root-ca.crt", "ca.crt"),
];

/// What was found in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The ConfigMap.
    pub place: Key,
    /// Its certificates; absent when it has none under the key.
    pub bundle: Option<String>,
}

/// The cluster to ask, while the host waits to be installed into it: the Agent's, else the one it is about to get.
pub fn question(snapshot: &Snapshot) -> Option<Key> {
    let (cluster, deployment) = match &snapshot.tenant {
        Some(tenant) => (tenant.key.clone(), &tenant.deployment),
        None => agent::next_cluster(snapshot)?,
    };
    let agent = snapshot.agent.as_deref()?;
    let asks = snapshot.is_managed_here() && deployment.spec.installed && waits(&agent.state());
    asks.then_some(cluster)
}

/// Later it has fetched its ignition.
fn waits(state: &Word<HostStatus>) -> bool {
    state.is(|state| state.precedes_installation() || state.is_unbound())
}

pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    let wanted = match &snapshot.authority {
        None if is_back(snapshot) => None,
        None => return Go::On,
        Some(answer) => match source(answer) {
            Ok(source) => Some(source),
            Err(why) => {
                let cluster = question(snapshot).map(|cluster| cluster.to_string());
                draft.failure(
                    snapshot,
                    format!(
                        "The operator cannot read the certificate authority of the ignition server of cluster {}: \
                         {why}",
                        cluster.unwrap_or_default()
                    ),
                );
                return Go::On;
            }
        },
    };
    let noted = draft.host.annotations().get(annotation::BMAC_AUTHORITY).cloned();
    let before = overrides(draft);
    if noted == wanted
        && wanted
            .as_ref()
            .is_none_or(|source| before.contains(source.as_str()))
    {
        return Go::On;
    }
    let theirs = match &noted {
        Some(source) => without(&before, source),
        None => Ok(before.clone()),
    };
    let both = theirs.and_then(|theirs| match &wanted {
        Some(source) if !theirs.contains(source.as_str()) => with(&theirs, source).map(Some),
        // Somebody wrote it there before.
        Some(_) if noted.is_none() => Ok(None),
        _ => Ok(Some(theirs)),
    });
    match both {
        Ok(Some(text)) => write(draft, wanted, &before, text),
        Ok(None) => return Go::On,
        Err(why) => {
            draft.mistake(format!(
                "ignition-config-overrides: the operator cannot add the certificate authority of the cluster's \
                 ignition server: {why}."
            ));
            return Go::On;
        }
    }
    Go::Stop
}

/// In the pool, and wanted nowhere.
fn is_back(snapshot: &Snapshot) -> bool {
    let free = |agent: &crate::crd::Agent| {
        agent.spec.cluster_deployment_name.is_none() && agent.state().is(HostStatus::is_unbound)
    };
    snapshot.agent.as_deref().is_some_and(free)
}

/// As a file that is its own address.
fn source(answer: &Result<Option<Found>, NoSpoke>) -> Result<String, String> {
    let found = answer.as_ref().map_err(ToString::to_string)?;
    let found = found.as_ref().ok_or_else(|| {
        let places = PLACES.map(|(namespace, name, _)| format!("{namespace}/{name}"));
        format!("the cluster has none of the ConfigMaps {}", places.join(", "))
    })?;
    let bundle = found.bundle.as_deref().unwrap_or_default().trim();
    if !trust::is_bundle(bundle.as_bytes()) {
        return Err(format!(
            "ConfigMap {} does not contain a list of certificates",
            found.place
        ));
    }
    Ok(format!(
        "data:text/plain;charset=utf-8;base64,{}",
        BASE64_STANDARD.encode(bundle)
    ))
}

/// Those of the BareMetalHost; when it has none, those of the Agent, which would be overwritten else.
fn overrides(draft: &Draft) -> String {
    let own = draft.host.annotations().get(annotation::BMAC_IGNITION_OVERRIDES);
    let agent = draft.agent.as_ref();
    own.or(agent.map(|agent| &agent.spec.ignition_config_overrides))
        .cloned()
        .unwrap_or_default()
}

fn write(draft: &mut Draft, noted: Option<String>, before: &str, text: String) {
    let annotations = draft.host.annotations_mut();
    match noted {
        Some(source) => annotations.insert(annotation::BMAC_AUTHORITY.into(), source),
        None => annotations.remove(annotation::BMAC_AUTHORITY),
    };
    if !text.is_empty() {
        // The Agent gets it together with its cluster: once its host is being installed nobody can add it.
        let agent = draft.agent.as_mut();
        if let Some(agent) = agent.filter(|agent| agent.metadata.deletion_timestamp.is_none()) {
            agent.spec.ignition_config_overrides = text.clone();
        }
        annotations.insert(annotation::BMAC_IGNITION_OVERRIDES.into(), text);
        return;
    }
    annotations.remove(annotation::BMAC_IGNITION_OVERRIDES);
    // An Agent keeps what is not written on its BareMetalHost, and this was never its own.
    let copy = draft.agent.as_mut();
    if let Some(agent) = copy.filter(|agent| agent.spec.ignition_config_overrides == before) {
        agent.spec.ignition_config_overrides.clear();
    }
}

/// What people wrote wins, and nothing of it is lost.
fn with(text: &str, source: &str) -> Result<String, String> {
    let mut config = json!({ "ignition": { "version": "3.1.0",
        "security": { "tls": { "certificateAuthorities": [{ "source": source }] } } } });
    if !text.is_empty() {
        merge::merge(&mut config, parse(text)?);
    }
    let kept = authorities(&mut config).is_some_and(|all| all.iter().any(|one| one["source"] == source));
    match kept {
        true => Ok(config.to_string()),
        false => Err("ignition.security.tls.certificateAuthorities is not a list".into()),
    }
}

/// Empty when nothing else was in it.
fn without(text: &str, source: &str) -> Result<String, String> {
    if !text.contains(source) {
        return Ok(text.to_owned());
    }
    let mut config = parse(text)?;
    if let Some(all) = authorities(&mut config) {
        all.retain(|one| one["source"] != source);
    }
    for path in [
        "/ignition/security/tls/certificateAuthorities",
        "/ignition/security/tls",
        "/ignition/security",
    ] {
        prune(&mut config, path);
    }
    let rest = config.as_object().map(|config| config.len());
    let only_version = rest == Some(1)
        && config["ignition"]
            .as_object()
            .is_some_and(|ignition| ignition.keys().all(|key| key == "version"));
    Ok(match only_version {
        true => String::new(),
        false => config.to_string(),
    })
}

fn authorities(config: &mut Value) -> Option<&mut Vec<Value>> {
    config
        .pointer_mut("/ignition/security/tls/certificateAuthorities")?
        .as_array_mut()
}

/// Removes what became empty.
fn prune(config: &mut Value, path: &str) {
    let empty = match config.pointer(path) {
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        _ => false,
    };
    let Some((parent, name)) = path.rsplit_once('/').filter(|_| empty) else {
        return;
    };
    if let Some(parent) = config.pointer_mut(parent).and_then(Value::as_object_mut) {
        parent.remove(name);
    }
}

fn parse(text: &str) -> Result<Value, String> {
    let config: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        format!("it is not JSON (line {line}, column {column})")
    })?;
    let version = config["ignition"]["version"].as_str().unwrap_or_default();
    match version.starts_with("3.") {
        true => Ok(config),
        false => Err("it is not an Ignition config of version 3".into()),
    }
}
