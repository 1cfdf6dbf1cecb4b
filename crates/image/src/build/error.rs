//! Why an image could not be built, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Programs or files of the distribution that are not there.
    #[error("this machine lacks {}", .what.join(", "))]
    Missing {
        what: Vec<String>,
        packages: Vec<String>,
    },
    /// Something that was given cannot be used.
    #[error("{0}")]
    Input(String),
    #[error("{program} failed ({status}): {words}")]
    Program {
        program: String,
        status: String,
        words: String,
    },
    #[error("could not {done} {path}")]
    Io {
        path: PathBuf,
        done: &'static str,
        #[source]
        source: io::Error,
    },
}

impl BuildError {
    pub(super) fn input(text: impl Into<String>) -> BuildError {
        BuildError::Input(text.into())
    }

    pub(super) fn read(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
        at(path, "read")
    }

    pub(super) fn written(path: &Path) -> impl FnOnce(io::Error) -> BuildError {
        at(path, "write")
    }
}

fn at(path: &Path, done: &'static str) -> impl FnOnce(io::Error) -> BuildError {
    let path = path.to_owned();
    move |source| BuildError::Io { path, done, source }
}
