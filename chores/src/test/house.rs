//! What the suites share: started when the first one asks, stopped at the end.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::packages::Built;
use super::skips::Skips;
use super::suites::LIMIT;
use crate::kube::Cluster;
use crate::postgres::{Durability, Postgres};
use crate::process;
use crate::project::{self, Profile};
use crate::tools::{self, Python};

pub struct House {
    scope: Scope,
    /// Of the tests of a package, only those with this in their names.
    named: Option<String>,
    built: Option<Built>,
    skips: Skips,
    postgres: Option<Postgres>,
    kube: Option<Cluster>,
    python: Option<Python>,
    binary: Option<PathBuf>,
}

/// How much is run, which decides how tests are compiled fastest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Everything,
    Chosen,
}

/// Which tests, and how.
pub struct Tests<'a> {
    pub package: &'a str,
    pub environment: &'a [(&'a str, &'a str)],
    /// For the test programs.
    pub arguments: &'a [&'a str],
    /// For the tests alone, without compiling them.
    pub limit: Option<Duration>,
}

impl<'a> Tests<'a> {
    pub fn of(package: &'a str) -> Self {
        Self {
            package,
            environment: &[],
            arguments: &[],
            limit: None,
        }
    }
}

impl House {
    pub fn new(scope: Scope, named: Option<String>) -> Self {
        Self {
            scope,
            named,
            built: None,
            skips: Skips::default(),
            postgres: None,
            kube: None,
            python: None,
            binary: None,
        }
    }

    /// Runs the tests of one package.
    pub fn tests(&mut self, package: &str, environment: &[(&str, &str)]) -> Result<()> {
        self.run(&Tests {
            environment,
            ..Tests::of(package)
        })
    }

    pub fn run(&mut self, tests: &Tests) -> Result<()> {
        match self.scope {
            Scope::Everything => provide(&mut self.built, Built::build)?.run(tests, &mut self.skips),
            Scope::Chosen => {
                tools::ensure_compiler()?;
                process::run(cargo_test(tests.package).arg("--no-run"), LIMIT)?;
                let mut command = cargo_test(tests.package);
                command
                    .args(&self.named)
                    .arg("--")
                    .args(tests.arguments)
                    .envs(tests.environment.iter().copied());
                self.skips.run(command, tests.limit.unwrap_or(LIMIT))
            }
        }
    }

    /// What said since the last suite that it was skipped.
    pub fn skipped(&mut self) -> Vec<String> {
        self.skips.take()
    }

    /// One PostgreSQL server for the whole run; each test makes databases of its own in it.
    pub fn postgres(&mut self) -> Result<&Postgres> {
        provide(&mut self.postgres, || Postgres::start(Durability::Relaxed))
    }

    /// One API server for the whole run; each test makes a namespace of its own in it.
    pub fn kube(&mut self) -> Result<&Cluster> {
        provide(&mut self.kube, Cluster::start)
    }

    pub fn python(&mut self) -> Result<&Python> {
        provide(&mut self.python, tools::ensure_python)
    }

    /// The `muster` binary, built.
    pub fn binary(&mut self) -> Result<PathBuf> {
        Ok(provide(&mut self.binary, || project::build(Profile::Dev))?.clone())
    }
}

fn cargo_test(package: &str) -> Command {
    let mut command = project::cargo();
    command.args(["test", "--package", package]);
    command
}

fn provide<T>(slot: &mut Option<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    Ok(match slot {
        Some(there) => there,
        None => slot.insert(make()?),
    })
}
