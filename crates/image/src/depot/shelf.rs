//! The directory of base images: names, what was found in them, and who must go when room is needed.

use crate::base::areas::{Areas, FORMAT};
use crate::base::hex;
use crate::catalog::OsImage;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Beside each image; its time of change is the time of last use.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub areas: Areas,
    /// For files used where they are: whether it is still the one that was read.
    pub modified: Option<SystemTime>,
}

#[derive(Clone, Debug)]
pub(super) struct Shelf {
    pub dir: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Whole,
    /// What came of a download that broke off; nobody may ever ask for the rest.
    Begun,
}

pub(super) struct Held {
    pub key: String,
    pub kind: Kind,
    pub len: u64,
    pub used: SystemTime,
}

impl Shelf {
    pub fn open(dir: &Path) -> io::Result<Shelf> {
        fs::create_dir_all(dir)?;
        Ok(Shelf { dir: dir.to_owned() })
    }

    pub fn image(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.iso"))
    }

    pub fn part(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.part"))
    }

    fn record_path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}.json"))
    }

    pub fn record(&self, key: &str) -> Option<Record> {
        let record: Record = serde_json::from_slice(&fs::read(self.record_path(key)).ok()?).ok()?;
        (record.areas.format == FORMAT).then_some(record)
    }

    /// Whole or not at all.
    pub fn keep_record(&self, key: &str, record: &Record) -> io::Result<()> {
        let aside = self.dir.join(format!("{key}.json.new"));
        fs::write(&aside, serde_json::to_vec_pretty(record)?)?;
        fs::rename(&aside, self.record_path(key))
    }

    pub fn touch(&self, key: &str) {
        let touched = File::options()
            .write(true)
            .open(self.record_path(key))
            .and_then(|file| file.set_modified(SystemTime::now()));
        if let Err(error) = touched {
            tracing::debug!(%error, key, "cannot record the last use of a base image");
        }
    }

    /// Whole images and what was begun, least recently used first.
    pub fn held(&self) -> io::Result<Vec<Held>> {
        let mut list = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let Some(key) = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned) else {
                continue;
            };
            let kind = match path.extension().and_then(|end| end.to_str()) {
                Some("iso") => Kind::Whole,
                Some("part") => Kind::Begun,
                _ => continue,
            };
            let data = match fs::metadata(&path) {
                Ok(data) => data,
                // Renamed or given up between two looks.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let used = match kind {
                Kind::Whole => fs::metadata(self.record_path(&key)).and_then(|data| data.modified()),
                Kind::Begun => data.modified(),
            };
            list.push(Held {
                used: used.or_else(|_| data.modified())?,
                len: data.len(),
                kind,
                key,
            });
        }
        list.sort_by_key(|held| held.used);
        Ok(list)
    }

    /// What the disk still takes from us.
    pub fn free(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.dir)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    pub fn remove(&self, key: &str) -> io::Result<()> {
        fs::remove_file(self.image(key))?;
        fs::remove_file(self.record_path(key)).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    }
}

/// Readable, and another for another address or checksum.
pub(super) fn key(image: &OsImage) -> String {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '.' {
                    c
                } else {
                    '_'
                }
            })
            .take(60)
            .collect()
    };
    let mut hash = Sha256::new();
    hash.update(&image.url);
    hash.update([0]);
    hash.update(image.sha256.as_deref().unwrap_or_default().to_ascii_lowercase());
    let hash = hex(&hash.finalize()[..6]);
    format!(
        "{}-{}-{hash}",
        plain(&image.version),
        plain(&image.cpu_architecture)
    )
    .replace('.', "_")
}
