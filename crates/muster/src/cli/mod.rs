//! The command line: one file per noun, and the way from arguments to a running subcommand.

mod changes;
mod cluster;
mod completion;
mod door;
mod event;
mod generate;
mod host;
mod image;
mod infra_env;
#[cfg_attr(not(feature = "operator"), path = "no_operator.rs")]
mod operator;
mod reference;
mod serve;
mod sim;
mod site;
mod status;
mod tls;

use crate::config;
use crate::exit::{CODES, Failure, Outcome};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use muster_contract::Trust;
use muster_contract::client::HubClient;
use std::ffi::OsString;
use std::path::PathBuf;

/// Discovers hosts once, lends them to any cluster, and takes them back
#[derive(Debug, Parser)]
#[command(
    name = "muster",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  muster serve                                   start a hub on http://127.0.0.1:8090
  muster infra-env create lab                    where hosts arrive
  muster sim --infra-env lab --hosts 4 --poll 1  four simulated hosts
  muster host list --free                        free hosts
  muster cluster create demo                     a cluster to lend hosts to
  muster host bind worker-0 --cluster demo --wait

Every flag can also be set by an environment variable (--data-dir is
MUSTER_DATA_DIR) and in a TOML file: $XDG_CONFIG_HOME/muster/config.toml and
./muster.toml, with a section per subcommand, such as [serve] or [host.bind].
A flag beats the environment, the environment beats the files.

Exit codes: see `muster help exit-codes`."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Address of the hub
    #[arg(
        long,
        global = true,
        value_name = "URL",
        default_value = "http://127.0.0.1:8090"
    )]
    pub hub: String,
    /// PEM file with the authorities that may sign the hub's certificate; those that the system trusts when absent
    #[arg(long, global = true, value_name = "FILE", value_parser = crate::input::path(), value_hint = clap::ValueHint::FilePath)]
    pub ca: Option<PathBuf>,
    /// Read this file instead of the usual config files
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(Box<serve::ServeArgs>),
    Operator(operator::OperatorArgs),
    Sim(sim::SimArgs),
    InfraEnv(infra_env::InfraEnvArgs),
    Host(host::HostArgs),
    Cluster(cluster::ClusterArgs),
    Event(event::EventArgs),
    Image(image::ImageArgs),
    Changes(changes::ChangesArgs),
    Status(status::StatusArgs),
    Completion(completion::CompletionArgs),
    #[command(hide = true)]
    Gen(generate::GenArgs),
    /// What the exit codes mean
    #[command(hide = true, name = "exit-codes", after_help = CODES)]
    ExitCodes,
}

/// The whole tree, with the environment variable of every flag.
pub fn tree() -> clap::Command {
    config::with_environment(Cli::command(), &|_| false)
}

/// Reads arguments, environment and files. Ends the program on `--help`, `--version` and wrong usage.
pub fn parse() -> Outcome<Cli> {
    let args: Vec<OsString> = std::env::args_os().collect();
    let command = config::with_environment(Cli::command(), &|name| std::env::var_os(name).is_some());
    let command = config::with_files(command, &config::files(&args))?;
    let matches = command.get_matches_from(args);
    Ok(Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

/// Runs the chosen subcommand to its end.
pub fn run(cli: Cli) -> Outcome {
    let Cli { global, command } = cli;
    match command {
        Command::Completion(args) => completion::run(args),
        Command::Gen(args) => generate::run(args),
        Command::ExitCodes => crate::output::print(&format!("{CODES}\n")),
        Command::Serve(args) => on_all_cores(serve::run(*args)),
        Command::Operator(args) => operator::run(&global, args),
        Command::Sim(args) => on_all_cores(sim::run(&global.client()?, args)),
        Command::InfraEnv(args) => one_thread()?.block_on(infra_env::run(&global.client()?, args)),
        Command::Host(args) => one_thread()?.block_on(host::run(&global.client()?, args)),
        Command::Cluster(args) => one_thread()?.block_on(cluster::run(&global.client()?, args)),
        Command::Image(args) => image::run(&global, args),
        Command::Event(args) => one_thread()?.block_on(event::run(&global.client()?, args)),
        Command::Changes(args) => one_thread()?.block_on(changes::run(&global.client()?, args)),
        Command::Status(args) => one_thread()?.block_on(status::run(&global.client()?, args)),
    }
}

impl Global {
    fn client(&self) -> Outcome<HubClient> {
        HubClient::trusting(&self.hub, &self.trust()?).map_err(|error| {
            Failure::usage(format!("--hub: {error}")).next("write it like http://127.0.0.1:8090")
        })
    }

    /// Whose certificates are believed. Reading what the system trusts takes a while, and http needs none of it.
    fn trust(&self) -> Outcome<Trust> {
        // An empty variable is as good as none.
        match self.ca.as_ref().filter(|path| !path.as_os_str().is_empty()) {
            Some(path) => Trust::from_file(path).map_err(|error| {
                Failure::usage(format!("--ca: {error}"))
                    .next("name a PEM file with the certificate of the authority, such as the ca.crt of --tls-self-signed")
            }),
            None if self.hub.starts_with("https:") => Ok(Trust::system()),
            None => Ok(Trust::default()),
        }
    }
}

/// How long what was begun beside may take to end: a base image that is being fetched is gone on with next time.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_secs(1);

/// Runs something that serves many on all cores.
fn on_all_cores(work: impl Future<Output = Outcome>) -> Outcome {
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = threads.block_on(work);
    threads.shutdown_timeout(LAST_WORDS);
    done
}

/// Enough for a client, and quicker to start.
fn one_thread() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_commands_is_sound() {
        tree().debug_assert();
    }

    #[test]
    fn every_flag_has_an_environment_variable() {
        fn walk(command: &clap::Command) {
            for arg in command.get_arguments().filter(|arg| arg.get_long().is_some()) {
                let variable = arg.get_env().and_then(|name| name.to_str()).unwrap_or_default();
                assert!(
                    variable.starts_with("MUSTER_"),
                    "{} {:?}",
                    command.get_name(),
                    arg.get_long()
                );
            }
            command.get_subcommands().for_each(walk);
        }
        walk(&tree());
    }
}
