//! Writes the archives the kernel unpacks (`newc`), packed with gzip; the same input always gives the same bytes, so
//! that every replica names a representation by the same ETag.

use flate2::{Compression, GzBuilder};
use std::collections::BTreeSet;
use std::io::Write;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// One file with its parent directories before it: the kernel drops a file whose directory is not there.
pub fn archive(path: &str, content: &[u8]) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.file(path, content);
    archive.finished()
}

/// An archive that grows. Parents are written before what they hold.
#[derive(Debug, Default)]
pub struct Archive {
    out: Vec<u8>,
    inode: u32,
    directories: BTreeSet<String>,
}

impl Archive {
    pub fn file(&mut self, path: &str, content: &[u8]) {
        self.add(path, FILE, (0, 0), content);
    }

    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.add(path, PROGRAM, (0, 0), content);
    }

    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.add(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    pub fn directory(&mut self, path: &str) {
        let name = path.trim_matches('/');
        self.parents(name);
        if self.directories.insert(name.to_owned()) {
            self.member(name, DIRECTORY, (0, 0), &[]);
        }
    }

    pub fn finished(mut self) -> Vec<u8> {
        member(&mut self.out, 0, "TRAILER!!!", 0, (0, 0), &[]);
        self.out
    }

    fn add(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let name = path.trim_start_matches('/');
        self.parents(name);
        self.member(name, mode, device, content);
    }

    fn parents(&mut self, name: &str) {
        for (at, _) in name.match_indices('/') {
            if self.directories.insert(name[..at].to_owned()) {
                self.member(&name[..at], DIRECTORY, (0, 0), &[]);
            }
        }
    }

    fn member(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.inode += 1;
        member(&mut self.out, self.inode, name, mode, device, content);
    }
}

/// Packed, and padded to four bytes so that an archive that is not packed may follow.
pub fn packed(archive: &[u8]) -> Vec<u8> {
    packed_with(archive, Compression::best())
}

/// For whole initrds, where the last percent would cost minutes.
pub fn packed_quickly(archive: &[u8]) -> Vec<u8> {
    packed_with(archive, Compression::new(6))
}

fn packed_with(archive: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), level);
    let written = encoder.write_all(archive).and_then(|()| encoder.finish());
    let mut bytes = written.expect("writing to memory does not fail");
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn member(out: &mut Vec<u8>, inode: u32, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
    let size = |length: usize| u32::try_from(length).expect("what goes into an initrd is far below 4 GiB");
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
        device.0,
        device.1,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn names(archive: &[u8]) -> Vec<String> {
        let starts: Vec<usize> = (0..archive.len().saturating_sub(6))
            .filter(|at| &archive[*at..at + 6] == b"070701")
            .collect();
        let name = |start: &usize| {
            let text = &archive[start + 110..];
            let end = text.iter().position(|byte| *byte == 0).unwrap();
            String::from_utf8(text[..end].to_vec()).unwrap()
        };
        starts.iter().map(name).collect()
    }

    #[test]
    fn directories_come_once_and_before_what_they_hold() {
        let mut archive = Archive::default();
        archive.file("/etc/muster/modules", b"a");
        archive.file("etc/muster/modules.dep", b"b");
        archive.directory("proc");
        archive.character_device("dev/console", 5, 1);
        assert_eq!(
            names(&archive.finished()),
            [
                "etc",
                "etc/muster",
                "etc/muster/modules",
                "etc/muster/modules.dep",
                "proc",
                "dev",
                "dev/console",
                "TRAILER!!!"
            ]
        );
    }
}
