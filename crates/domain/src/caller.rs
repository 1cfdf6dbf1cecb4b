//! Who asks: carried through every use case, so that tenancy needs no new parameter later.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    pub user: String,
    pub org: String,
    pub email_domain: String,
}

impl Caller {
    /// With authentication switched off everyone is the administrator.
    pub fn admin() -> Self {
        Self {
            user: "admin".into(),
            org: String::new(),
            email_domain: "Unknown".into(),
        }
    }
}
