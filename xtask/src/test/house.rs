//! What the suites share: started when the first one asks, stopped at the end.

use std::path::PathBuf;

use anyhow::Result;

use crate::postgres::{Durability, Postgres};
use crate::project::{self, Profile};
use crate::tools::{self, Python};

#[derive(Default)]
pub struct House {
    postgres: Option<Postgres>,
    python: Option<Python>,
    binary: Option<PathBuf>,
}

impl House {
    /// One PostgreSQL server for the whole run; each test makes databases of its own in it.
    pub fn postgres(&mut self) -> Result<&Postgres> {
        provide(&mut self.postgres, || Postgres::start(Durability::Relaxed))
    }

    pub fn python(&mut self) -> Result<&Python> {
        provide(&mut self.python, tools::ensure_python)
    }

    /// The `muster` binary, built.
    pub fn binary(&mut self) -> Result<PathBuf> {
        Ok(provide(&mut self.binary, || project::build(Profile::Dev))?.clone())
    }
}

fn provide<T>(slot: &mut Option<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    Ok(match slot {
        Some(there) => there,
        None => slot.insert(make()?),
    })
}
