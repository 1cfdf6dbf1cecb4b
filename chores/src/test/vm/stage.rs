//! What all scenarios share: the programs, the images, and the server that hands them out.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::bases;
use super::files::Files;
use crate::test::house::House;
use crate::tools::{self, qemu};
use crate::{process, project};

/// An image takes seconds; the first one also fetches a kernel.
const IMAGE_LIMIT: Duration = Duration::from_secs(5 * 60);

/// Small, and all that virtual machines need.
const KERNEL_PACKAGE: &str = "linux-image-cloud-amd64";

pub const DISCOVERY: &str = "discovery.iso";
pub const SYSTEM: &str = "system.img";

/// The ways in which a disk image may be packed, with the program that packs it.
const PACKED: [(&str, &[&str]); 3] = [
    ("gz", &["gzip", "-1", "-c"]),
    ("xz", &["xz", "-1", "-T0", "-c"]),
    ("zst", &["zstd", "-1", "-q", "-c"]),
];

pub struct Stage {
    pub muster: PathBuf,
    pub files: Files,
    pub started: Instant,
    home: tempfile::TempDir,
    numbers: AtomicU16,
}

impl Stage {
    pub fn set(house: &mut House) -> Result<Self> {
        qemu::ensure()?;
        let muster = house.binary()?;
        let agent = tools::agent::build()?;
        let stage = Self {
            muster,
            files: Files::start()?,
            started: Instant::now(),
            home: tempfile::Builder::new().prefix("muster-vm-").tempdir()?,
            numbers: AtomicU16::new(1),
        };
        stage.build(&agent, DISCOVERY, &[])?;
        stage.build(&agent, SYSTEM, &["--system"])?;
        for (ending, words) in PACKED {
            stage.pack(ending, words)?;
        }
        stage.other_bases()?;
        Ok(stage)
    }

    fn other_bases(&self) -> Result<()> {
        let (discovery, work) = (self.path(DISCOVERY), self.home.path());
        bases::generic(&discovery, work, &self.path(bases::GENERIC))?;
        bases::coreos(&discovery, work, &self.path(bases::COREOS))?;
        for name in [bases::GENERIC, bases::COREOS] {
            self.files.put(name, &self.path(name));
        }
        Ok(())
    }

    /// Makes an image with the command people use.
    fn build(&self, agent: &Path, name: &str, more: &[&str]) -> Result<()> {
        let path = self.path(name);
        let mut command = Command::new(&self.muster);
        command.args(["image", "build", "--kernel-package", KERNEL_PACKAGE, "--agent"]);
        command.arg(agent).args(more).arg("-o").arg(&path);
        let log = self.path(&format!("{name}.log"));
        command
            .stdout(File::create(&log)?)
            .stderr(File::open(&log).and_then(|_| append(&log))?);
        process::run(&mut command, IMAGE_LIMIT).with_context(|| crate::hub::tail(&log))?;
        let megabytes = fs::metadata(&path)?.len() as f64 / 1e6;
        println!("  built {name}, {megabytes:.1} MB");
        self.files.put(name, &path);
        Ok(())
    }

    fn pack(&self, ending: &str, words: &[&str]) -> Result<()> {
        let name = format!("{SYSTEM}.{ending}");
        let path = self.path(&name);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(self.path(SYSTEM));
        process::run(command.stdout(File::create(&path)?), IMAGE_LIMIT)?;
        self.files.put(&name, &path);
        Ok(())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A number no other machine of this run has.
    pub fn number(&self) -> u16 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// How a host is told to be written with one of our files: with its sum.
    pub fn installer_args(&self, name: &str) -> Result<Vec<String>> {
        let sum = sha256(&self.path(name))?;
        let url = self.files.guest_url(name);
        Ok(vec!["--image-url".into(), format!("{url}#sha256={sum}")])
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    File::options().append(true).open(path)
}

pub fn sha256(path: &Path) -> Result<String> {
    let out = process::output(Command::new("sha256sum").arg(path))?;
    let text = String::from_utf8_lossy(&out).into_owned();
    let sum = text.split_whitespace().next().context("sha256sum says nothing")?;
    Ok(sum.to_owned())
}

/// A command of ours talks to one hub and reads nobody's settings.
pub fn muster(binary: &Path, hub: &str, home: &Path) -> Command {
    let mut command = Command::new(binary);
    command.env("MUSTER_HUB", hub).env("XDG_CONFIG_HOME", home);
    command.current_dir(home);
    project::without_proxy(&mut command);
    command
}
