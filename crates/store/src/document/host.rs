//! The versions of a host's document.

use super::{Document, Step};
use crate::{ChangeKind, RowKind};
use muster_domain::host::Host;

impl Document for Host {
    const KIND: RowKind = RowKind::Noun(ChangeKind::Host);
    const STEPS: &'static [Step] = &[];
}
