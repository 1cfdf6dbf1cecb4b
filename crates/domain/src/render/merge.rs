//! Merges one Ignition config over another: objects by key, lists of things by what identifies the thing.

use serde_json::Value;

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
    merge_value(base, over, "");
    if let Some(version) = version {
        base["ignition"]["version"] = version.into();
    }
}

fn merge_value(base: &mut Value, over: Value, name: &str) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(existing) => merge_value(existing, value, &key),
                    None => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (Value::Array(base), Value::Array(over)) => merge_list(base, over, name),
        (base, over) => *base = over,
    }
}

fn merge_list(base: &mut Vec<Value>, over: Vec<Value>, name: &str) {
    // Groups of a user are plain words although groups of the system are objects, hence the second look.
    let key = KEYS.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
    for item in over {
        let twin = match key.and_then(|key| item.get(key).map(|id| (key, id))) {
            Some((key, id)) => base.iter_mut().find(|other| other.get(key) == Some(id)),
            None => base.iter_mut().find(|other| **other == item),
        };
        match twin {
            Some(twin) => merge_value(twin, item, ""),
            None => base.push(item),
        }
    }
}

/// A path is a file, a directory or a link: when the override makes it something else, ours must go.
fn drop_shadowed_paths(base: &mut Value, over: &Value) {
    const LISTS: [&str; 3] = ["files", "directories", "links"];
    let paths = |list: &str| -> Vec<Value> {
        let items = over["storage"][list].as_array();
        items
            .into_iter()
            .flatten()
            .map(|item| item["path"].clone())
            .collect()
    };
    for list in LISTS {
        let elsewhere: Vec<Value> = LISTS
            .iter()
            .filter(|other| **other != list)
            .flat_map(|o| paths(o))
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
