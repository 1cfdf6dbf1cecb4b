//! Images that nobody built: whatever the bytes say, reading ends with an answer, and soon.

use super::rewrite::{Changes, rewrite};
use super::{Iso, MOST_READINGS, SECTOR};
use crate::error::ImageError;
use crate::layout::Layout;

const SECTORS: usize = 32;
const ROOT: u32 = 22;
const FOLDER: u32 = 23;
const SECOND_ROOT: u32 = 24;
const CONTINUED: u32 = 25;
const CATALOG: u32 = 26;
const KERNEL: u32 = 27;
const INITRD: u32 = 29;
const IS_FOLDER: u8 = 2;
const MORE: u8 = 0x80;

fn both(value: u32) -> Vec<u8> {
    [value.to_le_bytes(), value.to_be_bytes()].concat()
}

/// A directory record; `more` is what Rock Ridge says.
fn record(name: &[u8], sector: u32, len: u32, flags: u8, more: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 33];
    bytes[2..10].copy_from_slice(&both(sector));
    bytes[10..18].copy_from_slice(&both(len));
    bytes[25] = flags;
    bytes[32] = u8::try_from(name.len()).unwrap();
    bytes.extend_from_slice(name);
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    bytes.extend_from_slice(more);
    bytes[0] = u8::try_from(bytes.len()).unwrap();
    bytes
}

fn named(name: &str) -> Vec<u8> {
    let mut field = vec![b'N', b'M', u8::try_from(name.len() + 5).unwrap(), 1, 0];
    field.extend_from_slice(name.as_bytes());
    field
}

fn continued(at: u32, len: u32) -> Vec<u8> {
    let mut field = vec![b'C', b'E', 28, 1];
    for number in [CONTINUED, at, len] {
        field.extend_from_slice(&both(number));
    }
    field
}

fn put(image: &mut [u8], sector: u32, at: usize, bytes: &[u8]) {
    let start = sector as usize * 2048 + at;
    image[start..start + bytes.len()].copy_from_slice(bytes);
}

/// Two trees, a boot catalog, a name that continues elsewhere, and a file in two pieces.
fn image() -> Vec<u8> {
    let mut image = vec![0; SECTORS * 2048];
    for (sector, kind, root) in [(16, 1, ROOT), (17, 2, SECOND_ROOT)] {
        put(&mut image, sector, 0, &[kind]);
        put(&mut image, sector, 1, b"CD001\x01");
        put(&mut image, sector, 40, b"SMALL                           ");
        put(&mut image, sector, 80, &both(SECTORS as u32));
        put(&mut image, sector, 132, &both(24));
        put(&mut image, sector, 140, &20_u32.to_le_bytes());
        put(&mut image, sector, 148, &21_u32.to_be_bytes());
        put(&mut image, sector, 156, &record(&[0], root, 2048, IS_FOLDER, &[]));
    }
    put(&mut image, 18, 0, b"\0CD001\x01EL TORITO SPECIFICATION");
    put(&mut image, 18, 0x47, &CATALOG.to_le_bytes());
    put(&mut image, 19, 0, b"\xffCD001\x01");
    for (table, number) in [(20, ROOT.to_le_bytes()), (21, ROOT.to_be_bytes())] {
        put(&mut image, table, 0, &[1, 0]);
        put(&mut image, table, 2, &number);
    }
    put(&mut image, CATALOG, 32, &[0x88]);
    put(&mut image, CATALOG, 40, &KERNEL.to_le_bytes());
    let own = |folder: u32| {
        [
            record(&[0], folder, 2048, IS_FOLDER, &[]),
            record(&[1], ROOT, 2048, IS_FOLDER, &[]),
        ]
        .concat()
    };
    let long = [named("vm"), continued(0, 10)].concat();
    put(&mut image, CONTINUED, 0, &named("linuz")[..]);
    let root = [
        own(ROOT),
        record(b"BOOT", FOLDER, 2048, IS_FOLDER, &named("boot")),
        record(b"VMLINUZ.;1", KERNEL, 4096, 0, &long),
    ];
    put(&mut image, ROOT, 0, &root.concat());
    let folder = [
        own(FOLDER),
        record(b"INITRD.;1", INITRD, 2048, MORE, &named("initrd")),
        record(b"INITRD.;1", INITRD + 1, 2048, 0, &named("initrd")),
    ];
    put(&mut image, FOLDER, 0, &folder.concat());
    let wide: Vec<u8> = "vmlinuz".encode_utf16().flat_map(u16::to_be_bytes).collect();
    put(
        &mut image,
        SECOND_ROOT,
        0,
        &[own(SECOND_ROOT), record(&wide, KERNEL, 4096, 0, &[])].concat(),
    );
    image
}

fn open(bytes: &[u8]) -> Result<Iso, ImageError> {
    Iso::open(Layout::of_bytes(bytes.to_vec()))
}

/// Everything that is done with an image somebody names.
fn used(bytes: &[u8]) -> bool {
    let Ok(iso) = open(bytes) else { return false };
    assert!(iso.left <= bytes.len() as u64 * MOST_READINGS);
    let listed: usize = iso.entries.iter().map(|entry| entry.records.len()).sum();
    assert!(
        listed + iso.pointers.len() < bytes.len() * 2,
        "more than there is room for"
    );
    let whole = iso.whole().is_ok();
    for path in ["vmlinuz", "boot/initrd"] {
        if let Some(entry) = iso.find(path) {
            let _ = iso.read(entry, 1 << 20);
        }
        let changes = Changes {
            emptied: vec![path.to_owned()],
            replaced: vec![("vmlinuz".to_owned(), Layout::of_zeros(5000))],
        };
        let _ = rewrite(&iso, changes);
    }
    whole
}

#[test]
fn the_small_image_is_one() {
    let iso = open(&image()).unwrap();
    assert!(used(&image()));
    let files: Vec<_> = iso
        .entries
        .iter()
        .map(|entry| (entry.path.as_str(), entry.len, entry.records.len()))
        .collect();
    assert_eq!(files, [("vmlinuz", 4096, 2), ("boot/initrd", 4096, 2)]);
}

#[test]
fn more_of_a_file_that_never_began_is_refused() {
    let mut bytes = image();
    // The folder says that there is more of it; a file follows.
    let root = ROOT as usize * 2048;
    let at = root + record(&[0], 0, 0, 0, &[]).len() * 2;
    bytes[at + 25] = IS_FOLDER | MORE;
    let error = open(&bytes).unwrap_err();
    assert!(
        error.to_string().contains("a directory in it is broken"),
        "{error}"
    );
}

#[test]
fn directories_that_lead_in_circles_are_refused_before_they_are_all_read() {
    // Each folder claims all the rest of the image, and so all the folders behind it.
    const LARGER: u32 = 256;
    let mut bytes = image();
    bytes.truncate(ROOT as usize * 2048);
    bytes.resize(LARGER as usize * 2048, 0);
    let rest = |sector: u32| (LARGER - sector) * 2048;
    for sector in ROOT..LARGER - 1 {
        let next = record(b"A", sector + 1, rest(sector + 1), IS_FOLDER, &[]);
        put(&mut bytes, sector, 0, &next);
    }
    let root = record(&[0], ROOT, rest(ROOT), IS_FOLDER, &[]);
    put(&mut bytes, 16, 156, &root);
    let error = open(&bytes).unwrap_err();
    assert!(error.to_string().contains("lead in circles"), "{error}");
}

#[test]
fn no_mutation_makes_reading_panic_or_takes_more_work_than_the_image_is_long() {
    let good = image();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 11).unwrap() % most
    };
    // Where descriptors, tables and directories are; the rest is contents.
    let meta = 16 * 2048..KERNEL as usize * 2048;
    let used_bytes: Vec<usize> = meta
        .clone()
        .filter(|at| good[*at] != 0 || good[at - 1] != 0)
        .collect();
    let special = [0, 1, 2, 34, 0x7f, 0x80, 0x82, 0xff, b'C', b'N'];
    let mut still = 0;
    for _ in 0..30_000 {
        let mut bytes = good.clone();
        for _ in 0..=next(4) {
            let at = if next(8) == 0 {
                meta.start + next(meta.len())
            } else {
                used_bytes[next(used_bytes.len())]
            };
            bytes[at] = match next(3) {
                0 => special[next(special.len())],
                1 => bytes[at] ^ (1 << next(8)),
                _ => u8::try_from(next(256)).unwrap(),
            };
        }
        if next(16) == 0 {
            bytes.truncate(next(bytes.len()));
        }
        still += usize::from(used(&bytes));
    }
    assert!(still > 1000, "most mutations hit nothing that counts: {still}");
    assert_eq!(SECTOR, 2048);
}
