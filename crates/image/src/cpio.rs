//! Writes the archives the kernel unpacks (`newc`), packed with gzip; the same input always gives the same bytes, so
//! that every replica names a representation by the same ETag.

use flate2::{Compression, GzBuilder};
use std::io::Write;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_644;

/// One file with its parent directories before it: the kernel drops a file whose directory is not there.
pub fn archive(path: &str, content: &[u8]) -> Vec<u8> {
    let name = path.trim_start_matches('/');
    let mut out = Vec::with_capacity(content.len() + 1024);
    let mut inode = 0;
    for (at, _) in name.match_indices('/') {
        inode += 1;
        member(&mut out, inode, &name[..at], DIRECTORY, &[]);
    }
    member(&mut out, inode + 1, name, FILE, content);
    member(&mut out, 0, "TRAILER!!!", 0, &[]);
    out
}

/// Packed, and padded to four bytes so that an archive that is not packed may follow.
pub fn packed(archive: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    let written = encoder.write_all(archive).and_then(|()| encoder.finish());
    let mut bytes = written.expect("writing to memory does not fail");
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn member(out: &mut Vec<u8>, inode: u32, name: &str, mode: u32, content: &[u8]) {
    let size = |length: usize| u32::try_from(length).expect("a configuration is far below 4 GiB");
    let links = if mode == DIRECTORY { 2 } else { 1 };
    let name_size = size(name.len() + 1);
    let fields = [
        inode,
        mode,
        0,
        0,
        links,
        0,
        size(content.len()),
        0,
        0,
        0,
        0,
        name_size,
        0,
    ];
    out.extend_from_slice(b"070701");
    for field in fields {
        out.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(4), 0);
}
