//! One hub per SQLite file: a lock beside it, which the system takes back when its holder ends, however it ends.

use crate::StoreError;
use crate::home::at;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A hub that was just asked to stop may still be at it.
const PATIENCE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(50);

/// The file's name with something at its end.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// Keeps other hubs out until the file is closed.
pub(crate) async fn take(path: &Path) -> Result<File, StoreError> {
    let lock = beside(path, ".lock");
    let mut options = OpenOptions::new();
    options
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600);
    let mut file = options.open(&lock).map_err(|error| at(&lock, error))?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(AGAIN).await,
            Err(TryLockError::WouldBlock) => return Err(held(path, &mut file)),
            Err(TryLockError::Error(error)) => return Err(at(&lock, error)),
        }
    }
    // Only for people: a full disk must not keep the hub from starting.
    let _ = sign(&mut file);
    Ok(file)
}

fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn held(path: &Path, file: &mut File) -> StoreError {
    let mut text = String::new();
    // An empty name is as good as none.
    let _ = file.read_to_string(&mut text);
    let who = match text.trim().parse::<u32>() {
        Ok(process) => format!("another hub, process {process},"),
        Err(_) => "another hub".to_owned(),
    };
    StoreError::not_ours(format!(
        "{who} works on {}: stop it first, or give this hub a data directory of its own",
        path.display()
    ))
}
