//! `muster image`: discovery images made, inspected and served.

mod build;
mod inspect;
mod serve;

use super::Global;
use crate::exit::Outcome;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Discovery images: build, inspect and serve them
#[derive(Debug, Args)]
pub struct ImageArgs {
    #[command(subcommand)]
    verb: ImageVerb,
}

#[derive(Debug, Subcommand)]
enum ImageVerb {
    Build(build::BuildArgs),
    Inspect(inspect::InspectArgs),
    Serve(serve::ServeArgs),
}

pub fn run(global: &Global, args: ImageArgs) -> Outcome {
    match args.verb {
        ImageVerb::Build(args) => build::run(args),
        ImageVerb::Inspect(args) => inspect::run(&args),
        ImageVerb::Serve(args) => super::on_all_cores(serve::run(global, args)),
    }
}

/// Where things are kept that can be fetched again, unless somebody says otherwise.
fn cache(given: Option<PathBuf>, name: &str) -> PathBuf {
    let set = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    let home = || {
        set("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".cache")))
            .unwrap_or_else(|| "/var/cache".into())
    };
    given.unwrap_or_else(|| home().join("muster").join(name))
}
