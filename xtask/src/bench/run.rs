//! Builds what is measured, starts the databases, and walks each fleet.

use anyhow::{Context, Result};

use super::table::Sheet;
use super::walk::Walk;
use super::{Database, HubBench};
use crate::postgres::{Durability, Postgres};
use crate::project;

pub fn hub(args: &HubBench) -> Result<()> {
    if !args.no_build {
        super::build()?;
    }
    let mut sheets = Vec::new();
    for hosts in &args.hosts {
        if args.database != Database::Postgres {
            sheets.push(walk(args, *hosts, None)?);
        }
        if args.database != Database::Sqlite {
            let server = Postgres::start(Durability::Full)?;
            sheets.push(walk(args, *hosts, Some(&server))?);
        }
        if let Some(file) = &args.json {
            let text = serde_json::to_string_pretty(&sheets)?;
            std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
        }
    }
    Ok(())
}

fn walk(args: &HubBench, hosts: u32, server: Option<&Postgres>) -> Result<Sheet> {
    // On a disk: what is in memory only is not durable.
    let home = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(project::target())?;
    let url = server.map(|server| server.create_database("bench")).transpose()?;
    let database = url.as_deref().zip(server.map(Postgres::pid));
    let name = if server.is_some() { "PostgreSQL" } else { "SQLite" };
    eprintln!("{hosts} hosts, {name}");
    let mut sheet = Sheet::of_fleet(hosts, name);
    let binary = project::binary(project::Profile::Release);
    let walk = Walk {
        args,
        binary: &binary,
        home: home.path(),
        database,
        hosts,
    };
    let done = walk.run(&mut sheet);
    // What was measured before something went wrong is still worth seeing.
    println!("{sheet}");
    done.map(|()| sheet)
}
