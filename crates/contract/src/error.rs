//! Why a call to the hub failed, read from any of the error shapes it sends.

use crate::v1::problem::Problem;
use crate::v2::error::{ErrorBody, InfraErrorBody};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error("cannot reach the hub: {0}")]
    Unreachable(String),
    /// Somebody answers there, but cannot show that it is the hub.
    #[error("cannot trust the hub: {0}")]
    Untrusted(String),
    #[error("refused: {reason}{}", hint(.reason, .next_action))]
    Refused {
        status: u16,
        reason: String,
        code: Option<String>,
        next_action: Option<String>,
    },
    #[error("not found: {0}")]
    NotFound(String),
    #[error("bad input: {0}")]
    BadInput(String),
    #[error("the hub failed: {0}")]
    Server(String),
    #[error("cannot read the hub's answer: {0}")]
    Decode(String),
}

/// Advice that the reason gives already is not given twice.
fn hint(reason: &str, next_action: &Option<String>) -> String {
    let bare = |text: &str| text.trim().trim_end_matches('.').to_lowercase();
    next_action
        .as_ref()
        .filter(|next| !bare(reason).contains(&bare(next)))
        .map(|next| format!(" ({next})"))
        .unwrap_or_default()
}

/// What all error shapes have in common.
struct Told {
    reason: String,
    code: Option<String>,
    next_action: Option<String>,
}

impl ClientError {
    #[cfg(feature = "client")]
    pub(crate) fn lost(error: reqwest::Error) -> Self {
        if error.is_builder() {
            return Self::BadInput(error.to_string());
        }
        if let Some(why) = crate::tls::distrust(&error) {
            return Self::Untrusted(why);
        }
        // The outermost message only repeats the URL; the cause is what helps.
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        Self::Unreachable(cause.to_string())
    }

    /// Reads an error answer; `status` decides the kind, the body tells the reason.
    pub fn refused(status: u16, body: &[u8]) -> Self {
        let Told {
            reason,
            code,
            next_action,
        } = told(body).unwrap_or_else(|| Told {
            reason: match String::from_utf8_lossy(body).trim() {
                "" => format!("status {status}"),
                text => text.chars().take(300).collect(),
            },
            code: None,
            next_action: None,
        });
        match status {
            404 => Self::NotFound(reason),
            400 | 405 | 406 | 413 | 415 | 422 => {
                Self::BadInput(format!("{reason}{}", hint(&reason, &next_action)))
            }
            500.. => Self::Server(reason),
            _ => Self::Refused {
                status,
                reason,
                code,
                next_action,
            },
        }
    }
}

/// The key that carries the text tells the shapes apart: `reason`, `message` or `detail`.
fn told(body: &[u8]) -> Option<Told> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    if body.get("reason").is_some() {
        let error: ErrorBody = serde_json::from_value(body).ok()?;
        return Some(Told {
            reason: error.reason,
            code: Some(error.code),
            next_action: None,
        });
    }
    if body.get("message").is_some() {
        let error: InfraErrorBody = serde_json::from_value(body).ok()?;
        return Some(Told {
            reason: error.message,
            code: Some(error.code.to_string()),
            next_action: None,
        });
    }
    let problem: Problem = serde_json::from_value(body).ok()?;
    let Problem {
        title,
        detail,
        code,
        next_action,
        ..
    } = problem;
    let reason = if detail.is_empty() {
        title.into_owned()
    } else {
        detail
    };
    Some(Told {
        reason,
        code: Some(code.into_owned()),
        next_action,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_shape_tells_its_reason() {
        let handler = br#"{"kind":"Error","id":409,"href":"","code":"409","reason":"host is installing"}"#;
        let framework = br#"{"code":400,"message":"no such field"}"#;
        let problem = br#"{"type":"about:blank","title":"Refused","status":409,"code":"host-installing",
            "detail":"host is installing","next_action":"cancel first"}"#;
        assert_eq!(
            ClientError::refused(409, handler),
            ClientError::Refused {
                status: 409,
                reason: "host is installing".into(),
                code: Some("409".into()),
                next_action: None
            }
        );
        assert_eq!(
            ClientError::refused(400, framework),
            ClientError::BadInput("no such field".into())
        );
        assert_eq!(
            ClientError::refused(409, problem).to_string(),
            "refused: host is installing (cancel first)"
        );
    }

    #[test]
    fn advice_is_given_once() {
        let problem = |detail: &str, status: u16| {
            let body = format!(
                r#"{{"type":"about:blank","title":"Bad","status":{status},"code":"invalid","detail":"{detail}",
                "next_action":"Leave both lists empty."}}"#
            );
            ClientError::refused(status, body.as_bytes()).to_string()
        };
        for (status, told) in [(400, "bad input"), (409, "refused")] {
            assert_eq!(
                problem("`api_vips` is set: leave both lists empty.", status),
                format!("{told}: `api_vips` is set: leave both lists empty.")
            );
            assert_eq!(
                problem("`api_vips` is set.", status),
                format!("{told}: `api_vips` is set. (Leave both lists empty.)")
            );
        }
    }

    #[test]
    fn unauthorised_is_refused_and_missing_is_not_found() {
        let body = br#"{"code":401,"message":"who are you"}"#;
        assert!(matches!(
            ClientError::refused(401, body),
            ClientError::Refused { status: 401, .. }
        ));
        assert_eq!(
            ClientError::refused(404, b""),
            ClientError::NotFound("status 404".into())
        );
        assert_eq!(
            ClientError::refused(502, b"<html>"),
            ClientError::Server("<html>".into())
        );
    }
}
