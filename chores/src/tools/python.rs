//! A virtual environment in the cache, keyed by the pinned requirements: built once, used by every clone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{apt, turn};
use crate::{process, project};

/// Two or three minutes on a slow line; a stuck download should still end some time.
const PIP_LIMIT: Duration = Duration::from_secs(10 * 60);

/// The programs of a virtual environment.
pub struct Python {
    bin: PathBuf,
}

impl Python {
    /// A program of the environment, which talks to our own servers only.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        project::without_proxy(&mut command)
            .env("PATH", self.path())
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME");
        command
    }

    fn path(&self) -> std::ffi::OsString {
        let rest = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&rest));
        std::env::join_paths(all).unwrap_or(rest)
    }
}

pub fn ensure() -> Result<Python> {
    let requirements = project::root().join("chores/python/requirements.txt");
    let pins =
        fs::read_to_string(&requirements).with_context(|| format!("reading {}", requirements.display()))?;
    ensure_interpreter()?;
    let version = process::output(Command::new("python3").arg("--version"))?;
    let key = fnv(pins.as_bytes(), &version);
    let home = project::cache().join(format!("venv-{key:016x}"));
    let complete = home.join("complete");
    let _turn = turn::take("python")?;
    if !complete.exists() {
        build(&home, &requirements)?;
        fs::write(&complete, pins)?;
    }
    Ok(Python {
        bin: home.join("bin"),
    })
}

/// Debian splits the module that makes environments off the interpreter.
fn ensure_interpreter() -> Result<()> {
    if process::succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"])) {
        return Ok(());
    }
    apt::install(&["python3", "python3-venv"])
}

fn build(home: &Path, requirements: &Path) -> Result<()> {
    println!("installing the Python clients into {}", home.display());
    if home.exists() {
        fs::remove_dir_all(home).context("removing an unfinished Python environment")?;
    }
    fs::create_dir_all(project::cache())?;
    process::output(Command::new("python3").args(["-m", "venv"]).arg(home))?;
    let mut pip = Command::new(home.join("bin/pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ])
    .arg(requirements);
    process::run(&mut pip, PIP_LIMIT)
}

/// FNV-1a: a name for a set of pins that stays the same between releases of this tool.
fn fnv(pins: &[u8], version: &[u8]) -> u64 {
    let bytes = pins.iter().chain(version);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_pins_or_another_interpreter_get_another_environment() {
        assert_eq!(fnv(b"a==1", b"3.11"), fnv(b"a==1", b"3.11"));
        assert_ne!(fnv(b"a==1", b"3.11"), fnv(b"a==2", b"3.11"));
        assert_ne!(fnv(b"a==1", b"3.11"), fnv(b"a==1", b"3.12"));
    }
}
