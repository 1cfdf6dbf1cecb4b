//! The distribution's programs and boot loaders an image is made with.

use super::error::BuildError;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Program, and the Debian package it is in.
const PROGRAMS: &[(&str, &str)] = &[
    ("xorriso", "xorriso"),
    ("mformat", "mtools"),
    ("mmd", "mtools"),
    ("mcopy", "mtools"),
    ("grub-mkimage", "grub-common"),
];
/// Only for kernels that come from a package.
const PACKAGE_PROGRAMS: &[(&str, &str)] = &[("apt-cache", "apt"), ("apt-get", "apt"), ("dpkg-deb", "dpkg")];

/// Where distributions keep the BIOS loader.
const BIOS_FOLDERS: &[&str] = &[
    "/usr/lib/ISOLINUX",
    "/usr/lib/syslinux/modules/bios",
    "/usr/share/syslinux",
    "/usr/lib/syslinux/bios",
];
const UEFI_MODULES: &str = "/usr/lib/grub/x86_64-efi/moddep.lst";

/// Files of the boot loaders.
#[derive(Debug)]
pub(super) struct Loaders {
    pub isolinux: PathBuf,
    pub ldlinux: PathBuf,
    /// The first sector of a disk the image is written to.
    pub disk_start: PathBuf,
}

/// Everything that is missing is named at once.
pub(super) fn check(with_packages: bool) -> Result<Loaders, BuildError> {
    let mut missing: Vec<(String, &str)> = Vec::new();
    let packaged = if with_packages { PACKAGE_PROGRAMS } else { &[] };
    for (program, package) in PROGRAMS.iter().chain(packaged) {
        if !is_program(program) {
            missing.push(((*program).to_owned(), package));
        }
    }
    let mut loader = |name: &str, package| {
        let found = BIOS_FOLDERS
            .iter()
            .map(|folder| Path::new(folder).join(name))
            .find(|path| path.exists());
        if found.is_none() {
            missing.push((name.to_owned(), package));
        }
        found.unwrap_or_default()
    };
    let loaders = Loaders {
        isolinux: loader("isolinux.bin", "isolinux"),
        ldlinux: loader("ldlinux.c32", "syslinux-common"),
        disk_start: loader("isohdpfx.bin", "isolinux"),
    };
    if !Path::new(UEFI_MODULES).exists() {
        missing.push(("GRUB for x86_64 UEFI".to_owned(), "grub-efi-amd64-bin"));
    }
    if missing.is_empty() {
        return Ok(loaders);
    }
    let mut packages: Vec<String> = missing.iter().map(|(_, package)| (*package).to_owned()).collect();
    packages.sort();
    packages.dedup();
    Err(BuildError::Missing {
        what: missing.into_iter().map(|(what, _)| what).collect(),
        packages,
    })
}

fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Runs to the end and gives what it printed. Its errors are shown only when it fails.
pub(super) fn run(command: &mut Command) -> Result<Vec<u8>, BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.map_err(|error| BuildError::input(format!("cannot start {program}: {error}")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(BuildError::Program {
        program,
        status: output.status.to_string(),
        words: last_words(&output.stderr),
    })
}

/// The end of a long complaint is where the cause is.
fn last_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_named_with_its_last_words() {
        let error =
            run(Command::new("sh").args(["-c", "for i in 1 2 3 4 5; do echo line $i >&2; done; exit 3"]));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("sh failed (exit status: 3)"), "{text}");
        assert!(text.ends_with("line 3; line 4; line 5"), "{text}");
    }
}
