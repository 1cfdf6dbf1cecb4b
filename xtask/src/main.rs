//! Every chore people and CI run: start Muster, test it, regenerate files, measure it.

mod bench;
mod generated;
mod http;
mod hub;
mod image;
mod kube;
mod port;
mod postgres;
mod process;
mod project;
mod replay;
mod test;
mod tools;
mod up;
mod wait;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Chores of the Muster project"
)]
#[command(after_help = "Examples:
  cargo xtask up           Muster with a small simulated fleet, on http://127.0.0.1:8090
  cargo xtask test         all checks, as CI runs them
  cargo xtask gen          rewrite the generated documents
  cargo xtask image        the container image as an archive

Missing tools are installed by package name (apt-get, pip in a virtual environment).
Compiled code and tools are kept in ${XDG_CACHE_HOME:-~/.cache}/muster.")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Build and start Muster with its embedded database and a small simulated fleet
    Up(up::Up),
    /// Stop what `up --detach` started
    Down(up::Down),
    /// Print where the built programs are, for the PATH
    Bin,
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
        Chore::Up(args) => up::up(args)?,
        Chore::Down(args) => up::down(args)?,
        Chore::Bin => println!("{}", project::programs().display()),
        Chore::Test(args) => return test::command(args),
        Chore::Gen(args) => generated::command(args)?,
        Chore::Image(args) => image::command(args)?,
        Chore::Replay(args) => replay::run(args)?,
        Chore::Bench(bench) => bench::command(bench)?,
    }
    Ok(true)
}
