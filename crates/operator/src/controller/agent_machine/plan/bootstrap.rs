//! What a machine boots with: its user data says where its ignition is, and with what token it may be fetched.

use super::{Step, TokenSecret};
use crate::controller::agent_machine::snapshot::{Data, Snapshot};
use crate::crd::keys::{data, used_labels};
use crate::crd::reference::FullRef;
use crate::key::Key;
use crate::runtime::reconciler::Then;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an Agent gets to know about its ignition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignition {
    /// The last part of the address.
    pub pool: String,
    /// The Secret with the token.
    pub token: FullRef,
    pub headers: BTreeMap<String, String>,
}

pub enum Boot {
    /// The token is not kept as it should be.
    Do(Vec<Step>),
    /// Nothing, as long as nobody has said what the machine boots with.
    Ready(Option<Ignition>),
    Wait(String, Then),
}

const PREFIX: &str = "agent-";

/// Where the token of user data is kept.
pub fn token_key(source: &Key) -> Key {
    Key::new(&source.namespace, format!("{PREFIX}{}", source.name))
}

/// The user data that a token may have been made of.
pub fn source_of(token: &Key) -> Option<Key> {
    let name = token.name.strip_prefix(PREFIX)?;
    Some(Key::new(&token.namespace, name))
}

pub fn plan(snapshot: &Snapshot) -> Boot {
    let (source, kept) = match &snapshot.data {
        Data::NotNamed => return Boot::Ready(None),
        // The Machine, which is going to name it, is watched.
        Data::Promised => {
            let text = "The Machine's bootstrap provider has not named its boot data yet.";
            return Boot::Wait(text.into(), Then::Rest);
        }
        Data::Absent(key) => {
            let ready = snapshot
                .machine
                .status
                .as_ref()
                .is_some_and(|status| status.ready);
            let then = match ready {
                // It has booted with what it was given.
                true => Then::Rest,
                // Without the label, its arrival goes unseen.
                false => Then::After(snapshot.retry),
            };
            return Boot::Wait(format!("There is no Secret {key} yet."), then);
        }
        Data::Found { secret, token } => (secret, token),
    };
    let key = Key::of(&**source);
    let mut steps = Vec::new();
    let missing = used_labels(source.labels());
    if !missing.is_empty() {
        steps.push(Step::LabelSecret(key.clone(), missing));
    }
    let read = match read(source) {
        Ok(read) => read,
        Err(_) if !steps.is_empty() => return Boot::Do(steps),
        // From now on it is watched.
        Err(what) => return Boot::Wait(format!("The user data in Secret {key} {what}."), Then::Rest),
    };
    let token = token_key(&key);
    steps.extend(keep_token(source, kept.as_ref(), &token, &read.token));
    if !steps.is_empty() {
        return Boot::Do(steps);
    }
    Boot::Ready(Some(Ignition {
        pool: read.pool,
        token: FullRef {
            namespace: token.namespace,
            name: token.name,
        },
        headers: read.headers,
    }))
}

fn keep_token(
    source: &Secret,
    kept: Option<&Arc<Secret>>,
    key: &Key,
    token: &muster_contract::Secret,
) -> Vec<Step> {
    let Some(kept) = kept else {
        return vec![Step::CreateToken(Box::new(TokenSecret {
            key: key.clone(),
            owner: OwnerReference {
                api_version: "v1".into(),
                kind: "Secret".into(),
                name: source.name_any(),
                uid: source.uid().unwrap_or_default(),
                controller: None,
                block_owner_deletion: None,
            },
            token: token.clone(),
        }))];
    };
    // Who made it, owns it: only those who may delete Secrets could change that.
    let missing = used_labels(kept.labels());
    if !missing.is_empty() {
        // The label makes it another version than the one in the snapshot.
        return vec![Step::LabelSecret(key.clone(), missing)];
    }
    match value(kept, data::IGNITION_TOKEN) == Some(&token.0) {
        true => Vec::new(),
        false => vec![Step::ChangeToken(kept.clone(), token.clone())],
    }
}

fn value<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    let bytes = secret.data.as_ref()?.get(key)?;
    std::str::from_utf8(&bytes.0).ok()
}

struct Read {
    pool: String,
    token: muster_contract::Secret,
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct UserData {
    ignition: IgnitionPart,
}

#[derive(Deserialize)]
struct IgnitionPart {
    #[serde(default)]
    config: ConfigPart,
}

#[derive(Default, Deserialize)]
struct ConfigPart {
    #[serde(default)]
    merge: Vec<Source>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    http_headers: Vec<Header>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    #[serde(default)]
    value: Option<String>,
}

/// What is wrong is said without a word of what is in it.
fn read(secret: &Secret) -> Result<Read, &'static str> {
    let text = value(secret, data::CAPI_USER_DATA).ok_or("has no key \"value\"")?;
    let parsed: UserData = serde_json::from_str(text).map_err(|_| "is not an Ignition config")?;
    let [source]: [Source; 1] = parsed
        .ignition
        .config
        .merge
        .try_into()
        .map_err(|_| "does not merge exactly one other Ignition config")?;
    let url = source.source.unwrap_or_default();
    let pool = url.rsplit_once('/').map(|(_, pool)| pool.to_owned());
    let pool = pool
        .filter(|pool| !pool.is_empty())
        .ok_or("has a URL without a path")?;
    let mut headers: BTreeMap<String, String> = BTreeMap::new();
    let mut token = None;
    for Header { name, value } in source.http_headers {
        let value = value.unwrap_or_default();
        if name.eq_ignore_ascii_case("authorization") {
            token = Some(value);
        } else {
            headers.insert(name, value);
        }
    }
    let token = token.ok_or("has no Authorization header")?;
    let token = token.strip_prefix("Bearer ").filter(|token| !token.is_empty());
    Ok(Read {
        pool,
        token: token.ok_or("has an Authorization header without a token")?.into(),
        headers,
    })
}
