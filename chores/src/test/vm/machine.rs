//! A machine as QEMU emulates it, without any help of the host's processor: disk, card, console, power switch.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::{self, Service};
use crate::tools::qemu;
use crate::wait;

/// Enough for a kernel, an initramfs of 40 MB and the discovery files of a reclaim.
const MEMORY_MIB: u32 = 256;
/// More than the smallest disk the tests' hub accepts; the file has holes.
const DISK_BYTES: u64 = 2 << 30;
/// A writer of systems erases so much at the end of a disk.
const SAMPLE: usize = 1 << 20;
const CUT_LIMIT: Duration = Duration::from_secs(20);
const ORDER_LIMIT: Duration = Duration::from_secs(20);
/// A screen and a half.
const TAIL_LINES: usize = 60;

/// What a machine is made of.
pub struct Spec {
    pub name: String,
    /// Different for each machine of the whole run.
    pub number: u16,
    pub firmware: Firmware,
    pub media: Media,
    /// A `-netdev` with the id `net0`.
    pub net: String,
    /// How fast the disk takes what is written; nothing: as fast as it can.
    pub disk_bytes_per_second: Option<u64>,
}

impl Spec {
    /// The address of its network card.
    pub fn mac(&self) -> String {
        format!("52:54:00:6d:{:02x}:{:02x}", self.number >> 8, self.number & 255)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    Bios,
    Uefi,
}

/// Where discovery comes from.
pub enum Media {
    /// A CD-ROM: a file, or an address as BMCs are given.
    Cd(String),
    /// iPXE on the card; the address of its script is in the card's `-netdev`.
    Network,
}

/// What the firmware tries first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum First {
    Disk,
    Media,
}

pub struct Machine {
    pub spec: Spec,
    /// The host's id, too: boards of QEMU have no serial number.
    pub uuid: String,
    pub disk: PathBuf,
    pub console: PathBuf,
    dir: PathBuf,
    qemu: Option<Service>,
}

impl Machine {
    /// A new machine with an empty disk, switched off.
    pub fn new(spec: Spec, dir: &Path) -> Result<Self> {
        let disk = dir.join(format!("{}.disk", spec.name));
        File::create(&disk)?.set_len(DISK_BYTES)?;
        let machine = Self {
            uuid: format!("6d757374-6572-4000-8000-00000000{:04x}", spec.number),
            console: dir.join(format!("{}.console", spec.name)),
            dir: dir.to_owned(),
            disk,
            spec,
            qemu: None,
        };
        File::create(&machine.console)?;
        if machine.spec.firmware == Firmware::Uefi {
            fs::copy(qemu::UEFI_VARIABLES, machine.variables()).context("the UEFI firmware is not there")?;
        }
        Ok(machine)
    }

    fn variables(&self) -> PathBuf {
        self.dir.join(format!("{}.vars", self.spec.name))
    }

    /// Where QEMU takes orders.
    fn orders(&self) -> PathBuf {
        self.dir.join(format!("{}.orders", self.spec.name))
    }

    pub fn start(&mut self, first: First) -> Result<()> {
        let mut command = self.command(first);
        let log = File::create(self.dir.join(format!("{}.qemu", self.spec.name)))?;
        command.stdout(log.try_clone()?).stderr(log);
        self.qemu = Some(Service::start("a machine", &mut command, Signal::TERM)?);
        Ok(())
    }

    fn command(&self, first: First) -> Command {
        let Spec {
            name,
            number,
            firmware,
            media,
            net,
            disk_bytes_per_second,
        } = &self.spec;
        let (disk_place, media_place) = match first {
            First::Disk => (0, 1),
            First::Media => (1, 0),
        };
        let mut command = process::ending_with_us(qemu::SYSTEM);
        let mut give = |words: &[&str]| {
            command.args(words);
        };
        let board = match firmware {
            Firmware::Bios => "pc",
            Firmware::Uefi => "q35",
        };
        give(&[
            "-name",
            name,
            "-machine",
            board,
            "-accel",
            "tcg,thread=multi",
            "-cpu",
            "max",
        ]);
        give(&["-smp", "1", "-m", &MEMORY_MIB.to_string(), "-uuid", &self.uuid]);
        give(&[
            "-nographic",
            "-vga",
            "none",
            "-monitor",
            "none",
            "-parallel",
            "none",
        ]);
        let orders = self.orders();
        give(&["-qmp", &format!("unix:{},server=on,wait=off", orders.display())]);
        let console = self.console.display();
        give(&["-chardev", &format!("file,id=console,path={console},append=on")]);
        give(&["-serial", "chardev:console"]);
        if *firmware == Firmware::Uefi {
            let code = qemu::UEFI_CODE;
            give(&[
                "-drive",
                &format!("if=pflash,unit=0,format=raw,readonly=on,file={code}"),
            ]);
            let variables = self.variables();
            let variables = format!("if=pflash,unit=1,format=raw,file={}", variables.display());
            give(&["-drive", &variables]);
        }
        let disk = self.disk.display();
        // What a killed QEMU has written is in the host's memory and stays: as if the disk had kept it.
        let mut drive = format!("file={disk},format=raw,if=none,id=disk0,cache=unsafe");
        if let Some(pace) = disk_bytes_per_second {
            drive.push_str(&format!(",throttling.bps-write={pace}"));
        }
        give(&["-drive", &drive]);
        let device = format!("virtio-blk-pci,drive=disk0,serial=DISK-{number:04},bootindex={disk_place}");
        give(&["-device", &device]);
        give(&["-netdev", net]);
        let card = format!("virtio-net-pci,netdev=net0,mac={}", self.spec.mac());
        match media {
            Media::Network => give(&["-device", &format!("{card},bootindex={media_place}")]),
            Media::Cd(source) => {
                give(&["-device", &format!("{card},romfile=")]);
                give(&[
                    "-drive",
                    &format!("file={source},media=cdrom,readonly=on,format=raw,if=none,id=cd0"),
                ]);
                let reader = match firmware {
                    Firmware::Bios => "ide-cd",
                    Firmware::Uefi => "scsi-cd",
                };
                if *firmware == Firmware::Uefi {
                    give(&["-device", "virtio-scsi-pci"]);
                }
                give(&["-device", &format!("{reader},drive=cd0,bootindex={media_place}")]);
            }
        }
        command
    }

    /// The same process from start to end means that nobody touched the power switch.
    pub fn pid(&self) -> Option<u32> {
        self.qemu.as_ref().map(Service::pid)
    }

    /// Pulls the plug.
    pub fn cut(&mut self) -> Result<()> {
        let Some(mut qemu) = self.qemu.take() else {
            return Ok(());
        };
        process::signal(qemu.pid(), Signal::KILL)?;
        wait::until("the machine to go dark", CUT_LIMIT, || qemu.ended()).map(drop)
    }

    /// Pulls the cable out of the network card, or plugs it in again.
    pub fn plug(&self, is_in: bool) -> Result<()> {
        self.order("set_link", &json!({"name": "net0", "up": is_in}))
    }

    fn order(&self, word: &str, arguments: &Value) -> Result<()> {
        let stream = UnixStream::connect(self.orders()).context("QEMU takes no orders")?;
        stream.set_read_timeout(Some(ORDER_LIMIT))?;
        let mut replies = BufReader::new(stream.try_clone()?).lines();
        let mut ask = |order: Value| -> Result<()> {
            writeln!(&stream, "{order}")?;
            // Greetings and news come in between.
            for line in replies.by_ref() {
                let reply: Value = serde_json::from_str(&line?)?;
                if let Some(error) = reply.get("error") {
                    bail!("QEMU refuses {order}: {error}");
                }
                if reply.get("return").is_some() {
                    return Ok(());
                }
            }
            bail!("QEMU hung up at {order}")
        };
        ask(json!({"execute": "qmp_capabilities"}))?;
        ask(json!({"execute": word, "arguments": arguments}))
    }

    /// Off and on again, as a BMC does it.
    pub fn restart(&mut self, first: First) -> Result<()> {
        self.cut()?;
        self.start(first)
    }

    /// An error when QEMU has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        if let Some(status) = self.qemu.as_mut().map(Service::ended).transpose()?.flatten() {
            let said = fs::read_to_string(self.dir.join(format!("{}.qemu", self.spec.name)));
            bail!(
                "{} ended ({status}):\n{}",
                self.spec.name,
                said.unwrap_or_default()
            );
        }
        Ok(())
    }

    /// What its console has shown so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.console).unwrap_or_default()).into_owned()
    }

    pub fn boot_sector(&self) -> Result<Vec<u8>> {
        self.read(0, 512)
    }

    /// Where a system would start, where its files would be, and the table at the end.
    pub fn samples(&self) -> Result<Vec<u8>> {
        let ends = [
            self.read(0, 4 << 20)?,
            self.read(DISK_BYTES - SAMPLE as u64, SAMPLE)?,
        ];
        Ok(ends.concat())
    }

    /// Something of somebody's at all of these places; no firmware would start it.
    pub fn fill_samples(&self) -> Result<()> {
        let file = File::options().write(true).open(&self.disk)?;
        file.write_all_at(&b"somebody's data ".repeat((4 << 20) / 16), 0)?;
        file.write_all_at(
            &b"the end of it...".repeat(SAMPLE / 16),
            DISK_BYTES - SAMPLE as u64,
        )?;
        Ok(())
    }

    fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        File::open(&self.disk)?.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

/// The end of a console, without what terminals only understand.
pub fn tail(console: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(console).unwrap_or_default()).into_owned();
    let plain: String = text.chars().filter(|c| !c.is_control() || *c == '\n').collect();
    let lines: Vec<&str> = plain.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.len().saturating_sub(TAIL_LINES);
    format!("the end of {}:\n{}", console.display(), lines[last..].join("\n"))
}
