//! The pull secret: JSON whose `auths` holds base64 `user:password` pairs per registry.
//!
//! No message here quotes any part of the secret but registry names.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::error::{Checked, Invalid, quoted};

pub const FIELD: &str = "pull_secret";

pub fn pull_secret(text: &str) -> Checked {
    let value: Value = serde_json::from_str(text).map_err(|_| {
        Invalid::rule(
            FIELD,
            "is not JSON",
            "paste the whole pull secret file as it was given to you",
        )
    })?;
    let auths = value.get("auths").and_then(Value::as_object).ok_or_else(|| {
        Invalid::rule(
            FIELD,
            "has no `auths` object",
            "paste the whole pull secret file, it begins with {\"auths\":",
        )
    })?;
    if auths.is_empty() {
        return Err(Invalid::rule(
            FIELD,
            "names no registry",
            "add at least one registry under `auths`",
        ));
    }
    auths
        .iter()
        .try_for_each(|(registry, entry)| registry_entry(registry, entry))
}

/// The base64 credential of one registry, if the secret has it (used as agent token by some installations).
pub fn auth_of(text: &str, registry: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    value
        .get("auths")?
        .get(registry)?
        .get("auth")?
        .as_str()
        .map(str::to_owned)
}

fn registry_entry(registry: &str, entry: &Value) -> Checked {
    let registry = quoted(registry);
    let auth = entry
        .get("auth")
        .and_then(Value::as_str)
        .filter(|auth| !auth.is_empty())
        .ok_or_else(|| {
            Invalid::rule(
                FIELD,
                format!("has no `auth` for registry {registry}"),
                "add the base64 of user:password there",
            )
        })?;
    let pair = STANDARD
        .decode(auth.trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    match pair.as_deref().map(|pair| pair.split_once(':')) {
        Some(Some((user, _))) if !user.is_empty() => Ok(()),
        Some(_) | None => Err(Invalid::rule(
            FIELD,
            format!("has an `auth` for registry {registry} that is not base64 of user:password"),
            "copy the entry again from where you got it",
        )),
    }
}
