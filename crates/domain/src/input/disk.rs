//! Disk choices of a host and disk encryption of a cluster.

use std::collections::BTreeSet;

use muster_vocabulary::{DiskEncryptionMode, DiskRole, RoleSet};
use serde_json::Value;

use super::error::{Checked, Invalid};
use super::schema;

/// `disks_selected_config` as (id, role): at most one disk to install on. Whether that disk exists and may be
/// used is the host's matter (a conflict, not an invalid input).
pub fn disks_selected(config: &[(String, Option<String>)]) -> Checked {
    for (index, (id, role)) in config.iter().enumerate() {
        schema::length(&format!("disks_selected_config.{index}.id"), id, 1, 1024)?;
        if let Some(role) = role {
            schema::word::<DiskRole>(&format!("disks_selected_config.{index}.role"), role)?;
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
    let enable_on = enable_on
        .map(|word| schema::word::<RoleSet>("disk_encryption.enable_on", word))
        .transpose()?;
    let mode = mode
        .map(|word| schema::word::<DiskEncryptionMode>("disk_encryption.mode", word))
        .transpose()?;
    let on = enable_on.is_some_and(|roles| roles != RoleSet::None);
    if !(on && mode == Some(DiskEncryptionMode::Tang)) {
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
