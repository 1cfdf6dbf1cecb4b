//! From derived schemas to the ones that are shipped: as others publish them, with the rules that are checked on the server.

use super::rules::Rule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use muster_vocabulary::Words;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The words of a set, as a schema lists them.
pub fn words_of<T: Words>() -> Vec<&'static str> {
    T::ALL.iter().map(|word| word.word()).collect()
}

/// The schema of an object of which nothing is known.
pub struct Anything;

impl JsonSchema for Anything {
    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// A definition on its way from the derive to the file.
pub struct Draft(Value);

impl Draft {
    pub fn of(crd: CustomResourceDefinition) -> Self {
        let mut draft = Self(serde_json::to_value(crd).expect("definitions are plain data"));
        draft.each_schema(&mut tidy);
        draft
    }

    pub fn with_rules(mut self, rules: &[Rule]) -> Self {
        let kind = self.0["spec"]["names"]["kind"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        for rule in rules.iter().filter(|rule| rule.kind == kind) {
            for version in self.versions() {
                attach(&mut version["schema"]["openAPIV3Schema"], rule);
            }
        }
        self
    }

    /// Fields that are not known here are kept: the kind belongs to somebody else.
    pub fn open(mut self) -> Self {
        self.each_schema(&mut |schema| {
            if schema.get("type").is_some_and(|kind| kind == "object")
                && !schema.contains_key("additionalProperties")
            {
                schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
            }
        });
        // The root keeps what is unknown by itself, except beside apiVersion, kind and metadata.
        for version in self.versions() {
            if let Some(root) = version["schema"]["openAPIV3Schema"].as_object_mut() {
                root.remove("x-kubernetes-preserve-unknown-fields");
            }
        }
        self
    }

    /// Serves the same schema under an older name, too.
    pub fn also_as(mut self, older: &str) -> Self {
        if let Some(versions) = self.0["spec"]["versions"].as_array_mut() {
            let mut twin = versions[0].clone();
            twin["name"] = older.into();
            twin["storage"] = false.into();
            twin["deprecated"] = true.into();
            twin["deprecationWarning"] = format!(
                "{older} is deprecated; use {}",
                versions[0]["name"].as_str().unwrap_or_default()
            )
            .into();
            versions.insert(0, twin);
        }
        self
    }

    /// An object may leave out its spec when nothing in it has to be given.
    pub fn with_optional_spec(mut self) -> Self {
        for version in self.versions() {
            let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            if spec.get("required").is_none() {
                spec["default"] = json!({});
            }
        }
        self
    }

    pub fn labelled(mut self, labels: &[(&str, &str)]) -> Self {
        let labels: Map<_, _> = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        self.0["metadata"]["labels"] = labels.into();
        self
    }

    pub fn finish(self) -> CustomResourceDefinition {
        serde_json::from_value(self.0).expect("still a definition")
    }

    fn versions(&mut self) -> impl Iterator<Item = &mut Value> {
        self.0["spec"]["versions"].as_array_mut().into_iter().flatten()
    }

    fn each_schema(&mut self, change: &mut impl FnMut(&mut Map<String, Value>)) {
        for version in self.versions() {
            walk(&mut version["schema"]["openAPIV3Schema"], change);
        }
    }
}

/// Calls `change` for a schema and all schemas inside it.
fn walk(schema: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    change(schema);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties
            .values_mut()
            .for_each(|property| walk(property, change));
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner) {
            walk(inner, change);
        }
    }
}

/// What the derive adds for Rust's sake and others do not have.
fn tidy(schema: &mut Map<String, Value>) {
    // A null then counts as absent and is dropped by the server, as clients in Go expect.
    schema.remove("nullable");
    // A default of a whole object would appear in statuses nobody has written yet.
    if schema
        .get("default")
        .is_some_and(|value| value.is_object() || value.is_array() || value.is_null())
    {
        schema.remove("default");
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_selector =
        properties.is_some_and(|all| all.contains_key("matchExpressions") && all.contains_key("matchLabels"));
    if is_selector {
        schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
}

/// Puts a rule at its place; a place that does not exist is a mistake of the table of rules.
fn attach(root: &mut Value, rule: &Rule) {
    let mut place = root;
    for name in rule.path {
        place = &mut place["properties"][*name];
    }
    let schema = place.as_object_mut().expect("rules name fields that exist");
    let mut entry = json!({ "rule": rule.rule, "message": rule.message });
    if rule.on_create {
        entry["optionalOldSelf"] = true.into();
    }
    let rules = schema
        .entry("x-kubernetes-validations")
        .or_insert_with(|| json!([]));
    rules.as_array_mut().expect("made above").push(entry);
}
