//! What the system's packages bring: found, or installed as root or through sudo.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{process, turn};

/// This machine cannot provide something, and nothing we may do would change that. Suites that need it are skipped.
#[derive(Debug)]
pub struct Unavailable(pub String);

impl std::fmt::Display for Unavailable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// A C compiler, for the parts of our dependencies written in C.
pub fn ensure_compiler() -> Result<()> {
    if process::succeeds(Command::new("cc").arg("--version")) {
        return Ok(());
    }
    install(&["build-essential"])
}

/// Installs what is named; fetches the package lists only when it cannot get the packages without.
pub fn install(packages: &[&str]) -> Result<()> {
    let _turn = turn::take("apt")?;
    println!("installing {} with apt-get", packages.join(", "));
    if try_install(packages)? {
        return Ok(());
    }
    println!("fetching the package lists with apt-get update");
    if !as_root(&["apt-get", "update", "-qq"])?
        .status()
        .context("cannot start apt-get")?
        .success()
    {
        bail!("`apt-get update` failed");
    }
    if !try_install(packages)? {
        bail!("`apt-get install {}` failed", packages.join(" "));
    }
    Ok(())
}

/// Installs those that are not there yet.
pub fn ensure(packages: &[&str]) -> Result<()> {
    let missing: Vec<&str> = packages
        .iter()
        .copied()
        .filter(|name| !is_installed(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    install(&missing)
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}", package]);
    process::output(&mut query).is_ok_and(|status| status == b"installed")
}

fn try_install(packages: &[&str]) -> Result<bool> {
    let mut command = as_root(&[
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
        "--yes",
        "-qq",
    ])?;
    command
        .arg("--no-install-recommends")
        .args(packages)
        .stdout(Stdio::null());
    Ok(command.status().context("cannot start apt-get")?.success())
}

/// A command run with the rights to install; sudo may ask the person at the terminal for a password.
pub fn as_root(words: &[&str]) -> Result<Command> {
    if !Path::new("/usr/bin/apt-get").exists() {
        let wish = words.join(" ");
        return Err(Unavailable(format!("this machine has no apt-get, which `{wish}` needs")).into());
    }
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        return Ok(command);
    }
    if !process::succeeds(Command::new("sudo").arg("--version")) {
        let wish = words.join(" ");
        return Err(Unavailable(format!("`{wish}` needs root, and there is no sudo")).into());
    }
    let mut command = Command::new("sudo");
    command.args(words);
    Ok(command)
}
