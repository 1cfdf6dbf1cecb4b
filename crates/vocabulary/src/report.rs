//! The words in which agents report what they found.

use crate::word::questions;

crate::words! {
    /// Whether a virtual address was found to be usable.
    pub enum VipVerification {
        Unverified = "unverified",
        Failed = "failed",
        Succeeded = "succeeded",
    }
}

crate::words! {
    /// Which of a cluster's virtual addresses.
    pub enum VipType {
        Api = "api",
        Ingress = "ingress",
    }
}

crate::words! {
    /// Whether an image could be pulled, or an agent replaced.
    pub enum ReplyResult {
        Success = "success",
        Failure = "failure",
    }
}

crate::words! {
    /// How a host gets on with an NTP server; the words are those of chrony.
    pub enum NtpSourceState {
        Synced = "synced",
        Combined = "combined",
        NotCombined = "not_combined",
        Error = "error",
        Variable = "variable",
        Unreachable = "unreachable",
    }
}

questions! {
    NtpSourceState:
    /// Its time is that of the host's clock.
    agrees {
        yes: Synced Combined;
        no: NotCombined Error Variable Unreachable;
    }
}

crate::words! {
    /// How far the collection of logs is.
    #[derive(Default)]
    pub enum LogsState {
        Requested = "requested",
        Collecting = "collecting",
        Completed = "completed",
        Timeout = "timeout",
        #[default]
        Unset = "",
    }
}
