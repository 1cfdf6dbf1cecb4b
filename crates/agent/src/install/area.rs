//! Where a disk image receives the config of the host it is written to.
//!
//! CoreOS images keep their config in a file system, which coreos-installer knows how to write. An image that this agent
//! writes itself has a marked area instead, in one of two forms:
//!
//! - a GPT partition with the label `muster-config`: all of it is the area;
//! - 512-byte-aligned bytes that start with `MUSTER-CONFIG-0\n` and the area's size as a 64-bit number, lowest byte
//!   first. It may be a file inside any file system that does not move its content, ISO 9660 for example.
//!
//! The agent writes a record over the start of the area: 16 bytes `MUSTER-CONFIG-1\n`, the length of the config as a
//! 64-bit number, its sha256, zeros up to byte 512, and then the config itself (Ignition JSON). The system finds it
//! again by the label or by the 16 bytes, and checks it by the sum.

use crate::collect::partition;
use sha2::{Digest, Sha256};

pub const LABEL: &str = "muster-config";
const PLACEHOLDER: &[u8; 16] = b"MUSTER-CONFIG-0\n";
const RECORD: &[u8; 16] = b"MUSTER-CONFIG-1\n";
const HEADER: usize = 512;
const ALIGNMENT: usize = 512;

/// A place for a config on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    pub start_byte: u64,
    pub length_bytes: u64,
}

/// The area named by the partition table in the first bytes of an image.
pub fn from_table(head: &[u8]) -> Option<Area> {
    let table = partition::read(head);
    let found = table.iter().find(|part| part.label == LABEL)?;
    Some(Area {
        start_byte: found.start_byte,
        length_bytes: found.length_bytes,
    })
}

/// The first marked area in a piece of an image that starts at `offset`, which is a multiple of 512.
pub fn from_marker(piece: &[u8], offset: u64) -> Option<Area> {
    let blocks = piece.chunks(ALIGNMENT).enumerate();
    blocks
        .filter(|(_, block)| block.starts_with(PLACEHOLDER))
        .find_map(|(index, block)| {
            let length = u64::from_le_bytes(block.get(16..24)?.try_into().ok()?);
            let start_byte = offset + u64::try_from(index * ALIGNMENT).ok()?;
            (length > HEADER as u64).then_some(Area {
                start_byte,
                length_bytes: length,
            })
        })
}

/// The bytes to write at the start of the area; nothing when the config does not fit.
pub fn record(area: Area, config: &[u8]) -> Option<Vec<u8>> {
    let mut record = Vec::with_capacity(HEADER + config.len());
    record.extend_from_slice(RECORD);
    record.extend_from_slice(&u64::try_from(config.len()).ok()?.to_le_bytes());
    record.extend_from_slice(&Sha256::digest(config));
    record.resize(HEADER, 0);
    record.extend_from_slice(config);
    // Disks are written in whole blocks.
    record.resize(record.len().next_multiple_of(ALIGNMENT), 0);
    (u64::try_from(record.len()).ok()? <= area.length_bytes).then_some(record)
}

/// The config in an area; nothing when there is none or it is damaged.
pub fn config(area: &[u8]) -> Option<&[u8]> {
    if !area.starts_with(RECORD) {
        return None;
    }
    let length = usize::try_from(u64::from_le_bytes(area.get(16..24)?.try_into().ok()?)).ok()?;
    let config = area.get(HEADER..HEADER.checked_add(length)?)?;
    (area.get(24..56)? == &Sha256::digest(config)[..]).then_some(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_is_read_back_and_damage_is_noticed() {
        let area = Area {
            start_byte: 0,
            length_bytes: 4096,
        };
        let mut record = record(area, b"{\"ignition\":{}}").unwrap();
        assert_eq!(config(&record).unwrap(), b"{\"ignition\":{}}");
        record[515] ^= 1;
        assert_eq!(config(&record), None);
        assert_eq!(config(&[0; 600]), None);
        assert_eq!(super::record(area, &[b' '; 4096]), None);
    }

    #[test]
    fn marked_areas_are_found_where_they_are_aligned() {
        let mut piece = vec![0; 4096];
        piece[1100..1116].copy_from_slice(PLACEHOLDER);
        piece[1536..1552].copy_from_slice(PLACEHOLDER);
        piece[1552..1560].copy_from_slice(&65536u64.to_le_bytes());
        let area = from_marker(&piece, 1 << 20).unwrap();
        assert_eq!(
            area,
            Area {
                start_byte: (1 << 20) + 1536,
                length_bytes: 65536
            }
        );
    }
}
