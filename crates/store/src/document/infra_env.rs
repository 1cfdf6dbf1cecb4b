//! The versions of an InfraEnv's document.

use super::{Document, Noun, Step};
use crate::RowKind;
use muster_domain::infra_env::InfraEnv;

impl Document for InfraEnv {
    const KIND: RowKind = RowKind::InfraEnv;
    const STEPS: &'static [Step] = &[];
}

impl Noun for InfraEnv {
    fn key(&self) -> String {
        self.id.to_string()
    }

    fn set_revision(&mut self, revision: i64) {
        self.revision = revision;
    }
}
