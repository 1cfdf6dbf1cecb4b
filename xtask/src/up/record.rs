//! What `up --detach` left running, written down in the data directory so that `down` finds it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::{process, wait};

/// The hub finishes its open requests first.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Process ids.
#[derive(Serialize, Deserialize, Debug, PartialEq)]
pub struct Record {
    pub hub: u32,
    pub fleet: Option<u32>,
}

impl Record {
    pub fn write(&self, data_dir: &Path) -> Result<()> {
        fs::write(path(data_dir), serde_json::to_string(self)?).context("writing down what runs")
    }

    pub fn read(data_dir: &Path) -> Result<Option<Self>> {
        let file = path(data_dir);
        match fs::read_to_string(&file) {
            Ok(text) => Ok(Some(
                serde_json::from_str(&text).with_context(|| format!("reading {}", file.display()))?,
            )),
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
