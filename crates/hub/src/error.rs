//! Why a use case did not do what was asked.

use muster_domain::Refused;
use muster_domain::input::Invalid;
use muster_store::StoreError;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("{0}")]
    Invalid(Invalid),
    #[error("no {kind} with id {id}")]
    Missing { kind: &'static str, id: String },
    /// Several things are wrong with the agent's report, or it cannot be read.
    #[error("{0}")]
    BadReport(String),
    #[error("{0} is not offered yet")]
    NotOffered(&'static str),
    #[error("the database refused")]
    Store(#[from] StoreError),
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl Error {
    pub fn missing(kind: &'static str, id: impl ToString) -> Self {
        Self::Missing {
            kind,
            id: id.to_string(),
        }
    }

    /// The database does not answer, and a later try may work.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unavailable(_)))
    }

    /// The hub cannot read a row that it is about; the status of the hub says so.
    pub fn is_set_aside(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unreadable(_)))
    }

    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Store(StoreError::Stale(_)))
    }
}
