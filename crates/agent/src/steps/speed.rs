//! How long a disk takes to keep a small write.
//!
//! The reference lets a load generator overwrite the disk. This measurement changes nothing: it reads a block and writes
//! the very same bytes back, waiting each time until the disk says that it has them. The disk is opened for ourselves
//! alone, so nobody else can have written in between; one that is mounted is refused. In a dry run, and where the disk
//! cannot be written to, reading is measured instead.

use super::{Context, json};
use anyhow::Context as _;
use muster_contract::v2::agent::args::DiskSpeedArgs;
use muster_contract::v2::agent::replies::DiskSpeedReply;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
/// As many as make a 99th percentile mean something, and a slow disk still ends in time.
const WRITES: u64 = 200;
/// Between the places written to.
const STRIDE: u64 = 1 << 20;

pub fn from_args(context: &Context, args: &[String]) -> Option<anyhow::Result<String>> {
    let [disk, seconds] = args else { return None };
    let disk: DiskSpeedArgs = serde_json::from_str(disk).ok()?;
    let limit = Duration::try_from_secs_f64(seconds.trim_matches('"').parse().ok()?).ok()?;
    Some(measure(context, disk.path, limit))
}

fn measure(context: &Context, path: String, limit: Duration) -> anyhow::Result<String> {
    let device = context.machine.path(&path);
    let file = (!context.settings.dry_run).then(|| open(&device)).transpose();
    let times = match file {
        Ok(Some(file)) => times(&file, limit, true),
        Ok(None) => times(&File::open(&device)?, limit, false),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            return Err(error).with_context(|| format!("{path} is in use"));
        }
        Err(_) => times(
            &File::open(&device).with_context(|| format!("{path} cannot be read"))?,
            limit,
            false,
        ),
    };
    let times = times.with_context(|| format!("{path} fails"))?;
    anyhow::ensure!(!times.is_empty(), "{path} is too small to be measured");
    let p99 = percentile(times);
    json(&DiskSpeedReply {
        path,
        io_sync_duration: i64::try_from(p99.as_millis()).unwrap_or(i64::MAX).max(1),
    })
}

fn open(device: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_EXCL | libc::O_DSYNC)
        .open(device)
}

fn times(file: &File, limit: Duration, write: bool) -> std::io::Result<Vec<Duration>> {
    use std::io::{Seek, SeekFrom};
    let mut end = file;
    let size = end.seek(SeekFrom::End(0))?;
    let places = size / STRIDE;
    let mut block = [0; BLOCK];
    let mut times = Vec::new();
    let start = Instant::now();
    for number in 0..WRITES {
        if places == 0 || start.elapsed() > limit {
            break;
        }
        let at = (number % places) * STRIDE;
        let begin = Instant::now();
        file.read_exact_at(&mut block, at)?;
        if write {
            let begin = Instant::now();
            file.write_all_at(&block, at)?;
            file.sync_data()?;
            times.push(begin.elapsed());
        } else {
            times.push(begin.elapsed());
        }
    }
    Ok(times)
}

fn percentile(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[(times.len() * 99).div_ceil(100) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_changes_no_byte() {
        let disk = tempfile::NamedTempFile::new().unwrap();
        let content: Vec<u8> = (0..8u32 << 20).map(|at| (at * 31) as u8).collect();
        std::fs::write(disk.path(), &content).unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(disk.path())
            .unwrap();
        assert_eq!(times(&file, Duration::from_secs(60), true).unwrap().len(), 200);
        assert!(std::fs::read(disk.path()).unwrap() == content);
    }

    #[test]
    fn the_percentile_leaves_out_the_slowest_of_a_hundred() {
        let mut all: Vec<Duration> = (0..99).map(|_| Duration::from_millis(2)).collect();
        all.push(Duration::from_secs(9));
        assert_eq!(percentile(all), Duration::from_millis(2));
        assert_eq!(
            percentile(vec![Duration::from_millis(5)]),
            Duration::from_millis(5)
        );
    }
}
