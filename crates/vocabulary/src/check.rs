//! What a check says.

use crate::word::questions;

crate::words! {
    /// The outcome of a check.
    pub enum CheckStatus {
        Success = "success",
        Failure = "failure",
        /// What the check needs to know is not known yet.
        Pending = "pending",
        /// The check itself could not be carried out.
        Error = "error",
        /// Switched off by the site or ignored by the cluster's owner.
        Disabled = "disabled",
    }
}

questions! {
    CheckStatus:
    /// It stands in nobody's way.
    passes {
        yes: Success Disabled;
        no: Failure Pending Error;
    }

    /// A person must do something; waiting does not help.
    complains {
        yes: Failure Error;
        no: Success Pending Disabled;
    }
}
