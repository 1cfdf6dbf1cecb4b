//! Writes cpio archives in the `newc` form the kernel unpacks; by hand because it is forty lines and must be
//! byte-for-byte repeatable, which the writers we know are not without care.

use std::collections::BTreeSet;

/// One thing in the archive. Parent directories are added by [`cpio`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// With or without the leading slash.
    pub path: String,
    pub kind: Kind,
    /// The bytes of a file, or the target of a link.
    pub content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File { mode: u32 },
    Link,
}

const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_777;

/// The archive, not compressed. The kernel drops a file whose directory is not in the archive or already there, so
/// every directory comes first. No times, owners or inode numbers of this machine get in.
pub fn cpio(entries: &[Entry]) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut directories = BTreeSet::new();
    let mut inode = 0;
    let mut put = |name: &str, mode: u32, content: &[u8]| {
        inode += 1;
        member(&mut archive, inode, name, mode, content);
    };
    for entry in entries {
        let name = entry.path.trim_start_matches('/');
        for (at, _) in name.match_indices('/') {
            if directories.insert(name[..at].to_owned()) {
                put(&name[..at], DIRECTORY, &[]);
            }
        }
        let mode = match entry.kind {
            Kind::File { mode } => REGULAR | mode,
            Kind::Link => SYMLINK,
        };
        put(name, mode, &entry.content);
    }
    member(&mut archive, 0, "TRAILER!!!", 0, &[]);
    archive
}

fn member(archive: &mut Vec<u8>, inode: u32, name: &str, mode: u32, content: &[u8]) {
    let directory = mode & 0o170_000 == 0o040_000;
    let size = |length: usize| u32::try_from(length).expect("an initrd file is far below 4 GiB");
    let fields = [
        inode,
        mode,
        0, // owner: root
        0, // group: root
        if directory { 2 } else { 1 },
        0, // time
        size(content.len()),
        0, // device numbers: none
        0,
        0,
        0,
        size(name.len() + 1),
        0, // checksum: unused in this form
    ];
    archive.extend_from_slice(b"070701");
    for field in fields {
        archive.extend_from_slice(format!("{field:08X}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
    archive.extend_from_slice(content);
    pad(archive);
}

/// Names and contents end on a multiple of four bytes, counted from the start of the archive.
fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}
