//! Patches of manifests: YAML that changes a manifest which the installer made.
//!
//! A list is read as operations (`add`, `replace`, `remove` with a `path`), anything else is merged in.

use serde_json::Value;

pub fn merged(base: &[u8], patch: &[u8]) -> Result<Vec<u8>, String> {
    let mut base = parsed(base)?;
    match parsed(patch)? {
        Value::Array(operations) => {
            for operation in &operations {
                apply(&mut base, operation)?;
            }
        }
        patch => merge(&mut base, patch),
    }
    serde_norway::to_string(&base)
        .map(String::into_bytes)
        .map_err(|error| error.to_string())
}

fn parsed(content: &[u8]) -> Result<Value, String> {
    serde_norway::from_slice(content).map_err(|error| match error.location() {
        Some(at) => format!("it is not YAML (line {}, column {})", at.line(), at.column()),
        None => "it is not YAML".to_owned(),
    })
}

fn apply(base: &mut Value, operation: &Value) -> Result<(), String> {
    let text = |key: &str| operation[key].as_str().unwrap_or_default();
    let (what, path) = (text("op"), text("path"));
    let value = || operation["value"].clone();
    let (parent, key) = path
        .rsplit_once('/')
        .ok_or_else(|| format!("the path {path:?} does not begin with a slash"))?;
    let key = key.replace("~1", "/").replace("~0", "~");
    let missing = || format!("there is nothing at {path:?}");
    match base.pointer_mut(parent).ok_or_else(missing)? {
        Value::Object(map) => match what {
            "add" => drop(map.insert(key, value())),
            "replace" if map.contains_key(&key) => drop(map.insert(key, value())),
            "remove" if map.contains_key(&key) => drop(map.remove(&key)),
            "replace" | "remove" => return Err(missing()),
            _ => return Err(unknown(what)),
        },
        Value::Array(list) => {
            let at = if key == "-" {
                list.len()
            } else {
                key.parse().map_err(|_| missing())?
            };
            match what {
                "add" if at <= list.len() => list.insert(at, value()),
                "replace" if at < list.len() => list[at] = value(),
                "remove" if at < list.len() => drop(list.remove(at)),
                "add" | "replace" | "remove" => return Err(missing()),
                _ => return Err(unknown(what)),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(missing()),
    }
    Ok(())
}

fn unknown(what: &str) -> String {
    format!("unknown operation {what:?}; use add, replace or remove")
}

/// Objects by key, null takes away, everything else is replaced.
fn merge(base: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *base = patch;
        return;
    };
    if !base.is_object() {
        *base = Value::Object(serde_json::Map::new());
    }
    let Value::Object(base) = base else { return };
    for (key, value) in patch {
        if value.is_null() {
            base.remove(&key);
        } else {
            merge(base.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BASE: &[u8] = b"kind: Network\nspec:\n  mtu: 1500\n  kept: word\n  gone: 1\n  list: [a, b]\n";

    fn patched(patch: &str) -> Result<Value, String> {
        Ok(serde_norway::from_slice(&merged(BASE, patch.as_bytes())?).unwrap())
    }

    #[test]
    fn an_object_is_merged_and_null_takes_away() {
        let spec = patched("spec: {mtu: 9000, gone: null, list: [c], new: {a: b}}").unwrap();
        let wanted = json!({ "mtu": 9000, "kept": "word", "list": ["c"], "new": { "a": "b" } });
        assert_eq!(spec["spec"], wanted);
    }

    #[test]
    fn a_list_is_operations() {
        let patch = "- {op: replace, path: /spec/mtu, value: 9000}\n- {op: remove, path: /spec/gone}\n\
                     - {op: add, path: /spec/list/-, value: c}\n- {op: add, path: /spec/new, value: {a: b}}";
        let wanted = json!({ "mtu": 9000, "kept": "word", "list": ["a", "b", "c"], "new": { "a": "b" } });
        assert_eq!(patched(patch).unwrap()["spec"], wanted);
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        for patch in [
            "- {op: replace, path: /spec/none, value: 1}",
            "- {op: remove, path: /spec/list/7}",
            "- {op: move, path: /spec/mtu}",
            "- {op: add, path: mtu}",
            "[",
        ] {
            assert!(patched(patch).is_err(), "{patch}");
        }
    }
}
