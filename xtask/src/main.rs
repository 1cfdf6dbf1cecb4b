//! Every chore people and CI run. Starting Muster is done here; what takes more to compile is built when it is called.

mod arguments;
mod chores;
mod compile;
mod up;

use std::process::ExitCode;

use anyhow::Result;
use arguments::Call;
use xtask::{apt, hub, process, project, wait};

/// As programs end that were called wrongly.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let call = match arguments::parse(lexopt::Parser::from_env()) {
        Ok(call) => call,
        Err(error) => {
            eprintln!("error: {error}\n\nFor more information, try '--help'.");
            return ExitCode::from(USAGE);
        }
    };
    match run(&call) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(call: &Call) -> Result<()> {
    match call {
        Call::Help(text) => print!("{text}"),
        Call::Bin => println!("{}", project::programs().display()),
        Call::Up(args) => {
            process::catch_signals()?;
            up::up(args)?;
        }
        Call::Down(args) => {
            process::catch_signals()?;
            up::down(args)?;
        }
        Call::Chore(words) => chores::run(words)?,
    }
    Ok(())
}
