//! The `muster` program: reads the command line, runs one subcommand, and ends with the exit code it earned.

mod age;
mod cli;
mod config;
mod exit;
mod input;
mod names;
mod output;
mod plan;
mod resolve;
mod size;
mod wait;

/// The hub and simulated fleets allocate all the time from all threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    let outcome = cli::parse().and_then(cli::run);
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
