//! What clients recorded with the reference: the same requests get the same status, keys and types here.

use crate::rest::Door;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

fn recording(name: &str) -> Vec<Value> {
    let path = format!(
        "{}/../../testdata/recordings/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Where the shapes differ, as paths; lists are compared by their first elements.
fn differences(at: &str, theirs: &Value, ours: &Value, found: &mut Vec<String>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let keys: BTreeSet<_> = theirs.keys().chain(ours.keys()).collect();
            for key in keys {
                let at = format!("{at}.{key}");
                match (theirs.get(key), ours.get(key)) {
                    (Some(theirs), Some(ours)) => differences(&at, theirs, ours, found),
                    (Some(_), None) => found.push(format!("{at} is missing")),
                    (None, _) => found.push(format!("{at} is too much")),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) => {
            if let (Some(theirs), Some(ours)) = (theirs.first(), ours.first()) {
                differences(&format!("{at}[0]"), theirs, ours, found);
            }
        }
        (Value::Null, Value::Null)
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_)) => {}
        _ => found.push(format!("{at} is {ours} instead of {theirs}")),
    }
}

/// Ids the reference made up, and ours in their place.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

impl Names {
    fn translate(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
    }
}

/// Replays those exchanges of a recording that concern no host, up to the first that begins an installation.
async fn replay(name: &str, skip: &[&str]) -> Vec<String> {
    // The recorded service shows this of every cluster.
    let door = Door::with(|settings| settings.soft_timeouts = true).await;
    let mut names = Names::default();
    let mut found = Vec::new();
    for (index, exchange) in recording(name).iter().enumerate() {
        let (request, response) = (&exchange["request"], &exchange["response"]);
        let method = request["method"].as_str().unwrap();
        let path = request["path"]
            .as_str()
            .unwrap()
            .strip_prefix(muster_contract::v2::BASE)
            .unwrap();
        let wanted = response["status"].as_u64().unwrap();
        if path.ends_with("/actions/install") && wanted == 202 {
            break;
        }
        let other = path.contains("/hosts") && !path.starts_with("/clusters") || path.starts_with("/events");
        if other
            || request["headers"]["Accept"] == "text/xml"
            || skip.iter().any(|skip| format!("{method} {path}").contains(skip))
        {
            continue;
        }
        let body = Some(&request["body"]).filter(|body| !body.is_null());
        let body = body.map(|body| serde_json::from_str(&names.translate(&body.to_string())).unwrap());
        let reply = door.ask(method, &names.translate(path), body.as_ref()).await;
        let here = format!("{name}[{index}] {method} {path}");
        if u64::from(reply.status.as_u16()) != wanted {
            found.push(format!(
                "{here}: {} instead of {wanted}: {}",
                reply.status,
                reply.text()
            ));
            continue;
        }
        let ours = reply.json();
        if let (Some(theirs), Some(ours)) = (response["body"]["id"].as_str(), ours["id"].as_str()) {
            names.0.insert(theirs.into(), ours.into());
        }
        let theirs = &response["body"];
        if !theirs.is_string() {
            differences(&here, theirs, &ours, &mut found);
        }
    }
    found
}

async fn agrees(name: &str, skip: &[&str]) {
    let found = replay(name, skip).await;
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn refusals_have_the_recorded_status_and_shape() {
    agrees(
        "flow_error_paths_user",
        &["/downloads/files?file_name=discovery.ign"],
    )
    .await;
}

#[tokio::test]
async fn clusters_and_infra_envs_have_the_recorded_keys() {
    // Other clusters were there when this was recorded, and its own had not been reconciled yet.
    agrees("aicli_create_cluster", &["GET /clusters"]).await;
    agrees("aicli_create_infraenv", &[]).await;
    // What clusters and InfraEnvs with hosts show is replayed with their hosts elsewhere.
    for name in [
        "flow_sno",
        "flow_move_a_to_b",
        "flow_late_bound_3master",
        "flow_unbind_from_added",
        "flow_day2_import",
    ] {
        agrees(
            name,
            &[
                "GET /clusters/",
                "GET /openshift-versions",
                "discovery.ign",
                "DELETE ",
            ],
        )
        .await;
    }
}
