//! Disk choices of a host and disk encryption of a cluster.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cluster::ROLE_GROUPS;
use super::error::{Checked, Invalid};
use super::schema;

/// `disks_selected_config` as (id, role): at most one disk to install on. Whether that disk exists and may be
/// used is the host's matter (a conflict, not an invalid input).
pub fn disks_selected(config: &[(String, Option<String>)]) -> Checked {
    for (index, (id, role)) in config.iter().enumerate() {
        schema::length(&format!("disks_selected_config.{index}.id"), id, 1, 1024)?;
        if let Some(role) = role {
            schema::one_of(
                &format!("disks_selected_config.{index}.role"),
                role,
                &["none", "install"],
            )?;
        }
    }
    Ok(())
}

/// `disks_skip_formatting` as (disk id, skip): every disk named must be one the host reported.
pub fn disks_skip_formatting(config: &[(String, bool)], known: &[&str]) -> Checked {
    let reported: BTreeSet<&str> = known.iter().copied().collect();
    match config.iter().find(|(id, _)| !reported.contains(id.as_str())) {
        None => Ok(()),
        Some((id, _)) => Err(Invalid::rule(
            "disks_skip_formatting",
            format!(
                "names the disk {}, which this host has not reported",
                super::error::quoted(id)
            ),
            match known {
                [] => "wait for the host's inventory".to_owned(),
                known => format!("use one of {}", known.join(", ")),
            },
        )),
    }
}

/// Encryption: with Tang, at least one server with address and thumbprint.
pub fn disk_encryption(enable_on: Option<&str>, mode: Option<&str>, tang_servers: Option<&str>) -> Checked {
    if let Some(word) = enable_on {
        schema::one_of("disk_encryption.enable_on", word, &ROLE_GROUPS)?;
    }
    if let Some(word) = mode {
        schema::one_of("disk_encryption.mode", word, &["tpmv2", "tang"])?;
    }
    let on = enable_on.is_some_and(|word| word != "none");
    if !(on && mode == Some("tang")) {
        return Ok(());
    }
    let servers: Option<Vec<Value>> = tang_servers.and_then(|text| serde_json::from_str(text).ok());
    let whole = |server: &Value| {
        let text = |key: &str| {
            server
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let url = text("url");
        (url.starts_with("http://") || url.starts_with("https://")) && !text("thumbprint").is_empty()
    };
    if servers.is_some_and(|servers| !servers.is_empty() && servers.iter().all(whole)) {
        return Ok(());
    }
    Err(Invalid::rule(
        "disk_encryption.tang_servers",
        "does not list usable Tang servers",
        "give a JSON list of {\"url\": \"http://host\", \"thumbprint\": \"…\"}",
    ))
}
