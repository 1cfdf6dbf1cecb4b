//! Which features and architectures work, as two small tables that promise no more than the hub keeps.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Catalog, Version};
use crate::input::image::normal_architecture;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Supported,
    TechPreview,
    Unsupported,
    /// Does not exist in this version or on this architecture.
    Unavailable,
}

/// When a feature is there: from a minor version of 4 on, and up to one; on which architectures.
struct Row {
    id: &'static str,
    since: u32,
    until: u32,
    architectures: &'static [&'static str],
    level: Level,
}

const ALL: &[&str] = &["x86_64", "arm64", "ppc64le", "s390x", "multi"];
const COMMON: &[&str] = &["x86_64", "arm64", "multi"];
const X86: &[&str] = &["x86_64"];
const ALWAYS: u32 = u32::MAX;

const fn row(id: &'static str, since: u32, architectures: &'static [&'static str]) -> Row {
    Row {
        id,
        since,
        until: ALWAYS,
        architectures,
        level: Level::Supported,
    }
}

const TABLE: &[Row] = &[
    row("SNO", 8, ALL),
    row("SINGLE_NODE_EXPANSION", 11, COMMON),
    Row {
        until: 14,
        ..row("VIP_AUTO_ALLOC", 0, X86)
    },
    Row {
        until: 14,
        ..row("SDN_NETWORK_TYPE", 0, ALL)
    },
    row("OVN_NETWORK_TYPE", 0, ALL),
    row("CUSTOM_MANIFEST", 0, ALL),
    row("CLUSTER_MANAGED_NETWORKING", 0, COMMON),
    row("USER_MANAGED_NETWORKING", 0, ALL),
    row("PLATFORM_MANAGED_NETWORKING", 0, COMMON),
    row("DUAL_STACK", 8, ALL),
    row("DUAL_STACK_VIPS", 12, COMMON),
    row("BAREMETAL_PLATFORM", 0, COMMON),
    row("NONE_PLATFORM", 0, ALL),
    row("VSPHERE_INTEGRATION", 0, X86),
    row("NUTANIX_INTEGRATION", 11, X86),
    row("EXTERNAL_PLATFORM", 14, COMMON),
    row("FULL_ISO", 0, ALL),
    row("MINIMAL_ISO", 0, &["x86_64", "arm64", "ppc64le", "multi"]),
    row("USER_MANAGED_LOAD_BALANCER", 16, COMMON),
    Row {
        level: Level::TechPreview,
        ..row("TNA", 19, COMMON)
    },
    Row {
        level: Level::TechPreview,
        ..row("TNF", 20, COMMON)
    },
    row("NON_STANDARD_HA_CONTROL_PLANE", 18, COMMON),
];

/// Levels for one version and architecture (x86_64 when none is given).
pub fn features(version: &str, architecture: Option<&str>) -> BTreeMap<&'static str, Level> {
    let version = Version::parse(version).unwrap_or_default();
    let architecture = architecture.map_or("x86_64", normal_architecture);
    // Anything after 4.x counts as later than every row.
    let minor = if version.major > 4 { ALWAYS } else { version.minor };
    let level = |row: &Row| {
        let there = (row.since..=row.until).contains(&minor) && row.architectures.contains(&architecture);
        if there { row.level } else { Level::Unavailable }
    };
    TABLE.iter().map(|row| (row.id, level(row))).collect()
}

/// An architecture is supported when this hub has both an OS image and a release for it.
pub fn architectures(catalog: &Catalog, version: &str) -> BTreeMap<&'static str, Level> {
    const WORDS: [(&str, &str); 4] = [
        ("X86_64_ARCHITECTURE", "x86_64"),
        ("ARM64_ARCHITECTURE", "arm64"),
        ("PPC64LE_ARCHITECTURE", "ppc64le"),
        ("S390X_ARCHITECTURE", "s390x"),
    ];
    let level = |there: bool| {
        if there {
            Level::Supported
        } else {
            Level::Unavailable
        }
    };
    let mut map: BTreeMap<&'static str, Level> = WORDS
        .iter()
        .map(|(id, word)| {
            let there =
                catalog.release(version, word).is_ok() && catalog.os_image(Some(version), word).is_ok();
            (*id, level(there))
        })
        .collect();
    map.insert(
        "MULTIARCH_RELEASE_IMAGE",
        level(catalog.release(version, "multi").is_ok()),
    );
    map
}
