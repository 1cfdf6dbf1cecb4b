//! Writing objects: merge patches of what differs, guarded where two writers could collide.

use super::Context;
use super::object::RawObject;
use super::registry::Cached;
use crate::error::Error;
use crate::key::Key;
use kube::Resource;
use kube::api::{Patch, PatchParams, PostParams};
use serde::Serialize;
use serde_json::{Value, json};

/// One writer of objects: a controller's name as it appears beside the fields it owns.
#[derive(Debug, Clone, Copy)]
pub struct Writer(pub &'static str);

impl Writer {
    pub fn params(self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.0.into()),
            ..PatchParams::default()
        }
    }

    pub fn post(self) -> PostParams {
        PostParams {
            field_manager: Some(self.0.into()),
            ..PostParams::default()
        }
    }
}

impl Context {
    /// Changes spec or metadata of an object as it was read: `Error::Conflict` if it is another one by now.
    pub async fn patch<K: Cached>(&self, writer: Writer, object: &K, patch: &Value) -> Result<(), Error> {
        let key = Key::of(object);
        let mut patch = patch.clone();
        patch["metadata"]["resourceVersion"] = json!(object.meta().resource_version);
        let api = self.cache::<K>().api(&key.namespace);
        let answer = api
            .patch(&key.name, &writer.params(), &Patch::Merge(&patch))
            .await?;
        self.took::<K>(answer);
        Ok(())
    }

    /// Makes an object. If there is one already, the error says so (`is_there_already`).
    pub async fn create<K: Cached + Serialize>(&self, writer: Writer, object: &K) -> Result<K, Error> {
        let mut wire = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        let cache = self.cache::<K>();
        let resource = cache.resource();
        wire["apiVersion"] = json!(resource.api_version);
        wire["kind"] = json!(resource.kind);
        let wire: RawObject = serde_json::from_value(wire).map_err(kube::Error::SerdeError)?;
        let api = cache.api(&Key::of(object).namespace);
        let answer = api.create(&writer.post(), &wire).await?;
        let made = answer.parse().map_err(kube::Error::SerdeError)?;
        cache.took(answer, |change| self.tell(change));
        Ok(made)
    }

    /// Changes the status of an object as it was read: lists in it, such as conditions, are replaced whole.
    /// `Error::Conflict` if the status is another one by now; what else changed meanwhile, often by this very plan,
    /// does not matter.
    pub async fn patch_status<K: Cached + Serialize>(
        &self,
        writer: Writer,
        before: &K,
        status: &Value,
    ) -> Result<(), Error> {
        let key = Key::of(before);
        let cache = self.cache::<K>();
        let now = cache.get(&key);
        // One that is not watched is as it was read.
        let now = now.as_deref().unwrap_or(before);
        let is_same = now.meta().resource_version == before.meta().resource_version;
        if !is_same && status_of(now)? != status_of(before)? {
            return Err(Error::Conflict);
        }
        let version = &now.meta().resource_version;
        let patch = json!({ "metadata": { "resourceVersion": version }, "status": status });
        let api = cache.api(&key.namespace);
        let answer = api
            .patch_status(&key.name, &writer.params(), &Patch::Merge(&patch))
            .await?;
        self.took::<K>(answer);
        Ok(())
    }

    /// Adds labels to an object that many may write; nothing else of it is touched, so nothing is guarded. If it is
    /// gone, whoever named it reconciles again: no watch reports objects without the label.
    pub async fn label<K: Cached>(
        &self,
        writer: Writer,
        key: &Key,
        labels: &std::collections::BTreeMap<String, String>,
    ) -> Result<(), Error> {
        let patch = json!({ "metadata": { "labels": labels } });
        match self.change::<K>(writer, key, &patch).await {
            Err(Error::Gone) => Err(Error::Conflict),
            done => done,
        }
    }

    /// Changes an object whatever it is by now: what is written does not depend on what was read. Not for lists.
    pub async fn change<K: Cached>(&self, writer: Writer, key: &Key, patch: &Value) -> Result<(), Error> {
        let api = self.cache::<K>().api(&key.namespace);
        let answer = api
            .patch(&key.name, &writer.params(), &Patch::Merge(patch))
            .await?;
        self.took::<K>(answer);
        Ok(())
    }

    fn took<K: Cached>(&self, answer: RawObject) {
        let meta = answer.meta();
        let gone = meta.deletion_timestamp.is_some() && meta.finalizers.as_ref().is_none_or(Vec::is_empty);
        // The last finalizer is off: the object is gone, which the watch reports.
        if !gone {
            self.cache::<K>().took_change(answer, |change| self.tell(change));
        }
    }
}

fn status_of(object: &impl Serialize) -> Result<Value, Error> {
    let mut wire = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
    Ok(wire["status"].take())
}

/// The list of finalizers with one more, or without one. Lists are replaced whole; the guard keeps others' changes.
pub fn finalizers(object: &impl Resource, add: Option<&str>, drop: Option<&str>) -> Value {
    let now = object.meta().finalizers.iter().flatten().map(String::as_str);
    let kept = now.filter(|name| Some(*name) != drop && Some(*name) != add);
    json!(kept.chain(add).collect::<Vec<_>>())
}
