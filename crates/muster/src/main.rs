//! The `muster` program: reads the command line, runs one subcommand, and ends with the exit code it earned.

mod age;
mod cli;
mod config;
mod exit;
mod input;
mod memory;
mod names;
mod output;
mod plan;
mod resolve;
mod size;
mod wait;

fn main() -> std::process::ExitCode {
    memory::give_back_soon();
    let outcome = cli::parse().and_then(cli::run);
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
