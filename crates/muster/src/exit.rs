//! How a command can fail, what is said about it, and with which exit code it ends.

use muster_contract::client::ClientError;
use std::process::ExitCode;

/// The reasons for which a script may want to do something different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Other,
    Usage,
    Refused,
    NotFound,
    TimedOut,
    Unreachable,
}

impl Kind {
    pub fn code(self) -> u8 {
        match self {
            Kind::Other => 1,
            Kind::Usage => 2,
            Kind::Refused => 3,
            Kind::NotFound => 4,
            Kind::TimedOut => 5,
            Kind::Unreachable => 6,
        }
    }
}

/// Shown by `muster help exit-codes` and below every page of help.
pub const CODES: &str = "\
Exit codes:
  0  done
  1  failed for another reason
  2  wrong usage: an unknown flag, a bad value, an error in the config file
  3  refused: the hub's rules do not allow it now, or the input is not valid
  4  not found
  5  timed out while waiting
  6  cannot reach the hub

Errors are written to stderr: one line with the cause and, where there is
something to do about it, one line that begins with \"next:\".";

/// A command that did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct Failure {
    pub kind: Kind,
    pub cause: String,
    pub next: Option<String>,
}

pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub fn new(kind: Kind, cause: impl Into<String>) -> Self {
        Self {
            kind,
            cause: cause.into(),
            next: None,
        }
    }

    pub fn usage(cause: impl Into<String>) -> Self {
        Self::new(Kind::Usage, cause)
    }

    pub fn other(cause: impl Into<String>) -> Self {
        Self::new(Kind::Other, cause)
    }

    /// Adds what to do about it; an empty text adds nothing.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into()).filter(|next| !next.is_empty());
        self
    }

    /// Says it on stderr and gives the exit code.
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {}", one_line(&self.cause));
        if let Some(next) = &self.next {
            eprintln!("next: {}", one_line(next));
        }
        ExitCode::from(self.kind.code())
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable(cause) => {
                Self::new(Kind::Unreachable, format!("cannot reach the hub: {cause}"))
                    .next("start one with `muster serve`, or name another one with --hub URL")
            }
            ClientError::Untrusted(cause) => {
                Self::new(Kind::Unreachable, format!("cannot trust the hub: {cause}"))
                    .next("name the authority that signed it with --ca FILE, or the hub as its certificate does with --hub URL")
            }
            ClientError::Refused {
                status: _,
                reason,
                code: _,
                next_action,
            } => Self::new(Kind::Refused, reason).next(next_action.unwrap_or_default()),
            ClientError::NotFound(reason) => Self::new(Kind::NotFound, reason),
            ClientError::BadInput(reason) => Self::new(Kind::Refused, reason),
            ClientError::Server(reason) => Self::other(format!("the hub failed: {reason}"))
                .next("read the hub's log; you can repeat the request"),
            ClientError::Decode(reason) => Self::other(format!("cannot read the hub's answer: {reason}"))
                .next(
                    "check with `muster status` that the address is a Muster hub of a version like this one",
                ),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::other(chain(&error))
    }
}

/// Every cause once: some errors already end with the text of their source.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::other(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_refusal_has_its_own_exit_code() {
        let code = |status| Failure::from(ClientError::refused(status, b"{}")).kind.code();
        assert_eq!(
            [400, 404, 409, 422, 500, 503].map(code),
            [3, 4, 3, 3, 1, 1],
            "bad input, missing, conflict, unprocessable, broken, unavailable"
        );
        for error in [ClientError::Unreachable, ClientError::Untrusted] {
            assert_eq!(Failure::from(error("gone".into())).kind.code(), 6);
        }
    }

    #[test]
    fn a_cause_that_is_told_already_is_not_told_again() {
        #[derive(Debug, thiserror::Error)]
        #[error("no connection: {0}")]
        struct Repeats(#[source] std::io::Error);
        let error = Repeats(std::io::Error::other("refused"));
        let error = anyhow::Error::new(error).context("cannot open the database");
        assert_eq!(
            Failure::from(error).cause,
            "cannot open the database: no connection: refused"
        );
    }

    #[test]
    fn the_next_action_of_the_hub_is_kept_apart_from_the_cause() {
        let body =
            br#"{"type":"about:blank","title":"Refused","status":409,"code":"busy","detail":"it installs",
            "next_action":"cancel it first"}"#;
        let failure = Failure::from(ClientError::refused(409, body));
        assert_eq!(
            (failure.cause.as_str(), failure.next.as_deref()),
            ("it installs", Some("cancel it first"))
        );
    }
}
