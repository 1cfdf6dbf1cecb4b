//! Lets coreos-installer write the disk where the image brings it along.

use super::Slot;
use anyhow::{Context as _, ensure};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "coreos-installer";

/// Where the program is, if it is there.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(PROGRAM))
        .find(|file| file.is_file())
}

/// Runs it; `tell` gets the percentages it prints.
pub fn install(
    program: &Path,
    slot: &Slot,
    disk: &str,
    config: &[u8],
    args: &[String],
    mut tell: impl FnMut(u64),
) -> anyhow::Result<()> {
    let folder = std::env::temp_dir().join(format!("muster-agent-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let ignition = folder.join("host.ign");
    write_private(&ignition, config)?;
    let mut child = Command::new(program)
        .args(["install", "--insecure", "--ignition-file"])
        .arg(&ignition)
        .args(args)
        .arg(disk)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} does not start", program.display()))?;
    let mut errors = child.stderr.take().context("its output cannot be read")?;
    let mut last = String::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = errors.read(&mut buffer) {
        if slot.is_cancelled() {
            let _ = crate::sys::terminate(child.id());
        }
        for line in String::from_utf8_lossy(&buffer[..length])
            .split(['\r', '\n'])
            .filter(|line| !line.trim().is_empty())
        {
            match percent(line) {
                Some(percent) => tell(percent),
                None => last = line.trim().to_owned(),
            }
        }
    }
    let status = child.wait()?;
    let _ = std::fs::remove_dir_all(&folder);
    ensure!(status.success(), "coreos-installer ended with {status}: {last}");
    Ok(())
}

/// The config holds secrets.
fn write_private(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    Ok(())
}

/// `Read disk 1.1 GiB/2.5 GiB (44%)`.
fn percent(line: &str) -> Option<u64> {
    let (_, rest) = line.rsplit_once('(')?;
    rest.split_once("%)")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_from_its_output() {
        assert_eq!(percent("> Read disk 1.1 GiB/2.5 GiB (44%)   "), Some(44));
        assert_eq!(percent("Installing Fedora CoreOS (x86_64)"), None);
        assert_eq!(percent(""), None);
    }

    #[test]
    fn its_last_words_are_told_when_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("fake");
        std::fs::write(
            &program,
            "#!/bin/sh\nprintf 'Read disk 1/2 (50%%)\\rError: no such disk\\n' >&2\nexit 1\n",
        )
        .unwrap();
        std::os::unix::fs::chown(&program, None, None).unwrap();
        let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let mut seen = Vec::new();
        let error = install(&program, &Slot::default(), "/dev/x", b"{}", &[], |percent| {
            seen.push(percent)
        })
        .unwrap_err();
        assert!(error.to_string().contains("no such disk"), "{error}");
        assert_eq!(seen, [50]);
    }
}
