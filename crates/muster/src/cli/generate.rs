//! `muster gen`: the documents of the project that are made from code.

use super::reference;
use crate::exit::Outcome;
use crate::output;

/// Print a generated document
#[derive(Debug, clap::Args)]
pub struct GenArgs {
    #[arg(value_enum)]
    what: What,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// The OpenAPI document of the hub, as JSON
    Openapi,
    /// The reference of this command line, as Markdown
    Cli,
    /// The states of a host and the ways between them, as Markdown
    States,
}

pub fn run(args: GenArgs) -> Outcome {
    match args.what {
        What::Openapi => output::data(output::Format::Json, &muster_hub::http::openapi::document()),
        What::Cli => output::print(&reference::markdown(&super::tree())),
        What::States => output::print(&muster_domain::host::diagram::markdown()),
    }
}
