//! Error bodies of REST v2: the one handlers send, and the one of the layers before them.

use crate::rules::null_as_default;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// An operation failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ErrorBody {
    #[serde(deserialize_with = "null_as_default")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Cow<'static, str>,
    pub id: i64,
    #[serde(deserialize_with = "null_as_default")]
    pub href: String,
    #[serde(deserialize_with = "null_as_default")]
    pub code: String,
    #[serde(deserialize_with = "null_as_default")]
    pub reason: String,
}

/// The request did not get as far as an operation: no such route, no access, or a malformed body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct InfraErrorBody {
    pub code: i64,
    #[serde(deserialize_with = "null_as_default")]
    pub message: String,
}

impl ErrorBody {
    pub fn new(status: u16, reason: impl Into<String>) -> Self {
        Self {
            kind: Cow::Borrowed("Error"),
            id: i64::from(status),
            href: String::new(),
            code: status.to_string(),
            reason: reason.into(),
        }
    }
}

impl InfraErrorBody {
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self {
            code: i64::from(status),
            message: message.into(),
        }
    }
}
