//! The chores that take more to compile than `up` does: tests, generated files, images, recordings, measurements.
//! `cargo xtask` builds this program when one of them is called.

mod bench;
mod generated;
mod http;
mod hub;
mod image;
mod kube;
mod port;
mod postgres;
mod replay;
mod static_program;
mod test;
mod tools;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::{process, project, wait};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Chores of the Muster project"
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

/// What each is for is told by `xtask` as well, in `xtask::CHORES`.
#[derive(Subcommand)]
enum Chore {
    /// Check the formatting, the lints and every test, starting the servers they need
    Test(test::Test),
    /// Write the generated documents: OpenAPI, CLI reference, states, CRDs, manifests
    Gen(generated::Gen),
    /// Build the container image and write it as an archive
    Image(image::Args),
    /// Replay recordings against a hub and print the differences exchange by exchange
    Replay(replay::Args),
    /// Measure
    #[command(subcommand)]
    Bench(bench::Bench),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `false` is a failure that has already been told.
fn run(cli: &Cli) -> Result<bool> {
    process::catch_signals()?;
    match &cli.chore {
        Chore::Test(args) => return test::command(args),
        Chore::Gen(args) => generated::command(args)?,
        Chore::Image(args) => image::command(args)?,
        Chore::Replay(args) => replay::run(args)?,
        Chore::Bench(bench) => bench::command(bench)?,
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn whoever_asks_xtask_for_help_reads_of_all_chores() {
        let cli = Cli::command();
        let here = cli.get_subcommands().map(|chore| {
            let about = chore.get_about().map(ToString::to_string);
            (chore.get_name().to_owned(), about.unwrap_or_default())
        });
        let there = xtask::CHORES
            .iter()
            .map(|(name, about)| (name.to_string(), about.to_string()));
        assert!(there.eq(here), "{:?}", xtask::CHORES);
    }
}
