//! `muster gen`: the documents of the project that are made from code.

use super::reference;
use crate::exit::Outcome;
use crate::output;

/// Print a generated document
#[derive(Debug, clap::Args)]
pub struct GenArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Copy, clap::Subcommand)]
enum What {
    /// The OpenAPI document of the hub, as JSON
    Openapi,
    /// The reference of this command line, as Markdown
    Cli,
    /// The states of something and the ways between them, as Markdown
    States {
        #[arg(value_enum, default_value = "host")]
        of: Subject,
    },
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Subject {
    Host,
    Cluster,
}

pub fn run(args: GenArgs) -> Outcome {
    match args.what {
        What::Openapi => output::data(output::Format::Json, &muster_hub::http::openapi::document()),
        What::Cli => output::print(&reference::markdown(&super::tree())),
        What::States { of: Subject::Host } => output::print(&muster_domain::host::diagram::markdown()),
        What::States { of: Subject::Cluster } => output::print(&muster_domain::cluster::diagram::markdown()),
    }
}
