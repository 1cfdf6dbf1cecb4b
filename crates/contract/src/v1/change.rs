//! The feed of changes: everything that was committed, in order, from any point on.

use crate::rules::words;
use crate::v1::row_status::RowStatus;
use jiff::Timestamp;
use muster_vocabulary::Word;
use serde::{Deserialize, Serialize};
#[cfg(feature = "openapi")]
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

words! {
    /// What changed.
    pub enum ChangeKind {
        Host = "host",
        Cluster = "cluster",
        InfraEnv = "infra-env",
    }
}

words! {
    /// Whether it exists afterwards.
    pub enum ChangeOp {
        Put = "put",
        Delete = "delete",
    }
}

/// Something changed. Read the newest revision; the hub keeps no old ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
#[serde(from = "ToldChange")]
pub struct Change {
    pub seq: i64,
    #[cfg_attr(feature = "openapi", schema(value_type = ChangeKind))]
    pub kind: Word<ChangeKind>,
    pub id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub infra_env_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<Uuid>,
    pub op: ChangeOp,
    pub revision: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub status: Option<RowStatus>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
}

/// As it is read: whose status it is, `kind` tells.
#[derive(Deserialize)]
struct ToldChange {
    seq: i64,
    kind: Word<ChangeKind>,
    id: Uuid,
    infra_env_id: Option<Uuid>,
    cluster_id: Option<Uuid>,
    op: ChangeOp,
    revision: i64,
    status: Option<String>,
    at: Timestamp,
}

impl From<ToldChange> for Change {
    fn from(told: ToldChange) -> Self {
        let status = told.status.map(|text| RowStatus::read(told.kind.known(), &text));
        Self {
            seq: told.seq,
            kind: told.kind,
            id: told.id,
            infra_env_id: told.infra_env_id,
            cluster_id: told.cluster_id,
            op: told.op,
            revision: told.revision,
            status,
            at: told.at,
        }
    }
}

/// Changes in order, and where to go on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct ChangesPage {
    pub changes: Vec<Change>,
    /// Ask with `after` set to this.
    pub next: i64,
}

/// From where on to read, and how long to wait for something new.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams))]
#[serde(default)]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct ChangesQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// 1000 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Wait this long for a first change; 0 or absent answers at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_seconds: Option<u32>,
}
