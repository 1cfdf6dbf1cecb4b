//! An object as it came over the wire. Only its metadata is read at once: most of what a watch brings is known already
//! from the answer to a write, and reading a whole object costs more than everything else that is done with it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{ApiResource, ObjectMeta};
use kube::core::{DynamicResourceScope, Resource};
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone)]
pub struct RawObject {
    /// As much of it as a cache needs.
    metadata: ObjectMeta,
    /// All of it but the list of who wrote what, which is about as long and of no use here.
    json: Box<str>,
}

impl RawObject {
    pub fn parse<K: DeserializeOwned>(&self) -> serde_json::Result<K> {
        serde_json::from_str(&self.json)
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata<'a> {
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let Head { metadata } = serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        let shorter = metadata
            .managed_fields
            .map(|fields| without(json.get(), fields.get()));
        let Metadata {
            name,
            namespace,
            resource_version,
            labels,
            deletion_timestamp,
            finalizers,
            managed_fields: _,
        } = metadata;
        let metadata = ObjectMeta {
            name,
            namespace,
            resource_version,
            labels,
            deletion_timestamp,
            finalizers,
            ..ObjectMeta::default()
        };
        let json = shorter.unwrap_or_else(|| json.into());
        Ok(Self { metadata, json })
    }
}

/// The whole with an empty value in place of a part of it.
fn without(whole: &str, part: &str) -> Box<str> {
    let begin = part.as_ptr().addr() - whole.as_ptr().addr();
    let (before, after) = (&whole[..begin], &whole[begin + part.len()..]);
    format!("{before}null{after}").into()
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json: &RawValue = serde_json::from_str(&self.json).map_err(<S::Error as ser::Error>::custom)?;
        json.serialize(serializer)
    }
}

// Holds secrets: only its name is printed.
impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject")
            .field("name", &self.metadata.name)
            .field("namespace", &self.metadata.namespace)
            .finish_non_exhaustive()
    }
}

impl Resource for RawObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn api_version(resource: &ApiResource) -> Cow<'_, str> {
        resource.api_version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Secret;
    use kube::ResourceExt;
    use kube::core::ObjectList;
    use kube::core::watch::WatchEvent;
    use serde_json::json;

    fn secret() -> serde_json::Value {
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": {
            "name": "pull", "namespace": "pool", "resourceVersion": "7", "labels": { "a": "ä" },
            "managedFields": [{ "manager": "kubectl", "fieldsV1": { "f:data": { "\"": {} } } }],
            "annotations": { "b": "c" } }, "data": { "token": "c2VjcmV0" } })
    }

    #[test]
    fn an_object_is_read_whole_but_for_who_wrote_what() {
        let raw: RawObject = serde_json::from_str(&secret().to_string()).unwrap();
        assert_eq!(raw.resource_version().as_deref(), Some("7"));
        let whole: Secret = raw.parse().unwrap();
        assert_eq!(whole.labels()["a"], "ä");
        assert_eq!(whole.annotations()["b"], "c");
        assert!(whole.metadata.managed_fields.is_none());
        assert_eq!(whole.data.unwrap()["token"].0, b"secret");
    }

    #[test]
    fn lists_and_watches_bring_such_objects() {
        let list = json!({ "apiVersion": "v1", "kind": "SecretList", "metadata": { "resourceVersion": "9" },
            "items": [secret(), { "metadata": { "name": "other" } }] });
        let list: ObjectList<RawObject> = serde_json::from_str(&list.to_string()).unwrap();
        let names: Vec<_> = list.items.iter().map(|one| one.name_any()).collect();
        assert_eq!(names, ["pull", "other"]);
        let line = format!(r#"{{"type":"MODIFIED","object":{}}}"#, secret());
        let event: WatchEvent<RawObject> = serde_json::from_str(&line).unwrap();
        assert!(matches!(event, WatchEvent::Modified(one) if one.name_any() == "pull"));
    }

    #[test]
    fn what_is_printed_of_an_object_is_its_name() {
        let raw: RawObject = serde_json::from_value(secret()).unwrap();
        let printed = format!("{raw:?}");
        assert!(
            printed.contains("pull") && !printed.contains("c2VjcmV0"),
            "{printed}"
        );
    }

    #[test]
    fn what_was_read_is_sent_as_it_was() {
        let text = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"b":"Yw=="}}"#;
        let raw: RawObject = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&raw).unwrap(), text);
    }
}
