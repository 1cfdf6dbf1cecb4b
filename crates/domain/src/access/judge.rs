//! Whether a caller may do something: the only place that decides it.

use super::caller::{Caller, Who};
use super::facts::Facts;
use super::operation::Operation;
use super::verdict::Verdict;
use super::{machines, people};
use crate::access::operation::Action;
use crate::access::verdict::Reason;
use jiff::Timestamp;

/// `facts`: of what the request names; see there. What a handler does beyond the rule of its operation it must not do.
pub fn may(caller: &Caller, operation: &Operation, facts: &Facts<'_>, now: Timestamp) -> Verdict {
    if operation.action == Action::Open {
        return Verdict::Allowed;
    }
    match &caller.who {
        Who::Trusted => Verdict::Allowed,
        Who::Nobody => Verdict::Forbidden(Reason::NotKnown),
        Who::Person { .. } => people::may(caller, operation.action, facts),
        Who::Agent { .. } | Who::Host { .. } | Who::Cluster { .. } | Who::Reader { .. } => {
            machines::may(caller, operation.machines, facts, now)
        }
    }
}
