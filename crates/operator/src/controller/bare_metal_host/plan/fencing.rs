//! Credentials of the power controller for those who fence the node: a Secret that is named, or a copy that is made.

use super::{Draft, Step, has};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::Agent;
use crate::crd::keys::{annotation, data, used_labels};
use crate::key::Key;
use crate::runtime::reconciler::Then;
use kube::{Resource, ResourceExt};
use muster_contract::Secret;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Goes with the Agent.
#[derive(Debug, Clone, PartialEq)]
pub struct FencingSecret {
    pub key: Key,
    /// There is one already, with other values.
    pub exists: bool,
    pub labels: BTreeMap<String, String>,
    pub owner: Value,
    pub values: BTreeMap<&'static str, Secret>,
}

/// What the name of a copy ends with; before it stands that of the Agent.
const COPY: &str = "-fencing-credentials";

/// What has to be read for a copy.
pub struct Secrets {
    pub credentials: Key,
    pub copy: Key,
}

/// `None` when no copy is wanted.
pub fn secrets(snapshot: &Snapshot) -> Option<Secrets> {
    let wanted = has(&snapshot.host, annotation::BMAC_CREATE_FENCING_SECRET)
        && !has(&snapshot.host, annotation::BMAC_FENCING_SECRET);
    let (agent, bmc) = (snapshot.agent.as_ref()?, snapshot.host.spec.bmc.as_ref()?);
    (wanted && !bmc.credentials_name.is_empty()).then(|| Secrets {
        credentials: Key::new(&snapshot.key.namespace, &bmc.credentials_name),
        copy: Key::new(&snapshot.key.namespace, format!("{}{COPY}", agent.name_any())),
    })
}

/// The Agent whose copy a Secret is, by the names of both.
pub fn agent_of_copy(secret: &Key) -> Option<Key> {
    let agent = secret.name.strip_suffix(COPY)?;
    Some(Key::new(&secret.namespace, agent))
}

pub(super) fn steps(snapshot: &Snapshot, agent: &mut Agent, draft: &mut Draft) {
    if let Some(name) = snapshot.host.annotations().get(annotation::BMAC_FENCING_SECRET) {
        agent.spec.fencing_credentials_secret_ref = name.clone();
        return;
    }
    let (Some(keys), Some(bmc)) = (secrets(snapshot), &snapshot.host.spec.bmc) else {
        return;
    };
    let found = snapshot.credentials.as_ref();
    // Watched from now on, so that what is missing in it and a new password reach the copy.
    let unlabelled = found.filter(|found| !found.missing_labels.is_empty());
    draft.first.extend(
        unlabelled.map(|found| Step::LabelSecret(keys.credentials.clone(), found.missing_labels.clone())),
    );
    let value = |name: &str| found.and_then(|found| found.value(name)).map(str::to_owned);
    let (Some(username), Some(password)) = (value(data::USERNAME), value(data::PASSWORD)) else {
        draft.mistake(format!(
            "Fencing needs username and password in Secret {}.",
            keys.credentials
        ));
        // One that is not there yet comes without the label, so no watch reports it.
        draft.then = draft.then.or(Then::After(snapshot.later()));
        return;
    };
    let verification = match bmc.disable_certificate_verification {
        true => "Disabled",
        false => "Enabled",
    };
    let values = BTreeMap::from([
        (data::ADDRESS, Secret(bmc.address.clone())),
        (data::USERNAME, Secret(username)),
        (data::PASSWORD, Secret(password)),
        (data::CERTIFICATE_VERIFICATION, Secret(verification.into())),
    ]);
    let copy = snapshot.fencing.as_ref();
    let same = copy.is_some_and(|copy| {
        let mut values = values.iter();
        copy.missing_labels.is_empty() && values.all(|(name, value)| copy.value(name) == Some(&value.0))
    });
    agent.spec.fencing_credentials_secret_ref = keys.copy.name.clone();
    if !same {
        draft.first.push(Step::PutSecret(Box::new(FencingSecret {
            key: keys.copy,
            exists: copy.is_some(),
            labels: copy.map_or_else(
                || used_labels(&BTreeMap::new()),
                |copy| copy.missing_labels.clone(),
            ),
            owner: owner(agent),
            values,
        })));
    }
}

fn owner(agent: &Agent) -> Value {
    json!({
        "apiVersion": Agent::api_version(&()), "kind": Agent::kind(&()), "name": agent.name_any(),
        "uid": agent.uid(),
    })
}
