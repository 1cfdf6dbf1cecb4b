//! `cargo xtask bench`: how many hosts a hub can look after, measured.

use anyhow::{Result, bail};
use clap::{Subcommand, ValueEnum};

#[derive(Subcommand)]
pub enum Bench {
    /// Load a release build of the hub with simulated hosts and print what it takes
    Hub(HubBench),
}

#[derive(clap::Args)]
pub struct HubBench {
    /// Fleet sizes, one run each
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1000,10000")]
    pub hosts: Vec<u32>,
    /// Which database the hub keeps its records in
    #[arg(long, default_value = "both")]
    pub database: Database,
    /// How long each measurement lasts
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub seconds: u64,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum Database {
    Sqlite,
    Postgres,
    Both,
}

pub fn command(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Hub(_) => bail!("the load generator is not built yet"),
    }
}
