//! JSON merge patches: what to send so that one value becomes another.

use serde::Serialize;
use serde_json::{Map, Value};

/// The patch that turns `before` into `after`, or nothing when they are equal. Lists are replaced whole.
pub fn diff(before: &impl Serialize, after: &impl Serialize) -> Option<Value> {
    let plain = |value: Result<Value, _>| -> Value { value.expect("statuses are plain data") };
    let before = plain(serde_json::to_value(before));
    let after = plain(serde_json::to_value(after));
    difference(&before, &after)
}

fn difference(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let gone = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let changed = after.iter().filter_map(|(key, value)| match before.get(key) {
        Some(old) => difference(old, value).map(|patch| (key.clone(), patch)),
        None => Some((key.clone(), value.clone())),
    });
    let patch: Map<_, _> = gone.chain(changed).collect();
    Some(Value::Object(patch))
}

/// What becomes of a value by a patch.
pub fn apply(value: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(object) = value else { return };
    for (name, field) in fields {
        if field.is_null() {
            object.remove(name);
        } else {
            apply(object.entry(name.as_str()).or_insert(Value::Null), field);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_sent() {
        let before = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": 3});
        let after = json!({"a": 1, "b": {"c": [1, 2], "d": 2}, "f": {}});
        assert_eq!(
            diff(&before, &after),
            Some(json!({"b": {"c": [1, 2]}, "e": null, "f": {}}))
        );
        assert_eq!(diff(&before, &before), None);
    }

    #[test]
    fn what_differs_makes_the_one_of_the_other() {
        let before = json!({"a": 1, "b": {"c": [1], "d": 2}, "e": 3, "g": "text"});
        let after = json!({"a": 1, "b": {"c": [1, 2]}, "f": {}, "g": {"h": 1}});
        let mut value = before.clone();
        apply(&mut value, &diff(&before, &after).unwrap());
        assert_eq!(value, after);
    }

    #[test]
    fn nothing_becomes_something_and_something_nothing() {
        assert_eq!(diff(&Value::Null, &json!({"a": 1})), Some(json!({"a": 1})));
        assert_eq!(diff(&json!({"a": 1}), &json!({})), Some(json!({"a": null})));
    }
}
