//! Builds the program with the heavier chores and becomes it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};

use crate::compile::{self, Work};
use crate::project::{self, Profile};
use crate::{apt, process};

pub fn run(words: &[OsString]) -> Result<()> {
    // Until here nothing needs more than cargo.
    process::catch_signals()?;
    apt::ensure_compiler()?;
    let mut build = project::cargo();
    // As with the tests: the whole workspace decides the features, so that dependencies are compiled once for both.
    build.args(["build", "--workspace", "--bin", "chores"]);
    compile::run(build, &Work::chores())?;
    let program = project::target().join(Profile::Dev.directory()).join("chores");
    let error = Command::new(&program).args(words).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}
