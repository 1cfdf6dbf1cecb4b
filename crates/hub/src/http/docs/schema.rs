//! Schemas as tables: one level deep, with links to the next.

use super::{escaped, inline};
use serde_json::Value;
use std::fmt::Write;

pub fn anchor(name: &str) -> String {
    format!("schema-{}", escaped(name))
}

/// The schema itself, or the one it refers to.
pub fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match reference(schema) {
        Some(name) => &document["components"]["schemas"][name],
        None => schema,
    }
}

pub fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// The type in a few words, with links.
pub fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return format!("<a href=\"#{}\">{}</a>", anchor(name), escaped(name));
    }
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().map(|word| match word.as_str() {
            Some(word) => format!("<code>{}</code>", escaped(word)),
            None => format!("<code>{}</code>", escaped(&word.to_string())),
        });
        return words.collect::<Vec<_>>().join(" | ");
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[key].as_array() {
            return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if let Some(parts) = schema["allOf"].as_array() {
        return parts.iter().map(kind).collect::<Vec<_>>().join(" and ");
    }
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => return "any".into(),
    };
    let names: Vec<_> = names.into_iter().map(|name| single(name, schema)).collect();
    names.join(" or ")
}

fn single(name: &str, schema: &Value) -> String {
    match (name, schema["format"].as_str()) {
        ("array", _) => format!("list of {}", kind(&schema["items"])),
        ("object", _) if schema["additionalProperties"].is_object() => {
            format!("map to {}", kind(&schema["additionalProperties"]))
        }
        (name, Some(format)) => format!("{} ({})", escaped(name), escaped(format)),
        (name, None) => escaped(name),
    }
}

/// Properties with their own, those of its parts, and otherwise what it is in a word.
pub fn table(schema: &Value) -> String {
    let parts: Vec<&Value> = match schema["allOf"].as_array() {
        Some(parts) => parts.iter().collect(),
        None => vec![schema],
    };
    let mut html = String::new();
    for part in parts {
        match part["properties"]
            .as_object()
            .filter(|properties| !properties.is_empty())
        {
            None => {
                let _ = write!(html, "<p>{}</p>", kind(part));
            }
            Some(properties) => {
                html.push_str(
                    "<table><thead><tr><th>Field</th><th>Type</th><th>About</th></tr></thead><tbody>",
                );
                for (name, property) in properties {
                    let is_required = part["required"]
                        .as_array()
                        .is_some_and(|names| names.iter().any(|known| known == name));
                    row(
                        &mut html,
                        name,
                        is_required,
                        property,
                        property["description"].as_str(),
                    );
                }
                html.push_str("</tbody></table>");
            }
        }
    }
    html
}

pub fn row(html: &mut String, name: &str, is_required: bool, schema: &Value, about: Option<&str>) {
    let _ = write!(
        html,
        "<tr><td><code>{}</code>{}</td><td>{}</td><td>{}</td></tr>",
        escaped(name),
        if is_required {
            "<b class=\"must\" title=\"always present\">*</b>"
        } else {
            ""
        },
        kind(schema),
        inline(about.unwrap_or_default()),
    );
}

/// A value that fits, with nothing optional in it.
pub fn example(document: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolved(document, schema);
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(first) = schema[key]
            .as_array()
            .and_then(|choices| choices.iter().find(|one| one["type"] != "null"))
        {
            return example(document, first, depth);
        }
    }
    let name = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str())
        .unwrap_or("object");
    match (name, schema["format"].as_str()) {
        ("string", Some("uuid")) => "00000000-0000-0000-0000-000000000000".into(),
        ("string", Some("date-time")) => "2026-01-01T00:00:00.000Z".into(),
        ("string", _) => "".into(),
        ("integer" | "number", _) => 0.into(),
        ("boolean", _) => false.into(),
        ("array", _) => Value::Array(Vec::new()),
        _ if depth == 0 => Value::Object(Default::default()),
        _ => {
            let required = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let fields = required.map(|name| {
                (
                    name.to_owned(),
                    example(document, &schema["properties"][name], depth - 1),
                )
            });
            Value::Object(fields.collect())
        }
    }
}
