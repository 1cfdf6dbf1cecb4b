//! Builds what is measured, starts the databases, and walks each fleet as often as it is asked to.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tempfile::TempDir;

use super::spread::{self, Spread};
use super::table::Sheet;
use super::turns::Turns;
use super::walk::{Walk, side_by_side};
use super::{Database, HubBench, commit, publish};
use crate::postgres::{Durability, Postgres};
use crate::{process, project};

pub fn hub(args: &HubBench) -> Result<()> {
    if let Some(other) = args.against.as_deref().filter(|other| !other.is_file()) {
        bail!(
            "--against: there is no program {}; build one with `cargo build --release --bin muster`",
            other.display()
        );
    }
    if args.publish {
        publish::is_enough(args.rounds)?;
    }
    let commit = commit::measured(!args.no_build);
    if !args.no_build {
        super::build()?;
    }
    match &args.against {
        None => measured(args, &commit),
        Some(other) => compared(args, &commit, other),
    }
}

/// Each fleet on each database that is wanted.
fn fleets(args: &HubBench) -> impl Iterator<Item = (u32, bool)> {
    let databases = match args.database {
        Database::Sqlite => &[false][..],
        Database::Postgres => &[true],
        Database::Both => &[false, true],
    };
    let hosts = args.hosts.iter();
    hosts.flat_map(move |hosts| databases.iter().map(move |is_postgres| (*hosts, *is_postgres)))
}

fn measured(args: &HubBench, commit: &str) -> Result<()> {
    let mut all = Vec::new();
    for (hosts, is_postgres) in fleets(args) {
        let mut sheets = Vec::new();
        for round in 1..=args.rounds {
            eprintln!("run {round} of {}", args.rounds);
            let ours = ours();
            sheets.extend(walk(args, hosts, is_postgres, &[("this build", &ours)], 0)?);
        }
        let spread = Spread::of(&sheets, commit);
        println!("{spread}");
        all.push(spread);
        keep(args, &all)?;
    }
    if args.publish {
        publish::publish(publish::Of::Hub, &spread::side_by_side(&all))?;
    }
    Ok(())
}

fn compared(args: &HubBench, commit: &str, other: &Path) -> Result<()> {
    let theirs = process::output(Command::new(other).arg("--version"))?;
    let theirs = format!(
        "{} ({})",
        String::from_utf8_lossy(&theirs).trim(),
        other.display()
    );
    let mut all = Vec::new();
    for (hosts, is_postgres) in fleets(args) {
        let rounds = in_turns(args, hosts, is_postgres, other)?;
        let turns = Turns::of(commit, &theirs, &rounds);
        println!("{turns}");
        all.push(turns);
        keep(args, &all)?;
    }
    Ok(())
}

fn ours() -> std::path::PathBuf {
    project::binary(project::Profile::Release)
}

fn keep(args: &HubBench, figures: &impl Serialize) -> Result<()> {
    let Some(file) = &args.json else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(figures)?;
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

fn in_turns(args: &HubBench, hosts: u32, is_postgres: bool, other: &Path) -> Result<Vec<(Sheet, Sheet)>> {
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        let ours = ours();
        let builds = [("this build", ours.as_path()), ("the other build", other)];
        let mut sheets = walk(args, hosts, is_postgres, &builds, round as usize)?.into_iter();
        rounds.extend(sheets.next().zip(sheets.next()));
    }
    Ok(rounds)
}

/// Where one build has its data.
struct Place {
    home: TempDir,
    database: Option<(String, Postgres)>,
}

impl Place {
    fn new(is_postgres: bool) -> Result<Self> {
        // On a disk: what is in memory only is not durable.
        let home = tempfile::Builder::new()
            .prefix("bench-")
            .tempdir_in(project::target())?;
        let start = || {
            let server = Postgres::start(Durability::Full)?;
            anyhow::Ok((server.create_database("bench")?, server))
        };
        let database = is_postgres.then(start).transpose()?;
        Ok(Self { home, database })
    }
}

/// One run of these builds side by side, each with a fleet and a database of its own.
fn walk(
    args: &HubBench,
    hosts: u32,
    is_postgres: bool,
    builds: &[(&'static str, &Path)],
    turn: usize,
) -> Result<Vec<Sheet>> {
    let places = builds.iter().map(|_| Place::new(is_postgres));
    let places = places.collect::<Result<Vec<_>>>()?;
    eprintln!(
        "{hosts} hosts, {}",
        if is_postgres { "PostgreSQL" } else { "SQLite" }
    );
    let walks = builds.iter().zip(&places).map(|((name, binary), place)| Walk {
        args,
        name,
        binary,
        home: place.home.path(),
        database: place
            .database
            .as_ref()
            .map(|(url, server)| (url.as_str(), server.pid())),
        hosts,
    });
    let (sheets, done) = side_by_side(walks.collect(), turn);
    // The tables come when all runs are done. What was measured before something went wrong is still worth seeing.
    for ((name, _), sheet) in builds.iter().zip(&sheets) {
        eprintln!("{name}\n{sheet}");
    }
    done.map(|()| sheets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        bench: HubBench,
    }

    fn read(words: &[&str]) -> std::result::Result<HubBench, clap::Error> {
        let words = std::iter::once(&"hub").chain(words);
        Cli::try_parse_from(words).map(|cli| cli.bench)
    }

    #[test]
    fn each_fleet_is_measured_on_each_database() {
        let args = read(&["--hosts", "10,20"]).unwrap();
        let all: Vec<_> = fleets(&args).collect();
        assert_eq!(all, [(10, false), (10, true), (20, false), (20, true)]);
        let args = read(&["--hosts", "10", "--database", "postgres"]).unwrap();
        assert_eq!(fleets(&args).collect::<Vec<_>>(), [(10, true)]);
        publish::is_enough(args.rounds).unwrap();
    }

    #[test]
    fn what_is_published_was_compiled_for_it_and_measured_three_times() {
        assert!(read(&["--publish", "--no-build"]).is_err());
        let few = read(&["--publish", "--rounds", "2"]).unwrap();
        assert!(hub(&few).unwrap_err().to_string().contains("too few"));
    }
}
