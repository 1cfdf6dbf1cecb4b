//! `cargo xtask replay`: plays recorded exchanges against a hub and says where the answers differ.

mod adapt;
mod cast;
mod client;
mod headers;
mod ids;
mod intended;
mod mask;
mod recording;
mod report;
mod run;
mod seed;
mod shape;
mod states;
mod steps;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};

use crate::{hub, project};

use intended::Intended;
use recording::Recording;
use report::FileReport;
pub use report::Summary;

/// A machine with two cores is busy with these; more would only make limits pass too late.
const SIDE_BY_SIDE: usize = 4;

/// Replays recordings against a hub and prints the differences exchange by exchange.
///
/// Without FILE all recordings of the project are replayed; without --hub a fresh hub is started for each file.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Recordings to replay; all of testdata/recordings when none is named
    files: Vec<PathBuf>,
    /// URL of a running hub, best an empty one: lists are compared whole
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// The muster binary to start hubs with; built when absent
    #[arg(long, value_name = "PATH", conflicts_with = "hub")]
    binary: Option<PathBuf>,
    /// Fail as well when an entry of the list of intended differences matched nothing
    #[arg(long)]
    strict: bool,
    /// Show every exchange, and the intended differences with their reasons
    #[arg(short, long)]
    verbose: bool,
    /// Do not replay: write copies without free texts, one exchange per line, into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "hub")]
    mask_into: Option<PathBuf>,
}

/// How to replay; the defaults are those of the command.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `None`: it is built.
    pub binary: Option<PathBuf>,
    pub strict: bool,
    pub verbose: bool,
}

/// The command: replays, prints, and fails when something differs that nobody intended.
pub fn run(args: &Args) -> Result<()> {
    if let Some(dir) = &args.mask_into {
        return args.files.iter().try_for_each(|file| mask::copy(file, dir));
    }
    let files = if args.files.is_empty() {
        project_recordings()?
    } else {
        args.files.clone()
    };
    let options = Options {
        binary: args.binary.clone(),
        strict: args.strict,
        verbose: args.verbose,
    };
    let summary = replay_files(&files, args.hub.as_deref(), &options)?;
    println!("{summary}");
    if summary.failed(options.strict) {
        bail!("the hub's answers differ from the recordings");
    }
    Ok(())
}

/// Replays each file and prints what differs; with no `hub` every file gets a fresh one of our own.
pub fn replay_files(files: &[PathBuf], hub: Option<&str>, options: &Options) -> Result<Summary> {
    let intended = Intended::load()?;
    let reports = match hub {
        Some(url) => one_after_another(files, url, &intended)?,
        None => side_by_side(files, options, &intended)?,
    };
    let mut summary = Summary::default();
    for report in reports {
        report.print(&intended, options.verbose);
        summary.add(report);
    }
    // Only a run over everything can tell that an entry is of no use any more.
    if project_recordings()?
        .iter()
        .all(|known| files.iter().any(|file| file.file_name() == known.file_name()))
    {
        summary.stale = intended.stale(&summary.hits);
    }
    Ok(summary)
}

fn one_after_another(files: &[PathBuf], url: &str, intended: &Intended) -> Result<Vec<FileReport>> {
    let client = client::Client::new(url);
    let one = |file: &PathBuf| Ok(run::replay(&Recording::load(file)?, &client, intended));
    files.iter().map(one).collect()
}

/// Each recording has a hub of its own, and most of its time it waits.
fn side_by_side(files: &[PathBuf], options: &Options, intended: &Intended) -> Result<Vec<FileReport>> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => project::build(project::Profile::Dev)?,
    };
    let tools = tempfile::tempdir()?;
    let installer = hub::installer::put(tools.path())?;
    // The longest come first, so that none of them is left over at the end.
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(std::fs::metadata(&files[*at]).map_or(0, |meta| meta.len())));
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let recording = Recording::load(&files[*at])?;
            let more = [installer.clone(), settings(&recording.name)].concat();
            let report = with_own_hub(&binary, &more, |url| {
                run::replay(&recording, &client::Client::new(url), intended)
            })?;
            reports
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((*at, report));
        }
        Ok(())
    };
    std::thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow!("a replay broke down"))??;
        }
        Ok(())
    })?;
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.sort_by_key(|(at, _)| *at);
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

/// How the recorded service was set up for one recording.
fn settings(name: &str) -> Vec<OsString> {
    match name {
        "flow_silence" => vec!["--disconnect-after".into(), "6".into()],
        _ => Vec::new(),
    }
}

/// A hub with an empty database, for as long as the work takes.
fn with_own_hub<T>(binary: &Path, more: &[OsString], work: impl FnOnce(&str) -> T) -> Result<T> {
    let dir = tempfile::tempdir()?;
    let options = hub::Options {
        binary,
        listen: "127.0.0.1:0",
        data_dir: dir.path(),
        database: None,
        ends_with_us: true,
    };
    let hub = hub::Hub::start_with(&options, more)?;
    let done = work(&hub.url);
    hub.stop()?;
    Ok(done)
}

/// The recordings kept in the project, in a stable order.
pub fn project_recordings() -> Result<Vec<PathBuf>> {
    let dir = project::root().join("testdata/recordings");
    let entries = std::fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}
