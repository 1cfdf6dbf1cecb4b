//! What stands in the place of `muster operator` in a program that was built without it: a refusal that says so.

use super::Global;
use crate::exit::{Failure, Outcome};
use muster_contract::Trust;
use std::ffi::OsString;
use std::future::{Ready, ready};

/// Run the Kubernetes operator; this program was built without it
#[derive(Debug, clap::Args)]
pub struct OperatorArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

/// Without settings: `serve --kube` does not start.
#[derive(Debug, Clone, clap::Args)]
pub struct KubeArgs {}

pub fn run(_global: &Global, _args: OperatorArgs) -> Outcome {
    Err(absent())
}

impl KubeArgs {
    pub fn connect(&self) -> Ready<Outcome> {
        ready(Err(absent()))
    }

    pub fn run(
        self,
        _connection: (),
        _hub: &str,
        _trust: Trust,
        _stop: impl Future<Output = ()>,
    ) -> Ready<Outcome> {
        ready(Err(absent()))
    }
}

fn absent() -> Failure {
    Failure::other("this program was built without the operator")
        .next("build one with it: `cargo build --release --bin muster`")
}
