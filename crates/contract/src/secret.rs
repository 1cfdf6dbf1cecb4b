//! Text that must not show up in logs.

use serde::{Deserialize, Serialize};
use std::fmt;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// A pull secret, token or password. Prints as `***`; the text itself is field 0.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(transparent)]
pub struct Secret(pub String);

/// Shown in place of a secret.
pub const HIDDEN: &str = "***";

impl Secret {
    pub fn hidden() -> Self {
        Self::from(HIDDEN)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "\"\"" } else { HIDDEN })
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}
