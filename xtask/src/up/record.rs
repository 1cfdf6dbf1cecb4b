//! What `up --detach` left running, written down in the data directory so that `down` finds it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::{process, wait};

/// The hub finishes its open requests first.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Process ids.
#[derive(Debug, PartialEq)]
pub struct Record {
    pub hub: u32,
    pub fleet: Option<u32>,
}

impl Record {
    pub fn write(&self, data_dir: &Path) -> Result<()> {
        let fleet = self.fleet.map_or("null".into(), |fleet| fleet.to_string());
        let text = format!("{{\"hub\":{},\"fleet\":{fleet}}}\n", self.hub);
        fs::write(path(data_dir), text).context("writing down what runs")
    }

    pub fn read(data_dir: &Path) -> Result<Option<Self>> {
        let file = path(data_dir);
        match fs::read_to_string(&file) {
            Ok(text) => Ok(Some(Self {
                hub: number(&text, "hub").with_context(|| format!("reading {}", file.display()))?,
                fleet: number(&text, "fleet"),
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("reading {}", file.display())),
        }
    }

    pub fn remove(data_dir: &Path) -> Result<()> {
        fs::remove_file(path(data_dir)).context("removing the note of what runs")
    }

    /// The fleet first, so that the hub has nobody left to answer.
    pub fn stop(&self) -> Result<()> {
        for pid in self.fleet.into_iter().chain([self.hub]) {
            if !is_ours(pid) {
                continue;
            }
            process::signal(pid, Signal::TERM)?;
            wait::until("a process to end", STOP_LIMIT, || {
                Ok((!is_ours(pid)).then_some(()))
            })?;
        }
        Ok(())
    }
}

/// The number of this name in a note of ours.
fn number(note: &str, name: &str) -> Option<u32> {
    let (_, rest) = note.split_once(&format!("\"{name}\":"))?;
    let end = rest
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("up.json")
}

/// Ids are used again: only a process that still runs our binary is ours to stop.
fn is_ours(pid: u32) -> bool {
    let exe = fs::read_link(format!("/proc/{pid}/exe"));
    exe.is_ok_and(|exe| {
        exe.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("muster"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_down_is_read_back_and_forgotten_on_request() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Record::read(home.path()).unwrap(), None);
        let record = Record {
            hub: 7,
            fleet: Some(8),
        };
        record.write(home.path()).unwrap();
        assert_eq!(Record::read(home.path()).unwrap(), Some(record));
        let alone = Record { hub: 7, fleet: None };
        alone.write(home.path()).unwrap();
        assert_eq!(Record::read(home.path()).unwrap(), Some(alone));
        Record::remove(home.path()).unwrap();
        assert_eq!(Record::read(home.path()).unwrap(), None);
    }

    #[test]
    fn a_process_that_is_not_muster_is_left_alone() {
        assert!(!is_ours(1));
        Record {
            hub: std::process::id(),
            fleet: None,
        }
        .stop()
        .unwrap();
    }
}
