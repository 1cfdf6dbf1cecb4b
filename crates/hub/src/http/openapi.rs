//! The OpenAPI document: what every handler says about itself, put together.

mod bounds;

use crate::http::{v1, v2};
use axum::body::Bytes;
use axum::http::header;
use axum::response::IntoResponse;
use muster_contract::v2::cluster_request::{ClusterFile, CredentialFile};
use muster_contract::v2::cluster_setting::{PlatformType, ReleaseArchitecture};
use muster_contract::v2::event::{EventCategory, EventOrder, EventSeverity};
use muster_contract::v2::infra_env::{ImageType, InfraEnvFile, IpxeScriptType};
use muster_contract::v2::install::LogsType;
use muster_contract::v2::manifest::ManifestFolder;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use utoipa::OpenApi;

static DOCUMENT: LazyLock<Value> = LazyLock::new(build);
static BYTES: LazyLock<Bytes> = LazyLock::new(|| DOCUMENT.to_string().into());

pub fn document() -> &'static Value {
    &DOCUMENT
}

pub async fn serve() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], BYTES.clone())
}

/// Words that occur in queries only; those are not collected from the handlers.
#[derive(OpenApi)]
#[openapi(components(schemas(
    ClusterFile,
    CredentialFile,
    EventCategory,
    EventOrder,
    EventSeverity,
    ImageType,
    InfraEnvFile,
    IpxeScriptType,
    LogsType,
    ManifestFolder,
    PlatformType,
    ReleaseArchitecture
)))]
struct Words;

fn parts() -> Vec<utoipa::openapi::OpenApi> {
    let mut parts = v2::docs();
    parts.extend(v1::docs());
    parts.push(Words::openapi());
    parts
}

fn build() -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for part in parts() {
        let mut part = serde_json::to_value(part).expect("an OpenAPI document is JSON");
        join(&mut paths, part["paths"].take());
        join(&mut schemas, part["components"]["schemas"].take());
    }
    for (path, item) in &mut paths {
        let own = path.starts_with(muster_contract::v1::BASE);
        item.as_object_mut()
            .into_iter()
            .flat_map(Map::values_mut)
            .for_each(|operation| complete(operation, own));
    }
    bounds::write(&mut paths, &mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Muster",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Free hosts, and clusters that borrow them. REST v2 is what agents and existing clients \
                speak; `/api/muster/v1` adds plans, explanations, moves and the feed of changes.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/", "description": "This hub" }],
        "tags": tags(&paths),
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

/// Several files describe methods of one path, and many use the same schema.
fn join(into: &mut Map<String, Value>, from: Value) {
    let Value::Object(from) = from else { return };
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => {
                for (key, value) in more {
                    known.entry(key).or_insert(value);
                }
            }
            (Some(_), _) => {}
            (None, value) => drop(into.insert(key, value)),
        }
    }
}

/// What any operation may answer besides what it names: refusals of the layers before it, and faults.
fn complete(operation: &mut Value, own: bool) {
    let (kind, schema) = if own {
        (
            "application/problem+json",
            json!({ "$ref": "#/components/schemas/Problem" }),
        )
    } else {
        let bodies = ["ErrorBody", "InfraErrorBody"]
            .map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
        ("application/json", json!({ "anyOf": bodies }))
    };
    if let Some(responses) = operation["responses"].as_object_mut() {
        // An error that is described with a body is sent as problem details.
        if own {
            for (_, response) in responses
                .iter_mut()
                .filter(|(status, _)| status.starts_with(['4', '5']))
            {
                if let Some(content) = response["content"].as_object_mut()
                    && let Some(body) = content.remove("application/json")
                {
                    content.insert(kind.into(), body);
                }
            }
        }
        responses.entry("default").or_insert_with(|| {
            json!({ "description": "Any other refusal or fault", "content": { kind: { "schema": schema } } })
        });
    }
}

/// In the order in which the files above are named.
fn tags(paths: &Map<String, Value>) -> Value {
    let texts = [
        (
            "infra-env",
            "Discovery images and the pools of hosts booted from them.",
        ),
        ("host", "Hosts: free, lent to a cluster, and back."),
        ("cluster", "Clusters that borrow hosts."),
        (
            "muster",
            "Muster's own API: plans, explanations, moves, the feed of changes.",
        ),
        ("events", "What happened, as text for people."),
        ("versions", "What can be installed, and what this hub is."),
        ("agent", "What discovery agents and installers call."),
        ("installation", "What an installation needs, makes and reports."),
        ("manifest", "Manifests that people add to a cluster."),
    ];
    let operations = paths.values().filter_map(Value::as_object).flat_map(Map::values);
    let used: Vec<_> = operations
        .filter_map(|operation| operation["tags"][0].as_str())
        .collect();
    let mut names: Vec<&str> = texts
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| used.contains(name))
        .collect();
    for name in used {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let text = |name: &str| {
        texts
            .iter()
            .find(|(known, _)| *known == name)
            .map_or("", |(_, text)| text)
    };
    names
        .iter()
        .map(|name| json!({ "name": name, "description": text(name) }))
        .collect()
}
