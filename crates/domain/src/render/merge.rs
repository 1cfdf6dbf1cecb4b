//! Merges one Ignition config over another: objects by key, lists of things by what identifies the thing.

use serde_json::{Map, Value};
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet};

/// Lists and the field that identifies their entries. Other lists are joined without repetition.
const KEYS: [(&str, &str); 11] = [
    ("files", "path"),
    ("directories", "path"),
    ("links", "path"),
    ("units", "name"),
    ("dropins", "name"),
    ("users", "name"),
    ("groups", "name"),
    ("filesystems", "device"),
    ("disks", "device"),
    ("raid", "name"),
    ("luks", "name"),
];

/// `over` wins wherever both speak.
pub fn merge(base: &mut Value, over: Value) {
    let version = newer_version(base, &over);
    drop_shadowed_paths(base, &over);
    merge_values(base, vec![over], "");
    if let Some(version) = version {
        base["ignition"]["version"] = version.into();
    }
}

/// Merges all that is said about one value, the later the stronger. All at once: thousands of entries about one file
/// would otherwise go through its lists thousands of times.
fn merge_values(base: &mut Value, overs: Vec<Value>, name: &str) {
    let mut overs = overs.into_iter().peekable();
    while let Some(over) = overs.next() {
        match (&mut *base, over) {
            (Value::Object(base), Value::Object(first)) => {
                let more = std::iter::from_fn(|| overs.next_if(Value::is_object));
                let fields = std::iter::once(Value::Object(first)).chain(more);
                merge_objects(base, fields);
            }
            (Value::Array(base), Value::Array(first)) => {
                let more = std::iter::from_fn(|| overs.next_if(Value::is_array));
                let lists = std::iter::once(Value::Array(first)).chain(more);
                merge_lists(base, lists, name);
            }
            (base, over) => *base = over,
        }
    }
}

fn merge_objects(base: &mut Map<String, Value>, overs: impl Iterator<Item = Value>) {
    let mut both: HashMap<String, Vec<Value>> = HashMap::new();
    let fields = overs.filter_map(|over| match over {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    for (key, value) in fields.flatten() {
        if base.contains_key(&key) {
            both.entry(key).or_default().push(value);
        } else {
            base.insert(key, value);
        }
    }
    for (key, values) in both {
        if let Some(existing) = base.get_mut(&key) {
            merge_values(existing, values, &key);
        }
    }
}

/// What makes two entries of a list the same one.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Key(Value),
    Whole(Value),
}

fn merge_lists(base: &mut Vec<Value>, overs: impl Iterator<Item = Value>, name: &str) {
    let key = KEYS.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
    // Groups of a user are plain words although groups of the system are objects, hence the second kind.
    let identity = |item: &Value| match key.and_then(|key| item.get(key)) {
        Some(id) => Identity::Key(id.clone()),
        None => Identity::Whole(item.clone()),
    };
    let mut places: HashMap<Identity, usize> = HashMap::with_capacity(base.len());
    for (place, item) in base.iter().enumerate() {
        places.entry(identity(item)).or_insert(place);
    }
    let mut both: HashMap<usize, Vec<Value>> = HashMap::new();
    let items = overs.filter_map(|over| match over {
        Value::Array(items) => Some(items),
        _ => None,
    });
    for item in items.flatten() {
        match places.entry(identity(&item)) {
            Occupied(place) => match place.key() {
                Identity::Key(_) => both.entry(*place.get()).or_default().push(item),
                Identity::Whole(_) => {}
            },
            Vacant(place) => {
                place.insert(base.len());
                base.push(item);
            }
        }
    }
    for (place, items) in both {
        merge_values(&mut base[place], items, "");
    }
}

/// A path is a file, a directory or a link: when the override makes it something else, ours must go.
fn drop_shadowed_paths(base: &mut Value, over: &Value) {
    const LISTS: [&str; 3] = ["files", "directories", "links"];
    let paths = |list: &&str| over["storage"][*list].as_array().into_iter().flatten();
    for list in LISTS {
        let elsewhere: HashSet<&Value> = LISTS
            .iter()
            .filter(|other| **other != list)
            .flat_map(paths)
            .map(|item| &item["path"])
            .collect();
        let items = base.get_mut("storage").and_then(|storage| storage.get_mut(list));
        if let Some(items) = items.and_then(Value::as_array_mut) {
            items.retain(|item| !elsewhere.contains(&item["path"]));
        }
    }
}

/// The result must be read by the newer of both specs, or the override's newer settings would be refused.
fn newer_version(base: &Value, over: &Value) -> Option<String> {
    let version = |config: &Value| config["ignition"]["version"].as_str().map(str::to_owned);
    let rank =
        |version: &String| -> Vec<u32> { version.split('.').map(|n| n.parse().unwrap_or(0)).collect() };
    [version(base), version(over)]
        .into_iter()
        .flatten()
        .max_by_key(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Each entry compared with each would take minutes, here and for the paths that became something else.
    #[test]
    fn a_hundred_thousand_files_are_merged_in_one_walk() {
        let list = |from: u32, to: u32, field: &str| -> Vec<Value> {
            (from..to)
                .map(|n| json!({ "path": format!("/{n}"), field: true }))
                .collect()
        };
        let mut base = json!({ "storage": { "files": list(0, 100_000, "base"), "links": list(90_000, 200_000, "base") } });
        let over = json!({ "storage": { "files": list(50_000, 150_000, "over") }, "words": Vec::from_iter(0..100_000) });
        base["words"] = Vec::from_iter(50_000..150_000).into();
        merge(&mut base, over);
        let files = base["storage"]["files"].as_array().unwrap();
        assert_eq!(files.len(), 150_000);
        assert_eq!(
            files[50_000],
            json!({ "path": "/50000", "base": true, "over": true })
        );
        assert_eq!(files[149_999], json!({ "path": "/149999", "over": true }));
        assert_eq!(base["storage"]["links"].as_array().unwrap().len(), 50_000);
        assert_eq!(base["words"].as_array().unwrap().len(), 150_000);
    }

    /// The list inside must not be gone through for each of them.
    #[test]
    fn entries_about_the_same_unit_are_merged_in_one_walk() {
        let unit = |n: u32| json!({ "name": "a.service", "dropins": [{ "name": format!("{n}.conf") }], "mask": n.is_multiple_of(2) });
        let mut base = json!({ "systemd": { "units": [unit(0)] } });
        merge(
            &mut base,
            json!({ "systemd": { "units": (0..50_000).map(unit).collect::<Vec<_>>() } }),
        );
        let units = base["systemd"]["units"].as_array().unwrap();
        assert_eq!(units.len(), 1);
        assert_eq!(units[0]["dropins"].as_array().unwrap().len(), 50_000);
        assert_eq!(units[0]["mask"], false);
    }

    #[test]
    fn what_changes_its_kind_is_what_was_said_last() {
        let mut base = json!({ "users": [{ "name": "core", "groups": ["a"] }] });
        let over = json!({ "users": [
            { "name": "core", "groups": ["b", "a"] },
            { "name": "core", "groups": null },
            { "name": "core", "groups": ["c", "c"] },
            { "name": "core", "groups": ["d"] },
            "core",
        ] });
        merge(&mut base, over);
        assert_eq!(
            base,
            json!({ "users": [{ "name": "core", "groups": ["c", "c", "d"] }, "core"] })
        );
    }
}
