//! Writes the archives the kernel unpacks (`newc`), packed with gzip; the same input always gives the same bytes, so
//! that every replica names a representation by the same ETag.

use cpio::newc;
use flate2::{Compression, GzBuilder};
use std::collections::BTreeSet;
use std::io::Write;

const IN_MEMORY: &str = "writing to memory does not fail";
/// Kinds of files as modes have them.
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

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
        self.file_with(path, 0o644, content);
    }

    pub fn program(&mut self, path: &str, content: &[u8]) {
        self.file_with(path, 0o755, content);
    }

    pub fn file_with(&mut self, path: &str, permissions: u32, content: &[u8]) {
        self.add(path, FILE | permissions, (0, 0), content);
    }

    pub fn link(&mut self, path: &str, target: &[u8]) {
        self.add(path, LINK | 0o777, (0, 0), target);
    }

    pub fn character_device(&mut self, path: &str, major: u32, minor: u32) {
        self.add(path, CHARACTER_DEVICE | 0o600, (major, minor), &[]);
    }

    pub fn directory(&mut self, path: &str) {
        let name = path.trim_matches('/');
        self.parents(name);
        self.one_directory(name);
    }

    pub fn finished(self) -> Vec<u8> {
        newc::trailer(self.out).expect(IN_MEMORY)
    }

    fn add(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let name = path.trim_start_matches('/');
        self.parents(name);
        self.member(newc::Builder::new(name).mode(mode), device, content);
    }

    fn parents(&mut self, name: &str) {
        for (at, _) in name.match_indices('/') {
            self.one_directory(&name[..at]);
        }
    }

    fn one_directory(&mut self, name: &str) {
        if self.directories.insert(name.to_owned()) {
            let member = newc::Builder::new(name).mode(DIRECTORY | 0o755).nlink(2);
            self.member(member, (0, 0), &[]);
        }
    }

    /// No times, owners or devices of this machine get in.
    fn member(&mut self, member: newc::Builder, (major, minor): (u32, u32), content: &[u8]) {
        self.inode += 1;
        let size = u32::try_from(content.len()).expect("what goes into an initrd is far below 4 GiB");
        let member = member.ino(self.inode).rdev_major(major).rdev_minor(minor);
        let mut writer = member.write(&mut self.out, size);
        let written = writer.write_all(content).and_then(|()| writer.finish());
        written.expect(IN_MEMORY);
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
    let mut bytes = written.expect(IN_MEMORY);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// Reads back what the kernel would: (name, mode, content) until the trailer, which comes last.
    fn unpack(mut archive: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut list = Vec::new();
        loop {
            let mut reader = newc::Reader::new(archive).unwrap();
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut content = Vec::new();
            reader.read_to_end(&mut content).unwrap();
            let is_trailer = reader.entry().is_trailer();
            archive = reader.finish().unwrap();
            list.push((name, mode, content));
            if is_trailer {
                assert_eq!(archive, [0; 0]);
                return list;
            }
        }
    }

    fn names(archive: &[u8]) -> Vec<String> {
        unpack(archive).into_iter().map(|(name, _, _)| name).collect()
    }

    #[test]
    fn an_archive_can_be_read_back_and_has_directories_first_and_once() {
        let mut archive = Archive::default();
        archive.file_with("/etc/a/one", 0o600, b"1");
        archive.file_with("/etc/a/two", 0o755, b"four");
        archive.file_with("config.ign", 0o644, b"");
        archive.link("/etc/b", b"/etc/a");
        let mut list = unpack(&archive.finished());
        assert_eq!(list.pop().unwrap().0, "TRAILER!!!");
        let names: Vec<(String, u32)> = list.iter().map(|(name, mode, _)| (name.clone(), *mode)).collect();
        let expected = [
            ("etc", 0o040_755),
            ("etc/a", 0o040_755),
            ("etc/a/one", 0o100_600),
            ("etc/a/two", 0o100_755),
            ("config.ign", 0o100_644),
            ("etc/b", 0o120_777),
        ];
        assert_eq!(names, expected.map(|(name, mode)| (name.to_owned(), mode)));
        assert_eq!(list[3].2, b"four");
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
