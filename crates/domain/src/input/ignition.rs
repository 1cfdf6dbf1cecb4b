//! Ignition configs people bring: overrides for the discovery image and for single hosts.

use serde_json::Value;

use super::error::{Checked, Invalid};

/// The ISO keeps 256 KiB for the compressed config; the whole of it is measured when rendered, this only
/// stops texts that could never fit (compression of configs rarely beats 8:1).
pub const TEXT_MAX: usize = 2 * 1024 * 1024;

/// Far more than an image with so little room can use.
pub const ENTRIES_MAX: usize = 4096;

/// Minor versions of spec 3 that the discovery image's Ignition reads.
const MINORS: std::ops::RangeInclusive<u32> = 0..=5;

/// Parses an override. `field` is `ignition_config_override` or `config`.
pub fn ignition(field: &str, text: &str) -> Checked<Value> {
    if text.len() > TEXT_MAX {
        return Err(Invalid::rule(
            field,
            format!("has {} bytes", text.len()),
            format!("keep it below {TEXT_MAX}; the image has room for 256 KiB compressed"),
        ));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        Invalid::rule(
            field,
            format!("is not JSON (line {}, column {})", error.line(), error.column()),
            "give an Ignition config in JSON",
        )
    })?;
    let version = value
        .get("ignition")
        .and_then(|ignition| ignition.get("version"))
        .and_then(Value::as_str);
    let Some(version) = version else {
        return Err(Invalid::rule(
            field,
            "has no `ignition.version`",
            "set it to \"3.1.0\" or another 3.x version",
        ));
    };
    if !is_supported(version) {
        return Err(Invalid::rule(
            field,
            version_problem(version),
            format!("use 3.{}.0 to 3.{}.0", MINORS.start(), MINORS.end()),
        ));
    }
    lists(field, &value)?;
    sections(field, &value)?;
    Ok(value)
}

/// Only what looks like a version is repeated: anything else may be a secret at the wrong place.
fn version_problem(version: &str) -> String {
    let is_plain = version.len() < 20 && version.chars().all(|c| c.is_ascii_digit() || c == '.');
    match is_plain {
        true => format!("has the Ignition version {version}"),
        false => "has an Ignition version that images cannot read".into(),
    }
}

fn is_supported(version: &str) -> bool {
    let parts: Vec<&str> = version.split('.').collect();
    matches!(parts.as_slice(), ["3", minor, "0"] if minor.parse().is_ok_and(|minor| MINORS.contains(&minor)))
}

/// Bounds every list, wherever it is.
fn lists(field: &str, value: &Value) -> Checked {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Object(fields) => fields.values().try_for_each(|value| lists(field, value)),
        Value::Array(items) if items.len() > ENTRIES_MAX => Err(Invalid::rule(
            field,
            format!("has a list of {} entries", items.len()),
            format!("give at most {ENTRIES_MAX} in each list"),
        )),
        Value::Array(items) => items.iter().try_for_each(|value| lists(field, value)),
    }
}

/// The lists we merge by key must be lists of objects that have their key.
fn sections(field: &str, value: &Value) -> Checked {
    const KEYED: [(&str, &str, &str); 6] = [
        ("storage", "files", "path"),
        ("storage", "directories", "path"),
        ("storage", "links", "path"),
        ("systemd", "units", "name"),
        ("passwd", "users", "name"),
        ("passwd", "groups", "name"),
    ];
    for (section, list, key) in KEYED {
        let Some(items) = value.get(section).and_then(|section| section.get(list)) else {
            continue;
        };
        let right = items.as_array().is_some_and(|items| {
            items.iter().all(|item| {
                item.get(key)
                    .and_then(Value::as_str)
                    .is_some_and(|key| !key.is_empty())
            })
        });
        if !right {
            return Err(Invalid::rule(
                field,
                format!("has entries in {section}.{list} without `{key}`"),
                format!("give every entry of {section}.{list} a `{key}`"),
            ));
        }
    }
    Ok(())
}
