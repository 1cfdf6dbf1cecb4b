//! A host is deleted, alone or with its cluster: what still writes to its disk is stopped first, and history says so.

use super::super::rules::{PhaseGroup, group};
use super::super::{Event, Host};
use super::{Around, next};
use crate::journal::{Entry, Severity};

/// The events of a host that goes. The hub tells its agent to stop the installer when it polls the next time.
pub fn farewell(host: &Host, around: &Around<'_>) -> Vec<Entry> {
    let mut told = match group(host.phase) {
        PhaseGroup::Writing => {
            next(host, &Event::Cancel, around).map_or_else(|_| Vec::new(), |decision| decision.journal)
        }
        PhaseGroup::Discovery
        | PhaseGroup::Binding
        | PhaseGroup::Returning
        | PhaseGroup::Preparing
        | PhaseGroup::Installed
        | PhaseGroup::Stopped => Vec::new(),
    };
    let text = format!("Host {} was removed.", host.name());
    told.push(host.entry("host_deregistered", Severity::Info, text));
    told
}
