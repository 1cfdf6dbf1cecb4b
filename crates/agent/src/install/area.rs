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
use std::os::unix::fs::FileExt;

pub const LABEL: &str = "muster-config";
const PLACEHOLDER: &[u8; 16] = b"MUSTER-CONFIG-0\n";
const RECORD: &[u8; 16] = b"MUSTER-CONFIG-1\n";
const HEADER: usize = 512;
const ALIGNMENT: usize = 512;
/// Larger ones are not configs but damage.
const LARGEST_CONFIG: usize = 64 << 20;

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
    marked(piece, PLACEHOLDER)
        .filter_map(|at| {
            let length = u64::from_le_bytes(piece.get(at + 16..at + 24)?.try_into().ok()?);
            (length > HEADER as u64).then_some(Area {
                start_byte: offset + at as u64,
                length_bytes: length,
            })
        })
        .next()
}

fn marked<'a>(piece: &'a [u8], mark: &'static [u8; 16]) -> impl Iterator<Item = usize> + 'a {
    let blocks = piece.chunks(ALIGNMENT).enumerate();
    blocks
        .filter(|(_, block)| block.starts_with(mark))
        .map(|(index, _)| index * ALIGNMENT)
}

/// How far a disk without a label is searched: an ISO tells its size, of others nobody installs so much to memory.
const FARTHEST: u64 = 4 << 30;
const PIECE: usize = 4 << 20;
/// Where an ISO says that it is one, and how long.
const VOLUME: usize = 32768;

fn volume_bytes(head: &[u8]) -> Option<u64> {
    let volume = head.get(VOLUME..VOLUME + 2048)?;
    let blocks = u32::from_le_bytes(volume.get(80..84)?.try_into().ok()?);
    (volume.get(1..6)? == b"CD001").then_some(u64::from(blocks) * 2048)
}

/// The config on a disk that an image was written to. Nothing behind the end of the image counts: it is left from
/// an earlier one.
pub fn read_back(disk: &impl FileExt) -> Option<Vec<u8>> {
    let mut head = vec![0; partition::HEAD_BYTES];
    let length = fill(disk, &mut head, 0);
    head.truncate(length);
    if let Some(area) = from_table(&head) {
        return read_record(disk, area.start_byte);
    }
    let end = volume_bytes(&head).unwrap_or(FARTHEST);
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < end {
        let length = fill(disk, &mut piece, offset);
        if length == 0 {
            break;
        }
        let found = marked(&piece[..length], RECORD).map(|at| offset + at as u64);
        if let Some(config) = found.filter(|at| *at < end).find_map(|at| read_record(disk, at)) {
            return Some(config);
        }
        offset += length as u64;
    }
    None
}

fn read_record(disk: &impl FileExt, start: u64) -> Option<Vec<u8>> {
    let mut header = [0; HEADER];
    disk.read_exact_at(&mut header, start).ok()?;
    if !header.starts_with(RECORD) {
        return None;
    }
    let length = usize::try_from(u64::from_le_bytes(header.get(16..24)?.try_into().ok()?)).ok()?;
    if length > LARGEST_CONFIG {
        return None;
    }
    let mut area = vec![0; HEADER + length];
    disk.read_exact_at(&mut area, start).ok()?;
    config(&area).map(<[u8]>::to_vec)
}

/// As much as there is.
fn fill(disk: &impl FileExt, buffer: &mut [u8], offset: u64) -> usize {
    let mut length = 0;
    while let Ok(read @ 1..) = disk.read_at(&mut buffer[length..], offset + length as u64) {
        length += read;
    }
    length
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
    fn disk(bytes: &[u8]) -> std::fs::File {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn record_of(config: &[u8]) -> Vec<u8> {
        let area = Area {
            start_byte: 0,
            length_bytes: 65536,
        };
        record(area, config).unwrap()
    }

    #[test]
    fn a_config_is_found_on_the_disk_it_was_written_to() {
        let mut bytes = vec![0; 9 << 20];
        assert_eq!(read_back(&disk(&bytes)), None);
        let written = record_of(b"{\"new\":1}");
        bytes[(5 << 20)..(5 << 20) + written.len()].copy_from_slice(&written);
        assert_eq!(read_back(&disk(&bytes)).unwrap(), b"{\"new\":1}");
        // A damaged one does not hide the next.
        let mut damaged = record_of(b"{}");
        damaged[513] ^= 1;
        bytes[(2 << 20)..(2 << 20) + damaged.len()].copy_from_slice(&damaged);
        assert_eq!(read_back(&disk(&bytes)).unwrap(), b"{\"new\":1}");
    }

    #[test]
    fn what_lies_behind_the_image_is_from_an_earlier_one() {
        let mut bytes = vec![0; 9 << 20];
        bytes[VOLUME..VOLUME + 6].copy_from_slice(b"\x01CD001");
        bytes[VOLUME + 80..VOLUME + 84].copy_from_slice(&2048u32.to_le_bytes());
        let old = record_of(b"{\"old\":1}");
        bytes[(5 << 20)..(5 << 20) + old.len()].copy_from_slice(&old);
        assert_eq!(read_back(&disk(&bytes)), None);
        let new = record_of(b"{\"new\":1}");
        bytes[(3 << 20)..(3 << 20) + new.len()].copy_from_slice(&new);
        assert_eq!(read_back(&disk(&bytes)).unwrap(), b"{\"new\":1}");
    }
}
