//! Builds what is measured, starts the databases, and walks each fleet.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::table::Sheet;
use super::turns::Turns;
use super::walk::Walk;
use super::{Database, HubBench};
use crate::postgres::{Durability, Postgres};
use crate::project;

pub fn hub(args: &HubBench) -> Result<()> {
    if let Some(other) = args.against.as_deref().filter(|other| !other.is_file()) {
        bail!(
            "--against: there is no program {}; build one with `cargo build --release --bin muster`",
            other.display()
        );
    }
    if !args.no_build {
        super::build()?;
    }
    let mut sheets = Vec::new();
    let mut compared = Vec::new();
    for hosts in &args.hosts {
        for is_postgres in [false, true] {
            let left_out = if is_postgres {
                Database::Sqlite
            } else {
                Database::Postgres
            };
            if args.database == left_out {
                continue;
            }
            match &args.against {
                None => {
                    sheets.push(walk(args, *hosts, is_postgres, &ours())?);
                    keep(args, &sheets)?;
                }
                Some(other) => {
                    compared.push(in_turns(args, *hosts, is_postgres, other)?);
                    keep(args, &compared)?;
                }
            }
        }
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

/// Who goes first changes from round to round: the second one may find warmer or fuller disks.
fn in_turns(args: &HubBench, hosts: u32, is_postgres: bool, other: &Path) -> Result<Turns> {
    let mut rounds = Vec::new();
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        let ours = || {
            eprintln!(" this build");
            walk(args, hosts, is_postgres, &ours())
        };
        let theirs = || {
            eprintln!(" the other build");
            walk(args, hosts, is_postgres, other)
        };
        rounds.push(if round % 2 == 0 {
            (ours()?, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        });
    }
    let title = rounds
        .first()
        .map_or_else(String::new, |(ours, _)| ours.title.clone());
    let turns = Turns::of(title, &rounds);
    println!("{turns}");
    Ok(turns)
}

fn walk(args: &HubBench, hosts: u32, is_postgres: bool, binary: &Path) -> Result<Sheet> {
    // On a disk: what is in memory only is not durable.
    let home = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(project::target())?;
    let server = is_postgres
        .then(|| Postgres::start(Durability::Full))
        .transpose()?;
    let url = server
        .as_ref()
        .map(|server| server.create_database("bench"))
        .transpose()?;
    let database = url.as_deref().zip(server.as_ref().map(Postgres::pid));
    let name = if is_postgres { "PostgreSQL" } else { "SQLite" };
    eprintln!("{hosts} hosts, {name}");
    let mut sheet = Sheet::of_fleet(hosts, name);
    let walk = Walk {
        args,
        binary,
        home: home.path(),
        database,
        hosts,
    };
    let done = walk.run(&mut sheet);
    // What was measured before something went wrong is still worth seeing.
    println!("{sheet}");
    done.map(|()| sheet)
}
