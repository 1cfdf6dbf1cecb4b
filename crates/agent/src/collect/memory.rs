//! Memory: what is built in, and what the kernel can use.

use super::Machine;
use muster_contract::v2::agent::inventory::Memory;

const MEMORY_DEVICE: u8 = 17;

pub fn memory(machine: &Machine) -> Memory {
    let usable_bytes = total(&machine.text("proc/meminfo"));
    let tables = std::fs::read(machine.path("sys/firmware/dmi/tables/DMI")).unwrap_or_default();
    let sources = [
        (from_dmi(&tables), "dmidecode"),
        (from_blocks(machine), "ghw"),
        (usable_bytes, "meminfo"),
    ];
    let known = sources.into_iter().find(|(bytes, _)| *bytes > 0);
    let (physical_bytes, method) = known.unwrap_or((0, "meminfo"));
    Memory {
        physical_bytes,
        usable_bytes,
        physical_bytes_method: method.into(),
    }
}

fn total(meminfo: &str) -> i64 {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: i64 = line
        .and_then(|rest| rest.split_ascii_whitespace().next())
        .and_then(|number| number.parse().ok())
        .unwrap_or_default();
    kib * 1024
}

/// The sum of all memory modules in the firmware's tables.
fn from_dmi(tables: &[u8]) -> i64 {
    let mut sum = 0;
    let mut at = 0;
    while let Some(&[kind, length]) = tables.get(at..at + 2) {
        let length = usize::from(length);
        let Some(record) = tables.get(at..at + length).filter(|_| length >= 4) else {
            break;
        };
        if kind == MEMORY_DEVICE {
            sum += module_bytes(record);
        }
        // Texts follow, ended by two zero bytes.
        let texts = &tables[at + length..];
        let Some(end) = texts.windows(2).position(|two| two == [0, 0]) else {
            break;
        };
        at += length + end + 2;
    }
    sum
}

fn module_bytes(record: &[u8]) -> i64 {
    let Some(&[low, high]) = record.get(12..14) else {
        return 0;
    };
    match u16::from_le_bytes([low, high]) {
        // Not there, or not known.
        0 | 0xffff => 0,
        0x7fff => {
            let mib = record
                .get(28..32)
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u32::from_le_bytes);
            i64::from(mib & 0x7fff_ffff) << 20
        }
        size if size & 0x8000 != 0 => i64::from(size & 0x7fff) << 10,
        size => i64::from(size) << 20,
    }
}

/// The kernel reports memory that can be removed while running in blocks.
fn from_blocks(machine: &Machine) -> i64 {
    let size = i64::from_str_radix(&machine.text("sys/devices/system/memory/block_size_bytes"), 16)
        .unwrap_or_default();
    let blocks = machine.list("sys/devices/system/memory");
    let online = blocks.iter().filter(|name| {
        name.starts_with("memory") && machine.is_set(&format!("sys/devices/system/memory/{name}/online"))
    });
    size * i64::try_from(online.count()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(size: u16, extended_mib: u32) -> Vec<u8> {
        let mut record = vec![0; 34];
        record[0] = MEMORY_DEVICE;
        record[1] = 34;
        record[12..14].copy_from_slice(&size.to_le_bytes());
        record[28..32].copy_from_slice(&extended_mib.to_le_bytes());
        record.extend_from_slice(b"DIMM 0\0\0");
        record
    }

    #[test]
    fn modules_are_summed_up_over_all_spellings_of_their_size() {
        let tables = [
            module(16384, 0),
            module(0, 0),
            module(0x7fff, 65536),
            module(0x8000 | 512, 0),
            module(0xffff, 0),
        ];
        assert_eq!(
            from_dmi(&tables.concat()),
            (16384 << 20) + (65536 << 20) + (512 << 10)
        );
    }

    #[test]
    fn broken_tables_end_the_sum() {
        let mut tables = module(1024, 0);
        tables.extend_from_slice(&[17, 200, 0]);
        assert_eq!(from_dmi(&tables), 1024 << 20);
        assert_eq!(from_dmi(&[17, 0, 0, 0]), 0);
    }
}
