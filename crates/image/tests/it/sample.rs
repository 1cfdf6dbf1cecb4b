//! Base images for tests: the genuine ones, unpacked into files that vanish with the test.

use muster_image::Layout;
use muster_image::base::{Base, import};
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;

pub const ERAS: &[&str] = &[
    "2020-09",
    "2021-01",
    "2021-09",
    "2021-12",
    "2022-02",
    "2022-09",
    "2023-03.s390x",
    "2023-03.x86_64",
    "2023-07.s390x",
    "2023-07.x86_64",
];

pub fn bytes(era: &str) -> Vec<u8> {
    let path = format!(
        "{}/tests/fixtures/embed-areas-{era}.iso.xz",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut bytes = Vec::new();
    let packed = File::open(path).unwrap();
    lzma_rust2::XzReader::new(packed, true)
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

pub fn file(bytes: &[u8]) -> Arc<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Arc::new(file)
}

pub fn base(bytes: &[u8]) -> Base {
    let file = file(bytes);
    let areas = import(&file).unwrap();
    Base::open(file, areas).unwrap()
}

pub fn era(name: &str) -> Base {
    base(&bytes(name))
}

pub fn whole(layout: &Layout) -> Vec<u8> {
    layout.bytes(0..layout.len()).unwrap()
}

/// Members of the archives in an embed area or at the end of an initrd, as the kernel would unpack them.
pub fn unpacked(mut area: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut members = Vec::new();
    loop {
        let zeros = area.iter().take_while(|byte| **byte == 0).count();
        area = &area[zeros..];
        if area.is_empty() {
            return members;
        }
        if area.starts_with(b"070701") {
            area = archive(area, &mut members);
            continue;
        }
        assert_eq!(&area[..2], [0x1f, 0x8b], "neither an archive nor a packed one");
        let mut decoder = flate2::bufread::GzDecoder::new(area);
        let mut content = Vec::new();
        decoder.read_to_end(&mut content).unwrap();
        area = decoder.into_inner();
        archive(&content, &mut members);
    }
}

fn archive<'a>(mut rest: &'a [u8], members: &mut Vec<(String, Vec<u8>)>) -> &'a [u8] {
    loop {
        assert_eq!(&rest[..6], b"070701");
        let field = |number: usize| {
            let text = std::str::from_utf8(&rest[6 + number * 8..14 + number * 8]).unwrap();
            usize::from_str_radix(text, 16).unwrap()
        };
        let (size, name_size) = (field(6), field(11));
        let name = String::from_utf8(rest[110..110 + name_size - 1].to_vec()).unwrap();
        let start = (110 + name_size).next_multiple_of(4);
        let content = rest[start..start + size].to_vec();
        rest = &rest[(start + size).next_multiple_of(4)..];
        if name == "TRAILER!!!" {
            return rest;
        }
        members.push((name, content));
    }
}

/// Bytes that do not get smaller by packing.
pub fn noise(len: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    (0..len).map(|_| next()).collect()
}
