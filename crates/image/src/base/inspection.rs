//! What can be told of an image without serving it.

use super::areas::{Area, Areas, Family};
use super::description::{Description, Role};
use super::{OWN_DESCRIPTION, coreos, find, sha256};
use crate::build::menu::CONFIG;
use crate::build::{SYSTEM_AREA_FILLED, SYSTEM_AREA_MARK};
use crate::error::ImageError;
use crate::iso::Iso;
use crate::layout::Layout;
use serde::Serialize;
use std::fs::File;
use std::sync::Arc;

/// Volume names of CoreOS images are one of these and the build's version.
const COREOS_NAMES: &[&str] = &["fedora-coreos-", "rhcos-", "scos-", "rhel-coreos-"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Inspection {
    pub family: Family,
    /// Of Muster's own images only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    pub volume: String,
    /// Of the system in it, or of the Muster that built it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_version: Option<String>,
    pub bytes: u64,
    pub config: Config,
    /// What the boot menus pass to the kernel, when they have room for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<String>,
    pub areas: Vec<Named>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Whether somebody has put a configuration in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    Embedded,
    None,
    /// There is no area for one; it is made when the image is served.
    NoArea,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    pub name: &'static str,
    pub offset: u64,
    pub length: u64,
}

/// Reads directories and areas; the whole file only for its checksum.
pub fn inspect(file: &Arc<File>, with_sha256: bool) -> Result<Inspection, ImageError> {
    let bytes = file.metadata()?.len();
    let iso = Iso::open(Layout::of_file(file, 0..bytes))?;
    let areas = find(&iso)?;
    let own = own(&iso)?;
    let system = own.as_ref().is_some_and(|own| own.role == Role::System);
    let mut named = named(&areas);
    let mut config = match areas.payload {
        Some(area) => filled(&iso, area)?,
        None => Config::NoArea,
    };
    if let Some(entry) = iso.find(CONFIG).filter(|_| system) {
        named.push(Named {
            name: "config",
            offset: entry.range().start,
            length: entry.len,
        });
        config = system_config(&iso, entry.range().start)?;
    }
    Ok(Inspection {
        family: areas.family,
        role: own.as_ref().map(|own| own.role),
        version: version(&areas, own.as_ref()),
        kernel_version: own
            .map(|own| own.kernel_version)
            .filter(|version| !version.is_empty()),
        volume: areas.volume,
        bytes,
        config,
        kernel_arguments: areas.kargs.map(|kargs| kargs.current),
        areas: named,
        sha256: with_sha256.then(|| sha256(file, bytes)).transpose()?,
    })
}

fn own(iso: &Iso) -> Result<Option<Description>, ImageError> {
    let Some(entry) = iso.find(OWN_DESCRIPTION) else {
        return Ok(None);
    };
    coreos::parse(&iso.read(entry, 1024 * 1024)?, OWN_DESCRIPTION).map(Some)
}

fn version(areas: &Areas, own: Option<&Description>) -> Option<String> {
    let version = match areas.family {
        Family::Muster => own.map(|own| own.version.clone()),
        Family::Coreos => COREOS_NAMES
            .iter()
            .find_map(|name| areas.volume.strip_prefix(name))
            .map(str::to_owned),
        Family::Generic => None,
    };
    version.filter(|version| !version.is_empty())
}

/// In the order they stand in the image.
fn named(areas: &Areas) -> Vec<Named> {
    let single = [
        ("payload", areas.payload),
        ("kernel", areas.kernel),
        ("initrd", areas.initrd),
        ("rootfs", areas.rootfs),
        ("initrd-addrsize", areas.initrd_addrsize),
        ("ins-file", areas.ins_file),
        ("minimal-table", areas.miniso),
    ];
    let kargs = areas.kargs.iter().flat_map(|kargs| {
        kargs.places.iter().map(|place| Named {
            name: "kernel-arguments",
            offset: place.offset,
            length: kargs.size,
        })
    });
    let single = single.into_iter().filter_map(|(name, area)| {
        area.map(|area| Named {
            name,
            offset: area.offset,
            length: area.len,
        })
    });
    let mut list: Vec<Named> = single.chain(kargs).collect();
    list.sort_by_key(|area| area.offset);
    list
}

/// An area without a configuration is all zeros.
fn filled(iso: &Iso, area: Area) -> Result<Config, ImageError> {
    let bytes = iso.bytes(area.range())?;
    Ok(match bytes.iter().all(|byte| *byte == 0) {
        true => Config::None,
        false => Config::Embedded,
    })
}

fn system_config(iso: &Iso, at: u64) -> Result<Config, ImageError> {
    let mark = iso.bytes(at..at + SYSTEM_AREA_MARK.len() as u64)?;
    Ok(match mark {
        _ if mark == SYSTEM_AREA_FILLED => Config::Embedded,
        _ if mark == SYSTEM_AREA_MARK => Config::None,
        _ => Config::NoArea,
    })
}
