//! Reads partition tables: GPT, and the old table of four.

use std::fmt::Write as _;

pub const SECTOR: u64 = 512;
/// The table and its entries fit into the first MiB of every disk.
pub const HEAD_BYTES: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// A GUID, or two hex digits in old tables.
    pub kind: String,
    pub label: String,
    pub start_byte: u64,
    pub length_bytes: u64,
}

/// The partitions in the first bytes of a disk; none when there is no table.
pub fn read(head: &[u8]) -> Vec<Partition> {
    gpt(head, SECTOR)
        .or_else(|| gpt(head, 4096))
        .unwrap_or_else(|| old(head))
}

/// Whether firmware could start from it.
pub fn has_boot_signature(head: &[u8]) -> bool {
    head.get(510..512) == Some(&[0x55, 0xaa])
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn gpt(head: &[u8], sector: u64) -> Option<Vec<Partition>> {
    let header = head.get(usize::try_from(sector).ok()?..)?;
    if !header.starts_with(b"EFI PART") {
        return None;
    }
    let start = usize::try_from(u64_at(header, 72)?.checked_mul(sector)?).ok()?;
    let (count, size) = (
        u32_at(header, 80)?.min(1024),
        usize::try_from(u32_at(header, 84)?).ok()?,
    );
    if size < 128 {
        return None;
    }
    let entries = (0..usize::try_from(count).ok()?).map_while(|index| {
        let at = start.checked_add(index.checked_mul(size)?)?;
        head.get(at..at.checked_add(128)?)
    });
    Some(entries.filter_map(|entry| gpt_entry(entry, sector)).collect())
}

fn gpt_entry(entry: &[u8], sector: u64) -> Option<Partition> {
    let kind = &entry[..16];
    if kind.iter().all(|byte| *byte == 0) {
        return None;
    }
    let (first, last) = (u64_at(entry, 32)?, u64_at(entry, 40)?);
    let units = entry[56..128]
        .chunks_exact(2)
        .map(|two| u16::from_le_bytes([two[0], two[1]]));
    let label: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    Some(Partition {
        kind: guid(kind),
        label: String::from_utf16_lossy(&label),
        start_byte: first.checked_mul(sector)?,
        length_bytes: last.checked_sub(first)?.checked_add(1)?.checked_mul(sector)?,
    })
}

/// The first three parts are stored with their lowest byte first.
fn guid(bytes: &[u8]) -> String {
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let mut text = String::with_capacity(36);
    for (index, at) in order.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{:02x}", bytes[at]);
    }
    text
}

fn old(head: &[u8]) -> Vec<Partition> {
    if !has_boot_signature(head) {
        return Vec::new();
    }
    let entries = head[446..510].chunks_exact(16);
    entries
        .filter(|entry| entry[4] != 0)
        .filter_map(|entry| {
            Some(Partition {
                kind: format!("{:02x}", entry[4]),
                label: String::new(),
                start_byte: u64::from(u32_at(entry, 8)?) * SECTOR,
                length_bytes: u64::from(u32_at(entry, 12)?) * SECTOR,
            })
        })
        .collect()
}

/// What people call the type; the GUID itself where it has no name here.
pub fn kind_name(kind: &str) -> &str {
    match kind {
        "c12a7328-f81f-11d2-ba4b-00a0c93ec93b" => "EFI System",
        "21686148-6449-6e6f-744e-656564454649" => "BIOS boot",
        "0fc63daf-8483-4772-8e79-3d69d8477de4" => "Linux filesystem",
        "e6d6d379-f507-44c2-a23c-238f2a3df928" => "Linux LVM",
        "a19d880f-05fc-4d3b-a006-743f0f84911e" => "Linux RAID",
        "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f" => "Linux swap",
        "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7" => "Microsoft basic data",
        "9e1a2d38-c612-4316-aa26-8b49521e5a8b" => "PowerPC PReP boot",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_places_of_partitions_are_read() {
        let mut head = vec![0u8; 64 * 512];
        head[512..520].copy_from_slice(b"EFI PART");
        head[512 + 72..512 + 80].copy_from_slice(&2u64.to_le_bytes());
        head[512 + 80..512 + 84].copy_from_slice(&128u32.to_le_bytes());
        head[512 + 84..512 + 88].copy_from_slice(&128u32.to_le_bytes());
        let entry = &mut head[1024 + 128..1024 + 256];
        entry[..16].copy_from_slice(&[
            0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b,
        ]);
        entry[32..40].copy_from_slice(&2048u64.to_le_bytes());
        entry[40..48].copy_from_slice(&4095u64.to_le_bytes());
        for (at, unit) in "muster-config".encode_utf16().enumerate() {
            entry[56 + at * 2..58 + at * 2].copy_from_slice(&unit.to_le_bytes());
        }
        let found = read(&head);
        assert_eq!(found.len(), 1);
        assert_eq!(kind_name(&found[0].kind), "EFI System");
        assert_eq!(found[0].label, "muster-config");
        assert_eq!((found[0].start_byte, found[0].length_bytes), (1 << 20, 1 << 20));
    }

    #[test]
    fn nonsense_is_no_table() {
        assert_eq!(read(&[]), []);
        assert_eq!(read(&[0; 512]), []);
        let mut lying = vec![0u8; 2048];
        lying[512..520].copy_from_slice(b"EFI PART");
        lying[512 + 72..512 + 80].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(read(&lying), []);
    }
}
