//! The versions of a cluster's document.

use super::{Document, Step};
use crate::{ChangeKind, RowKind};
use muster_domain::cluster::Cluster;

impl Document for Cluster {
    const KIND: RowKind = RowKind::Noun(ChangeKind::Cluster);
    const STEPS: &'static [Step] = &[];
}
