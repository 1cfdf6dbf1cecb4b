//! The versions of a host's document.

use super::{Document, Noun, Step};
use crate::RowKind;
use muster_domain::host::Host;

impl Document for Host {
    const KIND: RowKind = RowKind::Host;
    const STEPS: &'static [Step] = &[];
}

impl Noun for Host {
    fn key(&self) -> String {
        Self::key(self).to_string()
    }

    fn set_revision(&mut self, revision: i64) {
        self.revision = revision;
    }
}
