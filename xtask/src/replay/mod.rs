//! `cargo xtask replay`: plays recorded exchanges against a hub and says where the answers differ.

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

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{hub, project};

pub use report::Summary;
pub use run::Extent;

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
    /// Stop at the first exchange that starts an installation (the default for flow_* files)
    #[arg(long, conflicts_with = "whole")]
    until_install: bool,
    /// Replay to the end, installations included
    #[arg(long)]
    whole: bool,
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
    /// `None`: decided by the file's name, see [`Extent::of_file`].
    pub extent: Option<Extent>,
    pub strict: bool,
    pub verbose: bool,
}

/// The command: replays, prints, and fails when something differs that nobody intended.
pub fn run(args: &Args) -> Result<()> {
    if let Some(dir) = &args.mask_into {
        return args.files.iter().try_for_each(|file| mask::copy(file, dir));
    }
    let extent = match (args.until_install, args.whole) {
        (true, _) => Some(Extent::UntilInstall),
        (_, true) => Some(Extent::Whole),
        (false, false) => None,
    };
    let files = if args.files.is_empty() {
        project_recordings()?
    } else {
        args.files.clone()
    };
    let options = Options {
        extent,
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
    let intended = intended::Intended::load()?;
    let mut summary = Summary::default();
    let binary = if hub.is_none() {
        Some(project::build(project::Profile::Dev)?)
    } else {
        None
    };
    for file in files {
        let recording = recording::Recording::load(file)?;
        let extent = options.extent.unwrap_or_else(|| Extent::of_file(&recording.name));
        let report = match (&binary, hub) {
            (Some(binary), _) => with_own_hub(binary, |url| {
                run::replay(&recording, &client::Client::new(url), &intended, extent)
            })?,
            (None, url) => run::replay(
                &recording,
                &client::Client::new(url.unwrap_or_default()),
                &intended,
                extent,
            ),
        };
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

/// A hub with an empty database, for as long as the work takes.
fn with_own_hub<T>(binary: &Path, work: impl FnOnce(&str) -> T) -> Result<T> {
    let dir = tempfile::tempdir()?;
    let options = hub::Options {
        binary,
        listen: "127.0.0.1:0",
        data_dir: dir.path(),
        database: None,
        ends_with_us: true,
    };
    let hub = hub::Hub::start(&options)?;
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
