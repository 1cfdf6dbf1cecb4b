//! Who this machine is: an id that stays the same over reboots and differs from every other machine's.
//!
//! The order is the reference's, so that a machine keeps its id when the agent changes: the serial number of the
//! board, then the system's UUID, then the smallest MAC. Two things differ. Values that vendors leave in every
//! machine of a series do not count. And a machine that has nothing of its own gets an id of this boot instead of one
//! that it would share with all others like it.

use crate::collect::Machine;
use clap::ValueEnum;
use md5::{Digest, Md5};
use std::str::FromStr;
use uuid::Uuid;

/// Which facts make the id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// The first of serial, UUID and MAC that is not junk.
    #[default]
    Auto,
    Serial,
    Uuid,
    /// For machines with cloned serial numbers and UUIDs.
    Mac,
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        <Self as ValueEnum>::from_str(text, true)
    }
}

/// Left by vendors in place of a serial number; compared without case and blanks at the ends.
const JUNK_SERIALS: &[&str] = &[
    "none",
    "unknown",
    "unspecified",
    "unspecified board serial number",
    "default string",
    "not specified",
    "not available",
    "not applicable",
    "n/a",
    "na",
    "null",
    "empty",
    "to be filled by o.e.m.",
    "to be filled by oem",
    "o.e.m.",
    "oem",
    "system serial number",
    "base board serial number",
    "board serial number",
    "serial number",
    "chassis serial number",
    "mb-1234567890",
    "1234567890",
    "0123456789",
    "123456789",
    "012345678901234567",
    "invalid",
    "no enclosure",
    "filled by o.e.m.",
    "filled by oem",
    "test",
    "sernum0",
    "bss-0123456789",
    "$(default_string)",
];

/// UUIDs found in many machines.
const JUNK_UUIDS: &[&str] = &[
    "03000200-0400-0500-0006-000700080009",
    "00020003-0004-0005-0006-000700080009",
    "12345678-1234-5678-90ab-cddeefaabbcc",
    "12345678-1234-1234-1234-123456789abc",
    "00112233-4455-6677-8899-aabbccddeeff",
    "fefefefe-fefe-fefe-fefe-fefefefefefe",
    "deaddead-dead-dead-dead-deaddeaddead",
    "44454c4c-2000-1020-8020-a0c04f202020",
];

pub fn is_junk_serial(serial: &str) -> bool {
    let text = serial.trim().to_ascii_lowercase();
    let mut letters = text.chars().filter(|c| c.is_ascii_alphanumeric());
    let first = letters.next();
    // `0000000`, `xxxx`, `......`.
    let all_alike = letters.all(|c| Some(c) == first);
    all_alike || text.len() < 3 || JUNK_SERIALS.contains(&text.as_str())
}

fn uuid_that_counts(text: &str) -> Option<Uuid> {
    let id: Uuid = text.trim().to_ascii_lowercase().parse().ok()?;
    let bytes = id.as_bytes();
    let all_alike = bytes.iter().all(|byte| *byte == bytes[0]);
    (!all_alike && !JUNK_UUIDS.contains(&id.to_string().as_str())).then_some(id)
}

fn digest(text: &str) -> Uuid {
    Uuid::from_bytes(Md5::digest(text.as_bytes()).into())
}

/// The id of this machine, and what it was made from.
pub fn host_id(machine: &Machine, rule: Rule) -> (Uuid, &'static str) {
    let serial = || {
        let serial = machine.text("sys/class/dmi/id/board_serial");
        (!is_junk_serial(&serial)).then(|| (digest(&serial), "the serial number of the board"))
    };
    let uuid = || {
        uuid_that_counts(&machine.text("sys/class/dmi/id/product_uuid")).map(|id| (id, "the system's UUID"))
    };
    let mac = || smallest_mac(machine).map(|mac| (digest(&mac), "the smallest MAC"));
    let found = match rule {
        Rule::Auto => serial().or_else(uuid).or_else(mac),
        Rule::Serial => serial(),
        Rule::Uuid => uuid(),
        Rule::Mac => mac(),
    };
    found.unwrap_or_else(|| {
        let boot = machine.text("proc/sys/kernel/random/boot_id");
        (
            digest(&boot),
            "this boot: the machine has no serial number, UUID or MAC of its own",
        )
    })
}

/// Of the cards themselves: what is built on top of them may change.
pub fn smallest_mac(machine: &Machine) -> Option<String> {
    let names = machine.list("sys/class/net");
    let cards = names
        .iter()
        .filter(|name| machine.exists(&format!("sys/class/net/{name}/device")));
    let macs = cards.map(|name| machine.card_mac(name));
    macs.filter(|mac| mac.len() == 17 && mac != "00:00:00:00:00:00" && mac != "ff:ff:ff:ff:ff:ff")
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let machine = Machine::at(root.path());
        (root, machine)
    }

    const SERIAL: &str = "sys/class/dmi/id/board_serial";
    const UUID: &str = "sys/class/dmi/id/product_uuid";
    const SYSTEM: &str = "4C4C4544-0051-3610-8034-B5C04F4E3332";

    #[test]
    fn the_serial_number_comes_first_as_in_the_reference() {
        let (_root, machine) = machine(&[(SERIAL, "CN7016\n"), (UUID, SYSTEM)]);
        let (id, _) = host_id(&machine, Rule::Auto);
        // echo -n CN7016 | md5sum
        assert_eq!(id, digest("CN7016"));
        assert_eq!(
            host_id(&machine, Rule::Uuid).0,
            SYSTEM.to_lowercase().parse::<Uuid>().unwrap()
        );
    }

    #[test]
    fn junk_serial_numbers_do_not_count() {
        for junk in [
            "",
            "  ",
            "None",
            "Default string",
            "To be filled by O.E.M.",
            "0000000",
            "........",
            "XXXXXX",
            "0",
            "1234567890",
        ] {
            assert!(is_junk_serial(junk), "{junk:?}");
            let (_root, machine) = machine(&[(SERIAL, junk), (UUID, SYSTEM)]);
            assert_eq!(host_id(&machine, Rule::Auto).1, "the system's UUID", "{junk:?}");
        }
        for good in ["CN7016", "PF2ABCDE", "VMware-42 1a", "000012"] {
            assert!(!is_junk_serial(good), "{good:?}");
        }
    }

    #[test]
    fn junk_uuids_do_not_count() {
        let nic = [
            ("sys/class/net/eth1/address", "52:54:00:00:00:02"),
            ("sys/class/net/eth1/device/x", ""),
            ("sys/class/net/eth0/address", "52:54:00:00:00:01"),
            ("sys/class/net/eth0/device/x", ""),
            ("sys/class/net/br0/address", "02:00:00:00:00:01"),
        ];
        for junk in [
            "00000000-0000-0000-0000-000000000000",
            "03000200-0400-0500-0006-000700080009",
            "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
            "Not Settable",
            "",
        ] {
            let (_root, machine) = machine(&[&[(UUID, junk)], &nic[..]].concat());
            assert_eq!(
                host_id(&machine, Rule::Auto),
                (digest("52:54:00:00:00:01"), "the smallest MAC"),
                "{junk}"
            );
        }
    }

    #[test]
    fn machines_without_anything_do_not_share_an_id() {
        let boot = "proc/sys/kernel/random/boot_id";
        let (_a, one) = machine(&[(boot, "1d1c")]);
        let (_b, other) = machine(&[(boot, "2e2d")]);
        assert_ne!(host_id(&one, Rule::Auto).0, host_id(&other, Rule::Auto).0);
    }
}
