//! How images describe themselves: Muster's own in `muster/image.json`, CoreOS in two files of the same words.

use serde::{Deserialize, Serialize};

/// What the machine is that boots from the image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is discovered.
    #[default]
    Discovery,
    /// It is installed; for trials without any vendor's system.
    System,
}

/// `muster/image.json`: what is where. Paths are those inside the ISO.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    #[serde(default)]
    pub role: Role,
    /// Of the program that built it.
    #[serde(default)]
    pub version: String,
    #[serde(default)]
    pub kernel_version: String,
    pub kernel: String,
    pub initrd: String,
    /// Absent in systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<InFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kargs: Option<KargsFile>,
    /// The name of the configuration inside the payload's archive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_path: Option<String>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFile {
    pub file: String,
    #[serde(default)]
    pub offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
}

/// Where kernel arguments stand, in the words of CoreOS's `kargs.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KargsFile {
    #[serde(default)]
    pub default: String,
    pub size: u64,
    pub files: Vec<KargsPlace>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KargsPlace {
    pub path: String,
    pub offset: u64,
    #[serde(default = "hash")]
    pub pad: String,
    #[serde(default = "newline")]
    pub end: String,
}

pub(crate) fn hash() -> String {
    "#".to_owned()
}

pub(crate) fn newline() -> String {
    "\n".to_owned()
}
