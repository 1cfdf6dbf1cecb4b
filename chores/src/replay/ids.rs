//! Ids that the server chose: which of ours stands for which recorded one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::recording::Request;

#[derive(Debug, Default)]
pub struct IdMap {
    ours: BTreeMap<String, String>,
    /// Ids the client brought along (hosts, and made-up ones): the same on both sides.
    client: BTreeSet<String>,
}

impl IdMap {
    pub fn insert(&mut self, recorded: &str, ours: &str) {
        self.ours.insert(recorded.to_owned(), ours.to_owned());
    }

    /// Remembers an id that agents choose: it is the same on both sides.
    pub fn keep(&mut self, id: &str) {
        self.client.insert(id.to_owned());
    }

    /// Remembers the ids a request brings: what a client says first is not the server's choice.
    pub fn note_request(&mut self, request: &Request) {
        for text in [request.path.clone(), request.body.to_string()] {
            for id in find(&text) {
                if !self.ours.contains_key(id) {
                    self.client.insert(id.to_owned());
                }
            }
        }
    }

    /// Pairs new recorded ids with ours at the same place in the answer.
    pub fn learn(&mut self, recorded: &Value, ours: &Value) {
        match (recorded, ours) {
            (Value::Object(recorded), Value::Object(ours)) => {
                for (key, value) in recorded {
                    if let Some(other) = ours.get(key) {
                        self.learn(value, other);
                    }
                }
            }
            (Value::Array(recorded), Value::Array(ours)) if recorded.len() == ours.len() => {
                for (value, other) in recorded.iter().zip(ours) {
                    // Lists may be ordered differently; a name that agrees makes the pair likely.
                    if value.get("name") == other.get("name") {
                        self.learn(value, other);
                    }
                }
            }
            (Value::String(recorded), Value::String(ours)) if is_uuid(recorded) && is_uuid(ours) => {
                if !self.ours.contains_key(recorded) && !self.client.contains(recorded) {
                    self.insert(recorded, ours);
                }
            }
            (_, _) => {}
        }
    }

    pub fn to_ours(&self, text: &str) -> String {
        self.ours.iter().fold(text.to_owned(), |text, (recorded, ours)| {
            text.replace(recorded.as_str(), ours)
        })
    }

    /// Brings our answer into the recording's ids, so that both can be compared as they are.
    pub fn to_recorded(&self, text: &str) -> String {
        self.ours.iter().fold(text.to_owned(), |text, (recorded, ours)| {
            text.replace(ours.as_str(), recorded)
        })
    }
}

pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// All ids in a text.
fn find(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + 36 <= text.len() {
        match text.get(at..at + 36).filter(|candidate| is_uuid(candidate)) {
            Some(id) => {
                found.push(id);
                at += 36;
            }
            None => at += 1,
        }
    }
    found
}
