//! Secrets and ConfigMaps that objects name: watched when they carry the label, read directly when they do not yet.

use super::Context;
use super::registry::{Cached, Which};
use crate::crd::keys;
use crate::error::Error;
use crate::key::Key;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::ApiResource;
use std::collections::BTreeMap;
use std::fmt;

/// Only those with the label that says so.
impl Cached for Secret {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn which() -> Which {
        Which::Labelled(keys::label::WATCH, Some("true"))
    }
}

/// Only those with the label that says so.
impl Cached for ConfigMap {
    fn resource() -> ApiResource {
        ApiResource::erase::<Self>(&())
    }

    fn which() -> Which {
        Which::Labelled(keys::label::WATCH, Some("true"))
    }
}

/// Something that was read by name.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Found {
    pub values: BTreeMap<String, String>,
    /// Labels it is to get because it is used; empty when it has them.
    pub missing_labels: BTreeMap<String, String>,
}

// Holds secrets: their names are printed, never their values.
impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Found")
            .field("keys", &self.values.keys())
            .field("missing_labels", &self.missing_labels)
            .finish()
    }
}

impl Found {
    pub fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }
}

impl Context {
    pub async fn secret(&self, key: &Key) -> Result<Option<Found>, Error> {
        let secret = self.cache::<Secret>().find(key).await?;
        Ok(secret.map(|secret| found_secret(&secret)))
    }

    pub async fn config_map(&self, key: &Key) -> Result<Option<Found>, Error> {
        let map = self.cache::<ConfigMap>().find(key).await?;
        Ok(map.map(|map| found_map(&map)))
    }
}

/// Values that are not text cannot be meant for here.
fn found_secret(secret: &Secret) -> Found {
    let text = |(key, value): (&String, &k8s_openapi::ByteString)| {
        let value = String::from_utf8(value.0.clone()).ok()?;
        Some((key.clone(), value))
    };
    Found {
        values: secret.data.iter().flatten().filter_map(text).collect(),
        missing_labels: keys::used_labels(secret.labels()),
    }
}

fn found_map(map: &ConfigMap) -> Found {
    Found {
        values: map.data.clone().unwrap_or_default(),
        missing_labels: keys::used_labels(map.labels()),
    }
}
