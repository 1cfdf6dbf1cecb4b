//! A "no" that a person can act on: what blocks, and what to do next.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of "no" it is; the door turns it into a status code, nothing else reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// The object is in a state that does not allow the request.
    Conflict,
    /// The request itself can never be right for these objects.
    Invalid,
    /// Something the request names does not exist.
    Missing,
    /// An agent asked too early or at the wrong moment and must simply ask again: the codes that
    /// make real agents block for ever are never used for it.
    TryAgain,
    /// What the agent needs is not there now and may come back.
    Unavailable,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub struct Refused {
    pub class: Class,
    /// A stable word for programs, e.g. `host-not-free`.
    pub code: String,
    pub reason: String,
    pub next_action: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.reason)?;
        if self.next_action.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", self.next_action)
        }
    }
}

impl Refused {
    pub fn new(class: Class, code: &str, reason: impl Into<String>, next_action: impl Into<String>) -> Self {
        Self {
            class,
            code: code.into(),
            reason: reason.into(),
            next_action: next_action.into(),
        }
    }

    pub fn conflict(code: &str, reason: impl Into<String>, next_action: impl Into<String>) -> Self {
        Self::new(Class::Conflict, code, reason, next_action)
    }

    pub fn try_again(code: &str, reason: impl Into<String>, next_action: impl Into<String>) -> Self {
        Self::new(Class::TryAgain, code, reason, next_action)
    }
}
