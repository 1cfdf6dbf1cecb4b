//! Errors to HTTP: the only file that knows status codes.

use crate::error::Error;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use muster_contract::v1::problem::Problem as ProblemBody;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_domain::input::Shape;
use muster_domain::refusal::Class;
use muster_store::{StoreError, UnreadableRow};
use serde::Serialize;

/// An error on its way out of REST v2.
pub struct Problem(Response);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.0
    }
}

/// In the shape of the API that was asked.
pub fn shaped_as_asked(path: &str, error: Error) -> Response {
    if path.starts_with(muster_contract::v1::BASE) {
        return ProblemV1::from(error).into_response();
    }
    Problem::from(error).into_response()
}

/// What the layers before an operation say: no such route, no such method, not decodable.
pub fn framework(status: StatusCode, message: impl Into<String>) -> Response {
    json(status, &InfraErrorBody::new(status.as_u16(), message))
}

pub fn operation(status: StatusCode, reason: impl Into<String>) -> Response {
    json(status, &ErrorBody::new(status.as_u16(), reason))
}

pub fn json<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => (
            status,
            [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            bytes,
        )
            .into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot write a reply");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

fn status(error: &Error) -> StatusCode {
    match error {
        Error::Refused(refused) => match refused.class {
            Class::Conflict => StatusCode::CONFLICT,
            Class::Invalid | Class::TryAgain => StatusCode::BAD_REQUEST,
            Class::Missing => StatusCode::NOT_FOUND,
            Class::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        },
        Error::Invalid(_) | Error::BadReport(_) => StatusCode::BAD_REQUEST,
        Error::Missing { .. } => StatusCode::NOT_FOUND,
        Error::NotOffered(_) => StatusCode::NOT_IMPLEMENTED,
        Error::Store(StoreError::Stale(_) | StoreError::Replaced { .. }) => StatusCode::CONFLICT,
        // Whoever asks again finds it when it is mended.
        Error::Store(StoreError::Unavailable(_) | StoreError::NotOurs(_) | StoreError::Unreadable(_)) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Error::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What may be said to the outside; the cause of a bug stays in the log.
fn text(error: &Error) -> String {
    match error {
        Error::Store(cause) => store_text(cause),
        Error::Refused(_)
        | Error::Invalid(_)
        | Error::BadReport(_)
        | Error::Missing { .. }
        | Error::NotOffered(_) => error.to_string(),
    }
}

/// What to do about a row that cannot be read.
const MEND: &str = "Mend the row and restart the hub, or start the program that wrote it; `muster status` names all such rows.";

fn set_aside(row: &UnreadableRow) -> String {
    format!(
        "This hub cannot read {} {} in its database and leaves it as it is: {}",
        row.kind.word(),
        row.id,
        row.reason
    )
}

pub fn store_text(error: &StoreError) -> String {
    match (error, error.fault()) {
        (StoreError::Stale(_) | StoreError::Replaced { .. }, _) => {
            "Somebody else changed it at the same time; ask again.".into()
        }
        (StoreError::NotOurs(_), _) => {
            "The hub stops because its database is gone; its log has the details.".into()
        }
        (StoreError::Unreadable(row), _) => format!("{}. {MEND}", set_aside(row)),
        (_, Some(trouble)) => format!("The database {}. {}", trouble.text(), trouble.fix()),
        (_, None) => "Internal error; the hub's log has the details.".into(),
    }
}

fn log(error: &Error) {
    if let Error::Store(cause) = error
        // What cannot be read was logged when it was found.
        && !matches!(
            cause,
            StoreError::Stale(_) | StoreError::Replaced { .. } | StoreError::Unreadable(_)
        )
    {
        let chain = anyhow::Chain::new(cause)
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
        tracing::error!(error = chain, "a request failed");
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        log(&error);
        let (status, text) = (status(&error), text(&error));
        let is_framed = matches!(&error, Error::Invalid(invalid) if invalid.shape == Shape::Schema);
        Self(match is_framed {
            true => framework(status, text),
            false => operation(status, text),
        })
    }
}

impl Problem {
    /// To a registration. An agent freezes for good on 401, 403, 404 and 409; whatever brought it there may be put
    /// right, so it is asked to come again.
    pub fn to_agent(error: Error) -> Self {
        log(&error);
        let status = match status(&error) {
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT => StatusCode::SERVICE_UNAVAILABLE,
            other => other,
        };
        Self(operation(status, text(&error)))
    }

    /// To a poll. The same, and its client knows no 400: it would log the number and lose the reason.
    pub fn to_poll(error: Error) -> Self {
        match status(&error) {
            StatusCode::BAD_REQUEST => {
                log(&error);
                Self(operation(StatusCode::SERVICE_UNAVAILABLE, text(&error)))
            }
            _ => Self::to_agent(error),
        }
    }

    /// To a report. Agents and installers send it again by themselves after a 503 and drop it after anything else.
    pub fn to_reporter(error: Error) -> Self {
        if error.is_stale() {
            Self::to_agent(error)
        } else {
            error.into()
        }
    }

    /// To the result of a step: to be dropped, like any report that is refused, but its client knows no 409.
    pub fn to_step_reply(error: Error) -> Self {
        match status(&error) {
            StatusCode::CONFLICT if !error.is_stale() => {
                Self(operation(StatusCode::BAD_REQUEST, text(&error)))
            }
            _ => Self::to_reporter(error),
        }
    }
}

impl From<Response> for Problem {
    fn from(response: Response) -> Self {
        Self(response)
    }
}

macro_rules! via_error {
    ($($from:ty),*) => {$(
        impl From<$from> for Problem {
            fn from(error: $from) -> Self {
                Error::from(error).into()
            }
        }
        impl From<$from> for ProblemV1 {
            fn from(error: $from) -> Self {
                Error::from(error).into()
            }
        }
    )*};
}
via_error!(StoreError, muster_domain::input::Invalid, muster_domain::Refused);

/// An error on its way out of Muster's own API.
pub struct ProblemV1(Response);

impl IntoResponse for ProblemV1 {
    fn into_response(self) -> Response {
        self.0
    }
}

impl From<Error> for ProblemV1 {
    fn from(error: Error) -> Self {
        log(&error);
        let status = status(&error);
        let (code, next_action) = match &error {
            Error::Refused(refused) => (refused.code.clone(), Some(refused.next_action.clone())),
            Error::Invalid(invalid) => ("invalid".into(), Some(invalid.advice())),
            Error::BadReport(_) => ("bad-report".into(), None),
            Error::Missing { .. } => ("not-found".into(), None),
            Error::NotOffered(_) => ("not-offered".into(), None),
            Error::Store(StoreError::Stale(_) | StoreError::Replaced { .. }) => {
                ("stale".into(), Some("Ask again.".into()))
            }
            Error::Store(StoreError::NotOurs(_)) => ("unavailable".into(), None),
            Error::Store(StoreError::Unreadable(_)) => ("set-aside".into(), Some(MEND.into())),
            Error::Store(cause) => match cause.fault() {
                Some(trouble) => ("unavailable".into(), Some(trouble.fix().into())),
                None => ("internal".into(), None),
            },
        };
        let detail = match &error {
            Error::Refused(refused) => refused.reason.clone(),
            // The advice has a place of its own.
            Error::Store(StoreError::Unreadable(row)) => format!("{}.", set_aside(row)),
            Error::Store(cause) if let Some(trouble) = cause.fault() => {
                format!("The database {}.", trouble.text())
            }
            Error::Invalid(invalid) => invalid.complaint(),
            Error::Store(_) | Error::Missing { .. } | Error::BadReport(_) | Error::NotOffered(_) => {
                text(&error)
            }
        };
        let body = ProblemBody {
            r#type: format!("about:blank#{code}").into(),
            title: status.canonical_reason().unwrap_or("Error").into(),
            status: status.as_u16(),
            code: code.into(),
            detail,
            next_action: next_action.filter(|next| !next.is_empty()),
            request_id: None,
        };
        let mut response = json(status, &body);
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        Self(response)
    }
}

impl From<Response> for ProblemV1 {
    fn from(response: Response) -> Self {
        Self(response)
    }
}
