//! The versions of a cluster's document.

use super::{Document, Noun, Step};
use crate::RowKind;
use muster_domain::cluster::Cluster;

impl Document for Cluster {
    const KIND: RowKind = RowKind::Cluster;
    const STEPS: &'static [Step] = &[];
}

impl Noun for Cluster {
    fn key(&self) -> String {
        self.id.to_string()
    }

    fn set_revision(&mut self, revision: i64) {
        self.revision = revision;
    }
}
