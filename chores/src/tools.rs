//! What the chores need beyond cargo: found, or installed by package name when it is missing.

pub mod agent;
mod coreos;
mod go;
mod helm;
mod kube;
mod python;
pub mod qemu;
mod server;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use xtask::{apt, turn};

use crate::{process, project};

pub use kube::Kube;
pub use python::Python;
pub use xtask::apt::{Unavailable, ensure_compiler};

/// The formatter and the linter of the toolchain in use.
pub fn ensure_rust_components() -> Result<()> {
    for component in ["fmt", "clippy"] {
        if process::succeeds(project::cargo().args([component, "--version"])) {
            continue;
        }
        let name = if component == "fmt" { "rustfmt" } else { component };
        println!("installing {name} with rustup");
        let mut rustup = Command::new("rustup");
        process::output(
            rustup
                .current_dir(project::root())
                .args(["component", "add", name]),
        )
        .with_context(|| format!("cargo {component} is missing"))?;
    }
    Ok(())
}

/// The directory with `initdb`, `postgres` and `psql`.
pub fn ensure_postgres() -> Result<PathBuf> {
    server::ensure_postgres()
}

/// What makes, mounts and protects file systems, and puts processes into namespaces.
pub fn ensure_disks() -> Result<()> {
    apt::ensure(&["e2fsprogs", "mount", "util-linux"])
}

/// The library that tells programs another time, for programs with several threads.
pub fn ensure_faketime() -> Result<PathBuf> {
    apt::ensure(&["libfaketime"])?;
    let places = std::fs::read_dir("/usr/lib")?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files = places.map(|place| place.join("faketime/libfaketimeMT.so.1"));
    files
        .find(|file| file.exists())
        .context("the package libfaketime put no library below /usr/lib")
}

/// The tool of CoreOS for its own images.
pub fn ensure_coreos_installer() -> Result<PathBuf> {
    coreos::ensure()
}

/// A Python environment with the clients of the test suites.
pub fn ensure_python() -> Result<Python> {
    python::ensure()
}

/// A Kubernetes API server, etcd, the controller manager and `kubectl`.
pub fn ensure_kube() -> Result<Kube> {
    kube::ensure()
}

pub fn ensure_helm() -> Result<PathBuf> {
    helm::ensure()
}

/// Builds container images without a daemon.
pub fn ensure_buildah() -> Result<()> {
    ensure_program("buildah", "--version", "buildah")
}

/// A DHCP server for both families.
pub fn ensure_dnsmasq() -> Result<()> {
    ensure_program("dnsmasq", "--version", "dnsmasq-base")
}

pub fn ensure_openssl() -> Result<()> {
    ensure_program("openssl", "version", "openssl")
}

/// The dialect of Lua that Argo CD speaks.
pub fn ensure_lua() -> Result<()> {
    ensure_program("lua5.1", "-v", "lua5.1")
}

/// What makes a program that needs no library of the machine it runs on; gives the name of the target.
pub fn ensure_static_target() -> Result<String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut rustc = Command::new("rustc");
    let sysroot = process::output(rustc.current_dir(project::root()).args(["--print", "sysroot"]))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
    if !sysroot.join("lib/rustlib").join(&target).exists() {
        println!("installing the target {target} with rustup");
        let mut rustup = Command::new("rustup");
        process::output(
            rustup
                .current_dir(project::root())
                .args(["target", "add", &target]),
        )
        .with_context(|| format!("the target {target} is missing"))?;
    }
    ensure_program("musl-gcc", "--version", "musl-tools")?;
    Ok(target)
}

fn ensure_program(program: &str, probe: &str, package: &str) -> Result<()> {
    if process::succeeds(Command::new(program).arg(probe)) {
        return Ok(());
    }
    apt::install(&[package])
}
