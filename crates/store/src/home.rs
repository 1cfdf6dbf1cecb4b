//! The SQLite file and what lies beside it: who may read it, which hub holds it, and whether it is still the same file.
//!
//! It is never opened here: closing it once would take away the locks that SQLite has on it in this process.

use crate::StoreError;
use crate::hold;
pub(crate) use crate::hold::beside;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Which database the directory belongs to.
const MARKER: &str = ".id";

pub(crate) struct Home {
    pub path: PathBuf,
    marker: PathBuf,
    /// Says whose file it was when nothing else does.
    pub expected: Option<Uuid>,
    file: FileId,
    log: Option<FileId>,
    /// Other hubs are kept out as long as this is open.
    _lock: File,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: u64,
    number: u64,
}

impl Home {
    /// Takes hold of the file, and makes an empty one where there never was one.
    pub async fn enter(path: &Path) -> Result<Self, StoreError> {
        let path = std::path::absolute(path).map_err(sqlx::Error::from)?;
        if let Some(parent) = path.parent() {
            let mut directory = DirBuilder::new();
            directory.recursive(true).mode(0o700);
            directory.create(parent).map_err(|error| at(parent, error))?;
        }
        // Two names of one file are one file.
        let path = fs::canonicalize(&path).unwrap_or(path);
        let lock = hold::take(&path).await?;
        let marker = beside(&path, MARKER);
        let expected = read_marker(&marker)?;
        let log = beside(&path, "-wal");
        if size(&path) == 0 {
            refuse_if_there_was_one(&path, &marker, expected, &log)?;
            create(&path)?;
        }
        for file in [&path, &log, &beside(&path, "-shm"), &marker] {
            keep_private(file);
        }
        let file = id_of(&path).map_err(|error| at(&path, error))?;
        Ok(Self {
            path,
            marker,
            expected,
            file,
            log: None,
            _lock: lock,
        })
    }

    /// From now on the directory belongs to this database.
    pub fn adopt(&mut self, id: Uuid) -> Result<(), StoreError> {
        self.log = id_of(&beside(&self.path, "-wal")).ok();
        if self.expected == Some(id) {
            return Ok(());
        }
        write_marker(&self.marker, id).map_err(|error| at(&self.marker, error))?;
        self.expected = Some(id);
        Ok(())
    }

    /// Puts another file in its place. Nobody has either of them open: the last one to close it takes the log away.
    pub fn replace(&mut self, by: &Path) -> Result<(), StoreError> {
        if beside(&self.path, "-wal").exists() {
            return Err(StoreError::not_ours("somebody else has the database open".into()));
        }
        fs::rename(by, &self.path).map_err(|error| at(&self.path, error))?;
        if let Some(directory) = self.path.parent() {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .map_err(|error| at(directory, error))?;
        }
        self.file = id_of(&self.path).map_err(|error| at(&self.path, error))?;
        Ok(())
    }

    /// Whether the file is still the one that was opened.
    pub fn check(&self) -> Result<(), StoreError> {
        let path = self.path.display();
        let what = match fs::metadata(&self.path) {
            Ok(found) if FileId::from(&found) != self.file => "was replaced by another file",
            Ok(found) if found.len() == 0 => "was emptied",
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => "was removed",
            // A disk that does not answer is another fault.
            Err(_) => return Ok(()),
        };
        Err(StoreError::not_ours(format!(
            "{path} {what} while the hub ran: restore a backup and start the hub again"
        )))
    }

    /// The log belongs to the file that is gone; beside another file it would be taken for that one's.
    pub fn set_log_aside(&self) {
        let log = beside(&self.path, "-wal");
        if self.log.is_some() && id_of(&log).ok() == self.log {
            let aside = beside(&self.path, "-wal.lost");
            match fs::rename(&log, &aside) {
                Ok(()) => {
                    tracing::warn!(file = %aside.display(), "the log of the lost database was set aside")
                }
                Err(error) => {
                    tracing::error!(%error, file = %log.display(), "remove this file before a backup is restored");
                }
            }
        }
    }

    /// Whoever removed all there was must not make a new hub by that, when this one is started again.
    pub fn keep_marker(&self) {
        if let Some(id) = self.expected
            && !self.marker.exists()
            && let Err(error) = write_marker(&self.marker, id)
        {
            tracing::warn!(%error, file = %self.marker.display(), "cannot write this file again");
        }
    }

    /// What the directory says does not fit to what the database says.
    pub fn mismatch(&self, found: Option<Uuid>) -> StoreError {
        let (path, marker) = (self.path.display(), self.marker.display());
        let is = match found {
            Some(id) => format!("is the database {id}"),
            None => "holds no data of a hub".to_owned(),
        };
        let expected = self.expected.map(|id| id.to_string()).unwrap_or_default();
        StoreError::not_ours(format!(
            "{path} {is}, but {marker} names {expected}: restore a backup of that one, or remove {marker} to use \
             this one"
        ))
    }

    /// Says in words of its own what SQLite says about a file that it cannot use.
    pub fn explain(&self, error: StoreError) -> StoreError {
        let (path, marker) = (self.path.display(), self.marker.display());
        match error.sqlite_code() {
            Some(26) => StoreError::not_ours(format!(
                "{path} is not a SQLite database: restore a backup, or move it away together with {marker} to begin \
                 with an empty one"
            )),
            Some(11) => StoreError::not_ours(format!(
                "{path} is damaged: restore a backup, or move it away together with {marker} to begin with an empty \
                 one"
            )),
            _ => error,
        }
    }
}

impl From<&fs::Metadata> for FileId {
    fn from(found: &fs::Metadata) -> Self {
        Self {
            device: found.dev(),
            number: found.ino(),
        }
    }
}

fn id_of(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|found| FileId::from(&found))
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// A log without its database is what is left of one, too.
fn refuse_if_there_was_one(
    path: &Path,
    marker: &Path,
    expected: Option<Uuid>,
    log: &Path,
) -> Result<(), StoreError> {
    let witness = match expected {
        Some(_) => marker,
        None if size(log) > 0 => log,
        None => return Ok(()),
    };
    let is = if path.exists() { "is empty" } else { "is gone" };
    Err(StoreError::not_ours(format!(
        "{} {is}, but {} says that a hub kept its data there: restore a backup, or remove {1} to begin with an empty \
         database",
        path.display(),
        witness.display(),
    )))
}

pub(crate) fn create(path: &Path) -> Result<(), StoreError> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.open(path).map(drop).map_err(|error| at(path, error))
}

fn read_marker(marker: &Path) -> Result<Option<Uuid>, StoreError> {
    let text = match fs::read_to_string(marker) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(marker, error)),
    };
    let first = text.lines().next().unwrap_or_default();
    first.trim().parse().map(Some).map_err(|_| {
        StoreError::not_ours(format!(
            "{} does not hold the id of a database: remove it if the database beside it is the right one",
            marker.display()
        ))
    })
}

/// Whole or not at all, and on disk.
fn write_marker(marker: &Path, id: Uuid) -> io::Result<()> {
    let draft = marker.with_extension("id.new");
    let mut options = OpenOptions::new();
    let mut file = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&draft)?;
    writeln!(file, "{id}")?;
    writeln!(
        file,
        "This hub keeps its data in the database of that id, in the file beside this one."
    )?;
    file.sync_all()?;
    fs::rename(&draft, marker)?;
    match marker.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// It holds pull secrets. Of a file that is not ours, its owner decides.
fn keep_private(path: &Path) {
    let Ok(found) = fs::metadata(path) else { return };
    let mode = found.permissions().mode();
    if mode & 0o077 == 0 {
        return;
    }
    if let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700)) {
        tracing::warn!(file = %path.display(), %error, "other users can read this file");
    }
}

pub(crate) fn at(path: &Path, error: io::Error) -> StoreError {
    let text = format!("{}: {error}", path.display());
    StoreError::from(sqlx::Error::Io(io::Error::new(error.kind(), text)))
}
