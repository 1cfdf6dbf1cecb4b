//! Clusters: how one is stored.

use crate::StoreError;
use crate::changes::{Change, Scope};
use crate::nouns::{ChangeKind, RowKey};
use crate::row::{Row, Table};
use crate::sql::{Columns, Value};
use jiff::Timestamp;
use muster_domain::cluster::Cluster;
use muster_domain::id::ClusterId;
use sqlx::any::AnyRow;
use uuid::Uuid;

impl Row for Cluster {
    type Key = ClusterId;

    const NOUN: ChangeKind = ChangeKind::Cluster;
    const TABLE: Table = Table {
        name: "clusters",
        key: &["id"],
        columns: &["status", "name"],
        references: &[],
        dependents: &[],
        tombstones: None,
    };

    fn key(&self) -> ClusterId {
        self.id
    }

    fn revision(&self) -> i64 {
        self.revision
    }

    fn set_revision(&mut self, revision: i64) {
        self.revision = revision;
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn push_key(key: ClusterId, values: &mut Vec<Value>) {
        values.push(Value::text(key));
    }

    fn read_key(row: &AnyRow) -> Result<ClusterId, StoreError> {
        row.parsed(0, "cluster id")
    }

    fn push_columns(&self, values: &mut Vec<Value>) {
        values.push(Value::text(Row::status(self)));
        values.push(Value::foreign(&self.name));
    }

    fn concerns(&self) -> Option<ClusterId> {
        Some(self.id)
    }

    fn feed_id(key: ClusterId) -> Uuid {
        key.0
    }

    fn key_of(change: &Change) -> Option<ClusterId> {
        Some(ClusterId(change.id))
    }

    fn scope(&self) -> Scope {
        Self::scope_of_deleted(self.id, &[])
    }

    fn scope_of_deleted(key: ClusterId, _references: &[RowKey]) -> Scope {
        Scope {
            infra_env: None,
            cluster: Some(key),
        }
    }

    fn status(&self) -> &'static str {
        Cluster::status(self).word()
    }
}
