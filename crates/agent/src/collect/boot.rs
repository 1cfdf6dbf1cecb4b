//! How the machine was started, and its TPM.

use super::Machine;
use muster_contract::v2::agent::inventory::Boot;
use std::borrow::Cow;

const SECURE_BOOT: &str = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

pub fn boot(machine: &Machine) -> Boot {
    let command_line = machine.text("proc/cmdline");
    Boot {
        current_boot_mode: if is_uefi(machine) { "uefi" } else { "bios" }.to_owned(),
        pxe_interface: pxe_interface(machine, &command_line),
        secure_boot_state: secure_boot(machine),
        device_type: Cow::Borrowed(if runs_from_disk(machine) {
            "persistent"
        } else {
            "ephemeral"
        }),
        command_line,
    }
}

fn is_uefi(machine: &Machine) -> bool {
    machine.exists("sys/firmware/efi")
}

fn secure_boot(machine: &Machine) -> Cow<'static, str> {
    if !is_uefi(machine) {
        return "NotSupported".into();
    }
    // Four bytes of attributes, then the value.
    match std::fs::read(machine.path(SECURE_BOOT))
        .ok()
        .and_then(|value| value.get(4).copied())
    {
        Some(1) => "Enabled".into(),
        Some(0) => "Disabled".into(),
        Some(_) | None => "Unknown".into(),
    }
}

/// PXE loaders pass `BOOTIF=01-<mac with dashes>`.
fn pxe_interface(machine: &Machine, command_line: &str) -> String {
    let value = command_line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("BOOTIF="));
    let Some(value) = value else { return String::new() };
    let mac = value.get(value.len().saturating_sub(17)..).unwrap_or_default();
    let mac = mac.replace('-', ":").to_ascii_lowercase();
    let names = machine.list("sys/class/net");
    let found = names
        .into_iter()
        .find(|name| machine.text(&format!("sys/class/net/{name}/address")) == mac);
    found.unwrap_or_default()
}

/// A live system has its root in memory.
fn runs_from_disk(machine: &Machine) -> bool {
    let mounts = machine.text("proc/mounts");
    mounts.lines().any(|line| {
        let mut words = line.split(' ');
        let (source, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        target == "/" && source.starts_with("/dev/") && !source.starts_with("/dev/loop")
    })
}

pub fn tpm_version(machine: &Machine) -> &'static str {
    match machine.text("sys/class/tpm/tpm0/tpm_version_major").as_str() {
        "2" => "2.0",
        "1" => "1.2",
        // Older kernels have no such file, but only TPM 1.2 devices have `caps`.
        _ if machine.exists("sys/class/tpm/tpm0/device/caps") => "1.2",
        _ if machine.exists("sys/class/tpm/tpm0") => "2.0",
        _ => "none",
    }
}
