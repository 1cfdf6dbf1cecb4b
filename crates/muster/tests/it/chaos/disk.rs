//! A small disk that can be full or refuse to be written, seen by nobody but the hub on it.
//!
//! It is mounted in a namespace that ends with the process that keeps it, so that no mount is ever left behind.

use super::processes::ENDING_WITH_US;
use crate::served::Place;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What a trial writes is some megabytes.
const SIZE: u64 = 96 * 1024 * 1024;
const MIB: usize = 1024 * 1024;
/// ext4, because it refuses to write immutable files also to those who have them open already. Whoever waits for our
/// end of the pipe ends with us.
const MOUNT: &str = r#"mount -o loop "$1" "$2" && chown "$3" "$2" && echo mounted && exec cat"#;

pub struct Disk {
    keeper: Child,
    mounted: PathBuf,
}

impl Disk {
    /// The place is on the disk from now on, for hubs that are started there.
    pub fn under(place: Place) -> (Self, Place) {
        let image = place.path().with_extension("img");
        File::create(&image).unwrap().set_len(SIZE).unwrap();
        // Root may otherwise use a part that others may not.
        run(Command::new("mkfs.ext4")
            .args(["-q", "-m", "0", "-F"])
            .arg(&image));
        let mut keeper = Command::new("unshare");
        keeper.args(["--mount", "--", "sh", "-c", MOUNT, "sh"]);
        keeper.args([&image, place.path()]).arg("root");
        let mut keeper = keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let mut out = BufReader::new(keeper.stdout.take().unwrap());
        out.read_line(&mut said).unwrap();
        // The mount keeps it for as long as it is needed.
        std::fs::remove_file(&image).unwrap();
        assert_eq!(said, "mounted\n", "a file system of our own needs root");
        let disk = Self {
            keeper,
            mounted: place.path().to_owned(),
        };
        let around = disk.around();
        (disk, place.within(around))
    }

    fn around(&self) -> Vec<String> {
        let target = self.keeper.id().to_string();
        let inside = ["nsenter", "--target", &target, "--mount", "--"];
        let words = inside.iter().chain(&ENDING_WITH_US);
        words.map(|word| (*word).to_owned()).collect()
    }

    /// A path on the disk, for those outside.
    fn path(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.id()));
        root.join(self.mounted.strip_prefix("/").unwrap()).join(name)
    }

    /// Not one byte is left.
    pub fn fill(&self) {
        let mut ballast = File::create(self.path("ballast")).unwrap();
        for size in [MIB, 4096, 1] {
            let piece = vec![0; size];
            loop {
                match ballast.write_all(&piece).and_then(|()| ballast.sync_data()) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("filling the disk: {error}"),
                }
            }
        }
    }

    pub fn free(&self) {
        std::fs::remove_file(self.path("ballast")).unwrap();
    }

    /// Nobody can write the database any more, not even those who have it open. A remount as read-only would be refused
    /// as long as they have.
    pub fn write_protect(&self) {
        self.change_attributes("+i");
    }

    pub fn write_enable(&self) {
        self.change_attributes("-i");
    }

    /// Not of the index beside the log: it is memory, which nothing makes read-only.
    fn change_attributes(&self, change: &str) {
        let files = ["muster.db", "muster.db-wal"].map(|name| self.path("data").join(name));
        run(Command::new("chattr").arg(change).args(files));
    }
}

fn run(command: &mut Command) {
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {said}");
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.keeper.stdin.take();
        let _ = self.keeper.wait();
    }
}
