//! A decision is a value: the new row, what to tell people, what to do outside, and why.

use super::{Host, Report};
use crate::journal::Entry;
use crate::{ClusterId, HostKey};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub host: Host,
    pub journal: Vec<Entry>,
    pub effects: Vec<Effect>,
    /// Reports that are not true any more.
    pub forget: Vec<Report>,
    /// One sentence for logs, plans and explanations.
    pub why: &'static str,
}

/// Work for a worker, idempotent and without a choice left in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Effect {
    /// The host is free and ready: lend it to the cluster it is moving to.
    FinishMove { host: HostKey, to: ClusterId },
    /// Make the files of this attempt to install; older attempts' files are overwritten.
    MakeFiles { cluster: ClusterId, attempt: u32 },
    /// The installation was reset: what was made for it goes, what people gave and logs stay.
    DropFiles { cluster: ClusterId },
}
