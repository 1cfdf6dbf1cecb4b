//! Tests of the replay: the judgement by synthetic bodies, the whole by a server that plays a recording back.

mod installing;
mod judgement;
mod playback;

use serde_json::{Value, json};

use super::recording::{Exchange, Recording};
use super::report::Difference;
use super::shape::Comparer;
use super::states::Timeline;

/// A recording from method, path, request body, status and answer.
fn recording(exchanges: &[(&str, &str, Value, u16, Value)]) -> Recording {
    let exchanges = exchanges
        .iter()
        .map(|(method, path, body, status, answer)| {
            let exchange = json!({
                "request": { "method": method, "path": format!("/api/assisted-install/v2{path}"), "body": body },
                "response": { "status": status, "body": answer },
            });
            serde_json::from_value::<Exchange>(exchange).unwrap()
        })
        .collect();
    Recording {
        name: "synthetic".to_owned(),
        exchanges,
    }
}

/// The differences of two bodies that belong to no story.
fn differences(recorded: &Value, ours: &Value) -> Vec<String> {
    let empty = recording(&[]);
    Comparer {
        timeline: &Timeline::of(&empty),
        index: 0,
    }
    .bodies("", recorded, ours)
    .iter()
    .map(Difference::to_string)
    .collect()
}
