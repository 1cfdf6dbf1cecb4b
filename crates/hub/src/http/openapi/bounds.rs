//! Writes into the description how large each list and text of a request may be, from the table that is enforced.

use muster_domain::input::bounds;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const SCHEMAS: &str = "#/components/schemas/";

/// Everything that a JSON body of a request can hold.
pub fn write(paths: &mut Map<String, Value>, schemas: &mut Map<String, Value>) {
    let mut waiting = Vec::new();
    let items = paths.values_mut().filter_map(Value::as_object_mut);
    for operation in items.flat_map(Map::values_mut) {
        let schema = operation.pointer_mut("/requestBody/content/application~1json/schema");
        schema
            .into_iter()
            .for_each(|schema| bound("", schema, &mut waiting));
    }
    let mut done = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        if let Some(schema) = schemas.get_mut(&name)
            && done.insert(name)
        {
            bound("", schema, &mut waiting);
        }
    }
}

/// `name` is that of the field which has this schema. Schemas that are referred to are left for later.
fn bound(name: &str, schema: &mut Value, waiting: &mut Vec<String>) {
    let Value::Object(schema) = schema else { return };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        waiting.extend(reference.strip_prefix(SCHEMAS).map(str::to_owned));
        return;
    }
    if is(schema, "array") {
        put(schema, "maxItems", bounds::list_in_request(name));
    }
    if is(schema, "string") && !has_own_form(schema) {
        put(schema, "maxLength", bounds::text_in_request(name));
    }
    for (key, part) in schema.iter_mut() {
        match (key.as_str(), part) {
            ("items" | "additionalProperties", part) => bound(name, part, waiting),
            ("oneOf" | "anyOf" | "allOf", Value::Array(parts)) => {
                parts.iter_mut().for_each(|part| bound(name, part, waiting));
            }
            ("properties", Value::Object(fields)) => {
                fields
                    .iter_mut()
                    .for_each(|(name, part)| bound(name, part, waiting));
            }
            _ => {}
        }
    }
}

fn is(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    }
}

/// Words and UUIDs have one length each.
fn has_own_form(schema: &Map<String, Value>) -> bool {
    let format = schema.get("format").and_then(Value::as_str);
    schema.contains_key("enum") || matches!(format, Some("uuid" | "date-time"))
}

fn put(schema: &mut Map<String, Value>, key: &str, most: Option<usize>) {
    if let Some(most) = most {
        schema.insert(key.to_owned(), most.into());
    }
}
