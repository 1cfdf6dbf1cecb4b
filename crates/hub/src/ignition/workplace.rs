//! A private directory for one run of a foreign program, gone when the run is over, however it ends.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const PREFIX: &str = "muster-work-";
/// Longer than any run: what is older was left behind by a hub that was killed.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// Far more than any file an installer writes.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

pub struct Workplace(TempDir);

impl Workplace {
    pub fn new(parent: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        sweep(parent);
        let private = fs::Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(private)
            .tempdir_in(parent)?;
        Ok(Self(dir))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// `name` may lead into folders; they are made.
    pub fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.0.path().join(name);
        if let Some(folder) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        io::Write::write_all(&mut file, content)
    }

    /// `None` when there is no such file. Links are not followed: they could lead out of here.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let path = self.0.path().join(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => Err(io::Error::other("it is not a file")),
            Ok(found) if found.len() > LARGEST_FILE => Err(io::Error::other("it is too large")),
            Ok(_) => fs::read(path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }
}

/// Best effort: what cannot be read or removed is somebody else's.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let path: PathBuf = entry.path();
        let is_old = || {
            let changed = entry.metadata().and_then(|found| found.modified()).ok()?;
            SystemTime::now().duration_since(changed).ok()
        };
        if is_ours && is_old().is_some_and(|age| age > FORGOTTEN) {
            let _ = fs::remove_dir_all(path);
        }
    }
}
