//! The versions of an order in the outbox.

use super::{Document, Step};
use crate::RowKind;
use muster_domain::host::Effect;

impl Document for Effect {
    const KIND: RowKind = RowKind::Order;
    const STEPS: &'static [Step] = &[];
}
