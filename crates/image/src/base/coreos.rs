//! Finds the embed areas of CoreOS live images, in each form they have had since 2020.

use super::areas::{Area, Kargs, Place};
use super::description::{InFile, KargsFile, newline};
use crate::error::ImageError;
use crate::iso::{Iso, SYSTEM_AREA};

/// Descriptions are some hundred bytes; this is only against nonsense.
const LARGEST_DESCRIPTION: u64 = 1024 * 1024;
/// The image builder's own limit for kernel arguments.
const LARGEST_KARGS: u64 = 2048;
/// The last 24 bytes before the volume descriptors, in images of 2020 and 2021.
const IGNITION_HEADER: u64 = SYSTEM_AREA - 24;
const KARGS_HEADER: u64 = IGNITION_HEADER - 72;

/// Newest form first: later images keep the older marks for old tools.
pub(super) fn ignition(iso: &Iso) -> Result<Option<Area>, ImageError> {
    if let Some(entry) = iso.find("coreos/igninfo.json") {
        let info: InFile = parse(&iso.read(entry, LARGEST_DESCRIPTION)?, "coreos/igninfo.json")?;
        return in_file(iso, &info).map(Some);
    }
    if let Some(entry) = iso.find("images/ignition.img") {
        return Ok(Some(entry.range().into()));
    }
    let header = iso.bytes(IGNITION_HEADER..SYSTEM_AREA)?;
    if !header.starts_with(b"coreiso+") {
        return Ok(None);
    }
    let area = Area {
        offset: le64(&header, 8),
        len: le64(&header, 16),
    };
    inside(iso, area).map(Some)
}

pub(super) fn kargs(iso: &Iso) -> Result<Option<Kargs>, ImageError> {
    if let Some(entry) = iso.find("coreos/kargs.json") {
        let file: KargsFile = parse(&iso.read(entry, LARGEST_DESCRIPTION)?, "coreos/kargs.json")?;
        return described(iso, &file).map(Some);
    }
    let header = iso.bytes(KARGS_HEADER..IGNITION_HEADER)?;
    if !header.starts_with(b"coreKarg") {
        return Ok(None);
    }
    // After the length comes the place of the defaults, which we do not need: what the image has now counts.
    let places = (3..9)
        .map(|number| le64(&header, number * 8))
        .take_while(|offset| *offset != 0)
        .map(|offset| Place {
            offset,
            end: newline(),
            pad: '#',
        })
        .collect();
    agreed(iso, le64(&header, 8), places).map(Some)
}

pub(super) fn described(iso: &Iso, file: &KargsFile) -> Result<Kargs, ImageError> {
    let mut places = Vec::new();
    for place in &file.files {
        let entry = iso.find(&place.path).ok_or_else(|| {
            ImageError::bad(format!(
                "it says that kernel arguments are in {}, which is missing",
                place.path
            ))
        })?;
        let beyond = || ImageError::bad(format!("it says that kernel arguments are beyond {}", place.path));
        places.push(Place {
            offset: entry.range().start.checked_add(place.offset).ok_or_else(beyond)?,
            end: place.end.clone(),
            pad: place.pad.chars().next().filter(char::is_ascii).unwrap_or('#'),
        });
    }
    agreed(iso, file.size, places)
}

/// All places must say the same, else we would boot differently from BIOS and UEFI.
fn agreed(iso: &Iso, size: u64, places: Vec<Place>) -> Result<Kargs, ImageError> {
    if size > LARGEST_KARGS || places.is_empty() {
        return Err(ImageError::bad(
            "its description of kernel arguments makes no sense",
        ));
    }
    let mut lines = Vec::new();
    for place in &places {
        let area = Area {
            offset: place.offset,
            len: size,
        };
        lines.push(Kargs::parsed(&iso.bytes(inside(iso, area)?.range())?, place));
    }
    if lines.iter().any(|line| *line != lines[0]) {
        return Err(ImageError::bad("its boot menus disagree about kernel arguments"));
    }
    Ok(Kargs {
        current: lines.swap_remove(0),
        size,
        places,
    })
}

pub(super) fn in_file(iso: &Iso, info: &InFile) -> Result<Area, ImageError> {
    let missing = || ImageError::bad(format!("{} is missing", info.file));
    let entry = iso.find(&info.file).ok_or_else(missing)?;
    let beyond = || ImageError::bad(format!("the embed area reaches beyond {}", info.file));
    let rest = entry.len.checked_sub(info.offset).ok_or_else(beyond)?;
    let len = info.length.unwrap_or(rest);
    if len > rest {
        return Err(beyond());
    }
    inside(
        iso,
        Area {
            offset: entry.range().start + info.offset,
            len,
        },
    )
}

fn inside(iso: &Iso, area: Area) -> Result<Area, ImageError> {
    match area.offset.checked_add(area.len) {
        Some(end) if end <= iso.layout.len() && area.offset >= SYSTEM_AREA => Ok(area),
        _ => Err(ImageError::bad("an embed area lies outside of it")),
    }
}

pub(super) fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T, ImageError> {
    serde_json::from_slice(bytes).map_err(|error| ImageError::bad(format!("cannot read {name}: {error}")))
}

fn le64(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
