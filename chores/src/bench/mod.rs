//! `cargo xtask bench`: how many hosts a hub can look after, what serving images and keeping Agents takes, measured.

mod commit;
mod fleet;
mod image;
mod judged;
mod load;
mod meter;
mod operator;
mod peers;
mod publish;
mod reference;
mod run;
mod spread;
mod table;
mod turns;
mod walk;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};

use crate::{process, project};

#[derive(Subcommand)]
pub enum Bench {
    /// Load a release build of the hub with hosts and print what it takes
    Hub(HubBench),
    /// Let many clients read an image from a release build of the hub, and a plain file server beside it
    Image(image::ImageBench),
    /// Let the operator keep Agents on a real API server, and print what it writes and how late it is
    Operator(operator::OperatorBench),
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask bench hub
  cargo xtask bench hub --hosts 1000 --database sqlite --seconds 3 --rounds 1
  cargo xtask bench hub --hosts 1000,10000,100000 --json figures.json
  cargo xtask bench hub --hosts 1000 --against ../release-before/muster --rounds 3
  cargo xtask bench hub --publish

Everything runs on this machine, on loopback: the hub, its database and the load generator share the
cores. Beside the figures stand those of references measured in the same minute. Each fleet is measured in
several runs, one after the other, and the table has the median, the worst and the best of them.")]
pub struct HubBench {
    /// Fleet sizes, one run each
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_value = "1000,10000,100000"
    )]
    pub hosts: Vec<u32>,
    /// Which database the hub keeps its records in
    #[arg(long, default_value = "both")]
    pub database: Database,
    /// How long each measurement lasts
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub seconds: u64,
    /// Seconds between two polls of a host in the paced run
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub poll: u32,
    /// Measure the release binaries as they are
    #[arg(long)]
    pub no_build: bool,
    /// Measure this other build of `muster` in turns with ours, and compare
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,
    /// How many times each fleet is measured, and with --against by each of the two builds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub rounds: u32,
    /// Put the table into docs/benchmarks.md, with the commit that was measured
    #[arg(long, conflicts_with_all = ["against", "no_build"])]
    pub publish: bool,
    /// Also write all figures to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Database {
    Sqlite,
    Postgres,
    Both,
}

/// An optimised build from nothing on two slow cores.
const BUILD_LIMIT: Duration = Duration::from_secs(60 * 60);

/// What is measured and its references, for all benches at once: with other parts cargo would compile everything anew.
fn build() -> Result<()> {
    let mut build = project::cargo();
    build.args(["build", "--release", "--workspace", "--bin", "muster"]);
    for reference in ["bare_http", "bare_sqlite", "bare_sendfile"] {
        build.args(["--example", reference]);
    }
    process::run(&mut build, BUILD_LIMIT)
}

pub fn command(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Hub(args) => run::hub(args),
        Bench::Image(args) => image::run(args),
        Bench::Operator(args) => operator::run(args),
    }
}
