//! Makes the ISO: a tree of files, a FAT image for UEFI, and xorriso over both.

use super::error::BuildError;
use super::menu::{self, Menus};
use super::tools::{self, Loaders};
use super::{Role, tar};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const EFI_IMAGE: &str = "boot/efi.img";
/// In the image instead of from the disk, so that GRUB needs nothing but itself to find its volume.
const GRUB_MODULES: &[&str] = &[
    "boot",
    "configfile",
    "echo",
    "efi_gop",
    "efi_uga",
    "fat",
    "iso9660",
    "linux",
    "memdisk",
    "normal",
    "part_gpt",
    "part_msdos",
    "reboot",
    "regexp",
    "search",
    "search_label",
    "serial",
    "sleep",
    "tar",
    "terminal",
    "test",
];

pub(super) struct Disc<'a> {
    pub role: Role,
    pub loaders: &'a Loaders,
    pub work: &'a Path,
    /// Every date in the image, in seconds since 1970.
    pub date: u64,
}

impl Disc<'_> {
    /// Files are added with [`Disc::put`] before.
    pub fn write(&self, menus: &Menus, target: &Path) -> Result<(), BuildError> {
        self.put(menu::ISOLINUX, menus.isolinux.as_bytes())?;
        self.put(menu::GRUB, menus.grub.as_bytes())?;
        self.put("isolinux/isolinux.bin", &read(&self.loaders.isolinux)?)?;
        self.put("isolinux/ldlinux.c32", &read(&self.loaders.ldlinux)?)?;
        let efi = self.efi_image()?;
        self.put(EFI_IMAGE, &read(&efi)?)?;
        self.date_all(&self.tree())?;
        self.iso(target)
    }

    pub fn put(&self, path: &str, content: &[u8]) -> Result<(), BuildError> {
        let path = self.tree().join(path);
        let folder = path.parent().expect("paths in the tree have a folder");
        fs::create_dir_all(folder).map_err(BuildError::written(folder))?;
        fs::write(&path, content).map_err(BuildError::written(&path))
    }

    fn tree(&self) -> PathBuf {
        self.work.join("tree")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("SOURCE_DATE_EPOCH", self.date.to_string())
            .env("TZ", "UTC");
        command
    }

    /// A file system with GRUB where UEFI looks for it on media it does not know.
    fn efi_image(&self) -> Result<PathBuf, BuildError> {
        let start = self.work.join("start.tar");
        let menu = tar::single(menu::GRUB, menu::grub_start(self.role).as_bytes());
        fs::write(&start, menu).map_err(BuildError::written(&start))?;
        let grub = self.work.join("BOOTX64.EFI");
        // Not `grub-mkstandalone`: it packs its files with the time of day and in the order of the directory.
        tools::run(
            self.command("grub-mkimage")
                .args(["--format=x86_64-efi", "--prefix=(memdisk)/boot/grub"])
                .arg(format!("--memdisk={}", start.display()))
                .arg(format!("--output={}", grub.display()))
                .args(GRUB_MODULES),
        )?;
        self.date_one(&grub)?;
        let bytes = fs::metadata(&grub).map_err(BuildError::read(&grub))?.len();
        let image = self.work.join("efi.img");
        // Tables and directories of the file system take less than 64 KiB; whole tracks of 32 sectors.
        let sectors = (bytes + 64 * 1024).div_ceil(512).next_multiple_of(32);
        let file = File::create(&image).map_err(BuildError::written(&image))?;
        file.set_len(sectors * 512).map_err(BuildError::written(&image))?;
        let on_image = |program: &str| {
            let mut command = self.command(program);
            command.arg("-i").arg(&image);
            command
        };
        let geometry = ["-h", "1", "-s", "32", "-t"];
        let tracks = (sectors / 32).to_string();
        // A serial number that does not come from the clock.
        tools::run(on_image("mformat").args(geometry).arg(tracks).args([
            "-N",
            "4d555354",
            "-v",
            "MUSTER-EFI",
            "::",
        ]))?;
        tools::run(on_image("mmd").args(["::/EFI", "::/EFI/BOOT"]))?;
        tools::run(
            on_image("mcopy")
                .arg("-m")
                .arg(&grub)
                .arg("::/EFI/BOOT/BOOTX64.EFI"),
        )?;
        Ok(image)
    }

    fn iso(&self, target: &Path) -> Result<(), BuildError> {
        let bios = ["-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat"];
        let bios_load = ["-no-emul-boot", "-boot-load-size", "4", "-boot-info-table"];
        let uefi = [
            "-eltorito-alt-boot",
            "-e",
            EFI_IMAGE,
            "-no-emul-boot",
            "-isohybrid-gpt-basdat",
        ];
        tools::run(
            self.command("xorriso")
                // The user's own settings must not change the image.
                .args(["-no_rc", "-as", "mkisofs", "-quiet"])
                .args(["-V", self.role.volume(), "-r", "-J"])
                .args(bios)
                .args(bios_load)
                .arg("-isohybrid-mbr")
                .arg(&self.loaders.disk_start)
                .args(uefi)
                .arg("-o")
                .arg(target)
                .arg(self.tree()),
        )?;
        Ok(())
    }

    fn date_all(&self, folder: &Path) -> Result<(), BuildError> {
        for entry in fs::read_dir(folder).map_err(BuildError::read(folder))? {
            let path = entry.map_err(BuildError::read(folder))?.path();
            match path.is_dir() {
                true => self.date_all(&path)?,
                false => self.date_one(&path)?,
            }
        }
        self.date_one(folder)
    }

    fn date_one(&self, path: &Path) -> Result<(), BuildError> {
        let date: SystemTime = UNIX_EPOCH + Duration::from_secs(self.date);
        let file = File::open(path).map_err(BuildError::read(path))?;
        file.set_modified(date).map_err(BuildError::written(path))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, BuildError> {
    fs::read(path).map_err(BuildError::read(path))
}
