//! Errors of Muster's own API, as problem details (RFC 9457).

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

/// What went wrong, and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Problem {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub r#type: Cow<'static, str>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub title: Cow<'static, str>,
    pub status: u16,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Cow<'static, str>,
    pub detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
}
