//! What stands in the place of `muster operator` in a program that was built without it: a refusal that says so.

use crate::exit::{Failure, Outcome};
use std::convert::Infallible;
use std::ffi::OsString;
use std::future::{Ready, ready};

/// Run the Kubernetes operator; this program was built without it
#[derive(Debug, clap::Args)]
pub struct OperatorArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

/// `serve --kube` has no settings here, and does not start.
#[derive(Debug, Clone, clap::Args)]
pub struct KubeArgs {}

/// There is no way to reach a cluster.
pub struct Connection(Infallible);

pub fn run(_hub: &str, _args: OperatorArgs) -> Outcome {
    Err(absent())
}

impl KubeArgs {
    pub fn connect(&self) -> Ready<Outcome<Connection>> {
        ready(Err(absent()))
    }

    pub fn run(self, connection: Connection, _hub: &str, _stop: impl Future<Output = ()>) -> Ready<Outcome> {
        match connection.0 {}
    }
}

fn absent() -> Failure {
    Failure::other("this program was built without the operator")
        .next("build one with it: `cargo build --release --bin muster`")
}
