//! The suites, in the order they run: the cheapest first.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};

use super::house::House;
use super::{clients, fuzz, tour};
use crate::{generated, process, project, tools};

/// A cold build on two cores is in here; a suite that hangs still ends before CI gives up on the whole.
const LIMIT: Duration = Duration::from_secs(25 * 60);

pub struct Suite {
    pub name: &'static str,
    pub about: &'static str,
    kind: Kind,
}

enum Kind {
    /// A cargo command that needs nothing else.
    Cargo(&'static [&'static str]),
    /// The tests of a package, which find a PostgreSQL server in `MUSTER_TEST_POSTGRES`.
    WithPostgres(&'static str),
    Own(fn(&mut House) -> Result<()>),
}

impl Suite {
    pub fn run(&self, house: &mut House) -> Result<()> {
        match &self.kind {
            Kind::Cargo(words) => {
                tools::ensure_compiler()?;
                process::run(project::cargo().args(*words), LIMIT)
            }
            Kind::WithPostgres(package) => {
                let mut command = project::cargo();
                command.args(["test", "--package", package]);
                // A server given by whoever runs us is used as it is.
                if std::env::var_os("MUSTER_TEST_POSTGRES").is_none() {
                    command.env("MUSTER_TEST_POSTGRES", &house.postgres()?.url);
                }
                process::run(&mut command, LIMIT)
            }
            Kind::Own(run) => run(house),
        }
    }
}

pub const SUITES: &[Suite] = &[
    Suite {
        name: "fmt",
        about: "the formatting of all code",
        kind: Kind::Own(|_| format()),
    },
    Suite {
        name: "clippy",
        about: "lints, warnings are errors",
        kind: Kind::Own(|_| lint()),
    },
    Suite {
        name: "domain",
        about: "decisions: tables and laws",
        kind: Kind::Cargo(&["test", "--package", "muster-domain"]),
    },
    Suite {
        name: "contract",
        about: "wire types and the client",
        kind: Kind::Cargo(&["test", "--package", "muster-contract"]),
    },
    Suite {
        name: "store",
        about: "SQL on SQLite and on a real PostgreSQL",
        kind: Kind::WithPostgres("muster-store"),
    },
    Suite {
        name: "hub",
        about: "the hub over HTTP, on SQLite and on a real PostgreSQL",
        kind: Kind::WithPostgres("muster-hub"),
    },
    Suite {
        name: "simfleet",
        about: "simulated hosts",
        kind: Kind::Cargo(&["test", "--package", "muster-simfleet"]),
    },
    Suite {
        name: "muster",
        about: "the binary: CLI, crashes and restarts, on SQLite and on a real PostgreSQL",
        kind: Kind::WithPostgres("muster"),
    },
    Suite {
        name: "xtask",
        about: "this tool itself",
        kind: Kind::Cargo(&["test", "--package", "xtask"]),
    },
    Suite {
        name: "gen",
        about: "generated files are fresh",
        kind: Kind::Own(|_| generated::check()),
    },
    Suite {
        name: "replay",
        about: "recorded exchanges of the reference get the same status, keys and types",
        kind: Kind::Own(replay),
    },
    Suite {
        name: "aicli",
        about: "aicli and assisted-service-client, unmodified, on SQLite and on PostgreSQL",
        kind: Kind::Own(clients::run),
    },
    Suite {
        name: "schemathesis",
        about: "generated requests from the OpenAPI document, none may end in a 5xx",
        kind: Kind::Own(fuzz::run),
    },
    Suite {
        name: "tour",
        about: "README's five-minute tour, as pasted",
        kind: Kind::Own(tour::run),
    },
];

fn format() -> Result<()> {
    tools::ensure_rust_components()?;
    process::run(project::cargo().args(["fmt", "--all", "--check"]), LIMIT)
}

fn lint() -> Result<()> {
    tools::ensure_compiler()?;
    tools::ensure_rust_components()?;
    let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(project::cargo().args(words), LIMIT)
}

/// The project's own copies of the recordings; none there would be a test that proves nothing.
fn replay(house: &mut House) -> Result<()> {
    let folder = project::root().join("testdata/recordings");
    let files = recordings(&folder)?;
    if files.is_empty() {
        bail!("no recording in {}", folder.display());
    }
    house.binary()?;
    bail!("the replay is not connected yet")
}

fn recordings(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut files: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    Ok(files)
}
