//! Machines to try things on: QEMU, its firmware, and what images for it are made with.

use anyhow::Result;

use super::{Unavailable, apt};

/// By Debian's names. Firmware comes apart from the emulator, and so does its reader of media on web servers.
const PACKAGES: &[&str] = &[
    "qemu-system-x86",
    "qemu-utils",
    "qemu-block-extra",
    "ovmf",
    "seabios",
    "ipxe-qemu",
    "xorriso",
    "isolinux",
    "syslinux-common",
    "grub-efi-amd64-bin",
    "grub-common",
    "mtools",
    "dosfstools",
    "chrony",
    "xz-utils",
    "zstd",
];

/// Those among them that `muster image build` needs.
const BUILDERS: &[&str] = &[
    "xorriso",
    "isolinux",
    "syslinux-common",
    "grub-efi-amd64-bin",
    "grub-common",
    "mtools",
];

pub const SYSTEM: &str = "qemu-system-x86_64";

/// Firmware for UEFI machines: its code, and the variables each machine has a copy of.
pub const UEFI_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
pub const UEFI_VARIABLES: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";

pub fn ensure() -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Unavailable("the test machines are emulated on x86_64 only".into()).into());
    }
    apt::ensure(PACKAGES)
}

/// Without machines to boot them on.
pub fn ensure_builders() -> Result<()> {
    apt::ensure(BUILDERS)
}
