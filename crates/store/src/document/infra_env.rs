//! The versions of an InfraEnv's document.

use super::{Document, Step};
use crate::{ChangeKind, RowKind};
use muster_domain::infra_env::InfraEnv;

impl Document for InfraEnv {
    const KIND: RowKind = RowKind::Noun(ChangeKind::InfraEnv);
    const STEPS: &'static [Step] = &[];
}
