//! No input is larger than the domain says: not in what people send, not in what agents report.

use crate::door::{Answer, Door, V2};
use axum::http::{Method, StatusCode};
use muster_hub::http::openapi;
use serde_json::{Value, json};
use uuid::Uuid;

/// Bodies and fields that no bound of the table is for, and why.
const OTHERWISE: &[(&str, &str, &str)] = &[(
    "uploadIgnition",
    "body",
    "the body is the config itself, which may hold anything; its size is judged as a whole",
)];

/// Agents and controllers pass on what programs and firmware say: zeros in it are dropped.
const PASSED_ON: &[&str] = &[
    "v2PostStepReply",
    "v2UpdateHostInstallProgress",
    "v2RegisterHost",
    "v2TriggerEvent",
    "v2ReportMonitoredOperatorStatus",
    "v2CompleteInstallation",
];

/// A list or text of a request body: the operation, the way to it, and its schema.
struct Field {
    operation: String,
    method: Method,
    path: String,
    way: Vec<String>,
    schema: Value,
}

impl Field {
    fn named(&self) -> String {
        let names: Vec<_> = self
            .way
            .iter()
            .map(|step| if step == "[]" { "0" } else { step })
            .collect();
        if names.is_empty() {
            "body".into()
        } else {
            names.join(".")
        }
    }

    fn is_list(&self) -> bool {
        has_type(&self.schema, "array")
    }

    fn most(&self) -> Option<usize> {
        let key = if self.is_list() { "maxItems" } else { "maxLength" };
        usize::try_from(self.schema[key].as_u64()?).ok()
    }

    /// A body that has only this field, with that many entries or characters.
    fn body(&self, count: usize) -> Value {
        let own = if self.is_list() {
            vec![Value::Null; count].into()
        } else {
            "x".repeat(count).into()
        };
        self.way
            .iter()
            .rev()
            .fold(own, |inner, step| match step.as_str() {
                "[]" => json!([inner]),
                name => json!({ name: inner }),
            })
    }
}

fn has_type(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind
        || schema["type"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == kind))
}

fn fields() -> Vec<Field> {
    let document = openapi::document();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let mut at = |way: &[String], schema: &Value| {
                found.push(Field {
                    operation: operation["operationId"].as_str().unwrap().to_owned(),
                    method: method.to_uppercase().parse().unwrap(),
                    path: path.clone(),
                    way: way.to_vec(),
                    schema: schema.clone(),
                });
            };
            walk(document, schema, &mut Vec::new(), &mut at);
        }
    }
    found
}

type At<'a> = dyn FnMut(&[String], &Value) + 'a;

fn walk(document: &Value, schema: &Value, way: &mut Vec<String>, at: &mut At<'_>) {
    if let Some(reference) = schema["$ref"].as_str() {
        return walk(document, document.pointer(&reference[1..]).unwrap(), way, at);
    }
    let is_list = has_type(schema, "array");
    let fields = schema["properties"].as_object().into_iter().flatten();
    let items = is_list.then(|| ("[]", &schema["items"]));
    for (step, inner) in fields.map(|(name, field)| (name.as_str(), field)).chain(items) {
        way.push(step.to_owned());
        walk(document, inner, way, at);
        way.pop();
    }
    let form = schema["format"].as_str().unwrap_or_default();
    let is_text =
        has_type(schema, "string") && schema.get("enum").is_none() && !["uuid", "date-time"].contains(&form);
    let is_anything = has_type(schema, "object") && schema.get("properties").is_none() && way.is_empty();
    if is_text || is_anything || is_list {
        at(way, schema);
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for part in schema[key].as_array().into_iter().flatten() {
            walk(document, part, way, at);
        }
    }
}

#[test]
fn every_list_and_text_of_every_request_has_a_bound() {
    let all = fields();
    assert!(all.len() > 150, "{}", all.len());
    let excused = |field: &Field| {
        OTHERWISE
            .iter()
            .any(|(operation, name, _)| field.operation == *operation && field.named() == *name)
    };
    let open: Vec<_> = all
        .iter()
        .filter(|field| field.most().is_none() && !excused(field))
        .map(|field| format!("{} of {}", field.named(), field.operation))
        .collect();
    assert!(
        open.is_empty(),
        "give them a bound in domain/src/input/bounds.rs: {open:#?}"
    );
}

#[tokio::test]
async fn one_more_than_the_bound_is_refused_by_name_in_every_request() {
    let door = Door::open().await;
    for field in fields() {
        let Some(most) = field.most() else { continue };
        let path = field
            .path
            .split('/')
            .map(|part| {
                if part.starts_with('{') {
                    Uuid::nil().to_string()
                } else {
                    part.into()
                }
            })
            .collect::<Vec<_>>()
            .join("/");
        let answer = door
            .ask(field.method.clone(), &path, Some(&field.body(most + 1)))
            .await;
        let place = format!("{} {}", field.operation, field.named());
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{place}: {}", answer.text);
        let named = format!("`{}` has {} ", field.named(), most + 1);
        assert!(answer.text.contains(&named), "{place}: {}", answer.text);
        assert!(
            answer.text.contains(&format!("at most {most}.")),
            "{place}: {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn forty_thousand_networks_are_refused_before_any_is_compared() {
    let door = Door::open().await;
    let cluster = door.cluster("prod").await;
    let networks: Vec<_> = (0..40_000)
        .map(|n| json!({ "cidr": format!("10.{}.{}.0/25", n / 256, n % 256) }))
        .collect();
    for field in ["machine_networks", "service_networks", "cluster_networks"] {
        let path = format!("{V2}/clusters/{cluster}");
        let answer = door
            .ask(Method::PATCH, &path, Some(&json!({ field: networks })))
            .await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        let text = format!("`{field}` has 40000 entries: give at most 256.");
        assert!(answer.text.contains(&text), "{}", answer.text);
    }
}

async fn told(door: &Door, pool: Uuid, host: Uuid, step: &str, output: &str) -> Answer {
    let body = json!({ "step_type": step, "step_id": "x", "exit_code": 0, "output": output, "error": "" });
    door.post(&format!("{V2}/infra-envs/{pool}/hosts/{host}/instructions"), body)
        .await
}

#[tokio::test]
async fn agents_that_report_more_than_a_machine_has_are_refused_by_name() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = door.worker(pool, 1).await;
    let many = |count: usize| vec![json!({}); count];
    let reports = [
        ("inventory", json!({ "disks": many(100_000) }), "disks"),
        ("inventory", json!({ "interfaces": many(100_000) }), "interfaces"),
        (
            "inventory",
            json!({ "interfaces": [{ "ipv4_addresses": vec!["10.0.0.1/8"; 257] }] }),
            "interfaces.0.ipv4_addresses",
        ),
        ("inventory", json!({ "routes": many(16 * 1024 + 1) }), "routes"),
        (
            "inventory",
            json!({ "hostname": "h".repeat(16 * 1024 + 1) }),
            "hostname",
        ),
        (
            "connectivity-check",
            json!({ "remote_hosts": many(4097) }),
            "remote_hosts",
        ),
        (
            "connectivity-check",
            json!({ "remote_hosts": [{ "l3_connectivity": many(16 * 1024 + 1) }] }),
            "remote_hosts.0.l3_connectivity",
        ),
        (
            "ntp-synchronizer",
            json!({ "ntp_sources": many(257) }),
            "ntp_sources",
        ),
        (
            "domain-resolution",
            json!({ "resolutions": many(257) }),
            "resolutions",
        ),
        ("free-network-addresses", json!(many(257)), "body"),
        (
            "tang-connectivity-check",
            json!({ "tang_server_response": many(257) }),
            "tang_server_response",
        ),
    ];
    for (step, report, field) in reports {
        let answer = told(&door, pool, host, step, &report.to_string()).await;
        assert_eq!(
            answer.status,
            StatusCode::BAD_REQUEST,
            "{step} {field}: {}",
            answer.text
        );
        assert!(
            answer.text.contains(&format!("`{field}` has ")),
            "{step} {field}: {}",
            answer.text
        );
        assert!(answer.text.contains("at most "), "{}", answer.text);
    }
    assert_eq!(door.status(pool, host).await, "known-unbound");
}

#[tokio::test]
async fn what_a_host_has_is_still_taken_in_when_its_firmware_writes_zeros() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let host = door.worker(pool, 1).await;
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let mut inventory: Value =
        serde_json::from_str(door.get(&path).await.body["inventory"].as_str().unwrap()).unwrap();
    inventory["hostname"] = "other\0".into();
    inventory["system_vendor"]["serial_number"] = "S\0\0".into();
    let answer = told(&door, pool, host, "inventory", &inventory.to_string()).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT, "{}", answer.text);
    let shown = door.get(&path).await.body["inventory"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        shown.contains("\"other\"") && !shown.contains("\\u0000"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_zero_in_any_text_is_refused_with_the_name_of_its_field() {
    let door = Door::open().await;
    for field in fields()
        .into_iter()
        .filter(|field| !field.is_list() && field.most().is_some())
    {
        if PASSED_ON.contains(&field.operation.as_str()) {
            continue;
        }
        let path = field
            .path
            .split('/')
            .map(|part| {
                if part.starts_with('{') {
                    Uuid::nil().to_string()
                } else {
                    part.into()
                }
            })
            .collect::<Vec<_>>()
            .join("/");
        let mut body = field.body(3).to_string();
        body = body.replace("xxx", "x\\u0000x");
        let answer = door
            .send(field.method.clone(), &path, "application/json", body)
            .await;
        let place = format!("{} {}", field.operation, field.named());
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{place}: {}", answer.text);
        let named = format!("`{}` has a zero character", field.named());
        assert!(answer.text.contains(&named), "{place}: {}", answer.text);
    }
    let cluster = door.cluster("prod").await;
    for (path, field) in [
        (
            format!("{V2}/clusters/{cluster}/manifests/files?file_name=a%00.yaml"),
            "file_name",
        ),
        (format!("{V2}/supported-operators/a%00"), "path"),
    ] {
        let answer = door.get(&path).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
        assert!(
            answer.text.contains(&format!("`{field}` has a zero character")),
            "{}",
            answer.text
        );
    }
}
