//! Base images of other makers, as far as their form goes: the kernel and the initrd of our own discovery image, which
//! registers if it finds its configuration, in images that know nothing of Muster.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;

/// A kernel, an initrd and boot menus; no room for anything.
pub const GENERIC: &str = "generic.iso";
/// As live images of CoreOS are laid out: an area for the configuration, and a root file system to leave out.
pub const COREOS: &str = "coreos.iso";

const LIMIT: Duration = Duration::from_secs(60);
/// Large enough that leaving it out moves everything behind it.
const ROOTFS_BYTES: usize = 8 << 20;
const AREA_BYTES: usize = 256 * 1024;
/// Loaders of our image look for this volume.
const VOLUME: &str = "MUSTER-DISCOVERY";
const ARGUMENTS: &str = "console=tty0 console=ttyS0,115200n8 no_timer_check panic=30";

/// What is taken from our image: what it is called there, and in ours.
const LOADERS: [(&str, &str); 3] = [
    ("boot/efi.img", "boot/efi.img"),
    ("isolinux/isolinux.bin", "isolinux/isolinux.bin"),
    ("isolinux/ldlinux.c32", "isolinux/ldlinux.c32"),
];

pub fn generic(discovery: &Path, work: &Path, target: &Path) -> Result<()> {
    let tree = work.join("generic");
    take(discovery, &tree, ["live/vmlinuz", "live/initrd.img"])?;
    menus(&tree, "live/vmlinuz", &["live/initrd.img"], ARGUMENTS)?;
    pack(&tree, target)
}

pub fn coreos(discovery: &Path, work: &Path, target: &Path) -> Result<()> {
    let (tree, folder) = (work.join("coreos"), "images/pxeboot");
    let [kernel, initrd] = ["vmlinuz", "initrd.img"].map(|name| format!("{folder}/{name}"));
    let area = "images/ignition.img";
    take(discovery, &tree, [&kernel, &initrd])?;
    fs::write(tree.join(folder).join("rootfs.img"), vec![0x5a; ROOTFS_BYTES])?;
    fs::write(tree.join(area), vec![0; AREA_BYTES])?;
    let arguments = format!("coreos.liveiso={VOLUME} {ARGUMENTS}");
    menus(&tree, &kernel, &[&initrd, area], &arguments)?;
    pack(&tree, target)
}

/// Kernel and initrd go where this image has them, loaders where loaders are.
fn take(discovery: &Path, tree: &Path, own: [&str; 2]) -> Result<()> {
    let mut command = Command::new("xorriso");
    command
        .args(["-no_rc", "-osirrox", "on", "-indev"])
        .arg(discovery);
    let files = [("boot/vmlinuz", own[0]), ("boot/initrd.img", own[1])];
    for (from, to) in files.into_iter().chain(LOADERS) {
        let to = tree.join(to);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        command.args(["-extract", &format!("/{from}")]).arg(&to);
    }
    process::output(&mut command).context("cannot take our own image apart")?;
    // What comes from an image cannot be written to, and the loader is.
    let mut command = Command::new("chmod");
    process::run(command.args(["-R", "u+w"]).arg(tree), LIMIT)
}

fn menus(tree: &Path, kernel: &str, initrds: &[&str], arguments: &str) -> Result<()> {
    let initrds: Vec<String> = initrds.iter().map(|path| format!("/{path}")).collect();
    let isolinux = format!(
        "serial 0 115200\ndefault live\nprompt 0\nlabel live\n  kernel /{kernel}\n  append initrd={} {arguments}\n",
        initrds.join(",")
    );
    fs::write(tree.join("isolinux/isolinux.cfg"), isolinux)?;
    let grub = format!(
        "set timeout=1\nmenuentry 'live' {{\n  linux /{kernel} {arguments}\n  initrd {}\n}}\n",
        initrds.join(" ")
    );
    fs::create_dir_all(tree.join("boot/grub"))?;
    Ok(fs::write(tree.join("boot/grub/grub.cfg"), grub)?)
}

fn pack(tree: &Path, target: &Path) -> Result<()> {
    let mut command = Command::new("xorriso");
    command.args(["-no_rc", "-as", "mkisofs", "-quiet", "-V", VOLUME, "-r", "-J"]);
    command.args(["-b", "isolinux/isolinux.bin", "-c", "isolinux/boot.cat"]);
    command.args(["-no-emul-boot", "-boot-load-size", "4", "-boot-info-table"]);
    command.args(["-eltorito-alt-boot", "-e", "boot/efi.img", "-no-emul-boot", "-o"]);
    process::output(command.arg(target).arg(tree)).context("cannot make an image")?;
    Ok(())
}
