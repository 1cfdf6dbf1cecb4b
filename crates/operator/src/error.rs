//! Why an object was not reconciled to the end. One variant per thing that is done about it.

use muster_contract::ClientError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else wrote first. Never shown to people: the object is reconciled again at once.
    #[error("somebody else changed the object meanwhile")]
    Conflict,
    /// The object is gone; its deletion is a change of its own.
    #[error("the object is gone")]
    Gone,
    /// Also when what is to be made is there already: reconciling again at once would find the same.
    #[error("the Kubernetes API refused or failed")]
    Kube(#[source] Box<kube::Error>),
    #[error("the hub refused or failed")]
    Hub(#[from] ClientError),
    #[error("the controller panicked; its message is in the log")]
    Panic,
    #[error("the operator cannot start: {0}")]
    Start(String),
}

/// With code 409, like a lost race, but with another reason.
const ALREADY_EXISTS: &str = "AlreadyExists";

impl Error {
    /// What was to be made is there already.
    pub fn is_there_already(&self) -> bool {
        let Self::Kube(error) = self else { return false };
        matches!(&**error, kube::Error::Api(status) if status.code == 409 && status.reason == ALREADY_EXISTS)
    }
}

impl Error {
    /// A right is missing.
    pub fn is_forbidden(&self) -> bool {
        let Self::Kube(error) = self else { return false };
        matches!(&**error, kube::Error::Api(status) if status.code == 403)
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 && status.reason != ALREADY_EXISTS => {
                Self::Conflict
            }
            kube::Error::Api(status) if status.code == 404 => Self::Gone,
            _ => Self::Kube(Box::new(error)),
        }
    }
}

/// Why the hub did not carry out a request, as conditions report it: three classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The hub does not answer or fails: try again.
    Internal(String),
    /// It does not go together with the state of things: try again after a while.
    Conflict(String),
    /// The request is wrong: wait until it is changed.
    Input(String),
}

impl Refusal {
    pub fn text(&self) -> &str {
        match self {
            Self::Internal(text) | Self::Conflict(text) | Self::Input(text) => text,
        }
    }

    /// The same, with what it is about before it.
    pub fn about(self, what: &str) -> Self {
        let named = |text: String| format!("{what}: {text}");
        match self {
            Self::Internal(text) => Self::Internal(named(text)),
            Self::Conflict(text) => Self::Conflict(named(text)),
            Self::Input(text) => Self::Input(named(text)),
        }
    }
}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable(_)
            | ClientError::Untrusted(_)
            | ClientError::Server(_)
            | ClientError::Decode(_) => Self::Internal(error.to_string()),
            ClientError::Refused { status: 409, .. } => Self::Conflict(error.to_string()),
            ClientError::Refused { .. } | ClientError::NotFound(_) | ClientError::BadInput(_) => {
                Self::Input(error.to_string())
            }
        }
    }
}

/// What is not there any more is deleted.
pub fn gone(answer: Result<(), ClientError>) -> Result<(), ClientError> {
    match answer {
        Err(ClientError::NotFound(_)) => Ok(()),
        answer => answer,
    }
}

/// Every cause once, for the log.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn answered(code: u16, reason: &str) -> Error {
        let status = Status::failure("no", reason).with_code(code);
        kube::Error::Api(status.boxed()).into()
    }

    #[test]
    fn only_a_lost_race_is_reconciled_again_at_once() {
        assert!(matches!(answered(409, "Conflict"), Error::Conflict));
        assert!(matches!(answered(404, "NotFound"), Error::Gone));
        let taken = answered(409, "AlreadyExists");
        assert!(matches!(taken, Error::Kube(_)), "{taken:?}");
        assert!(taken.is_there_already());
        assert!(
            !answered(409, "Conflict").is_there_already()
                && !answered(500, "AlreadyExists").is_there_already()
        );
    }
}
