//! InfraEnvs: how one is stored, and which belong to a cluster.

use crate::changes::{Change, Scope};
use crate::nouns::{ChangeKind, RowKey};
use crate::row::{Row, Table};
use crate::sql::{Columns, Value};
use crate::{Store, StoreError};
use jiff::Timestamp;
use muster_domain::id::{ClusterId, InfraEnvId};
use muster_domain::infra_env::InfraEnv;
use sqlx::any::AnyRow;
use uuid::Uuid;

impl Store {
    /// Those whose hosts are bound to this cluster as they register, in the order they were made.
    pub async fn infra_envs_of(&self, cluster: ClusterId) -> Result<Vec<InfraEnv>, StoreError> {
        let mut all = self.list::<InfraEnv>().await?;
        all.retain(|infra_env| infra_env.cluster == Some(cluster));
        Ok(all)
    }
}

impl Row for InfraEnv {
    type Key = InfraEnvId;

    const NOUN: ChangeKind = ChangeKind::InfraEnv;
    const TABLE: Table = Table {
        name: "infra_envs",
        key: &["id"],
        columns: &["name", "cluster_id"],
        references: &[],
        dependents: &[],
        tombstones: None,
    };

    fn key(&self) -> InfraEnvId {
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

    fn push_key(key: InfraEnvId, values: &mut Vec<Value>) {
        values.push(Value::text(key));
    }

    fn read_key(row: &AnyRow) -> Result<InfraEnvId, StoreError> {
        row.parsed(0, "infra-env id")
    }

    fn push_columns(&self, values: &mut Vec<Value>) {
        values.push(Value::foreign(&self.name));
        values.push(Value::maybe_text(self.cluster));
    }

    fn feed_id(key: InfraEnvId) -> Uuid {
        key.0
    }

    fn key_of(change: &Change) -> Option<InfraEnvId> {
        Some(InfraEnvId(change.id))
    }

    fn scope(&self) -> Scope {
        Scope {
            infra_env: Some(self.id),
            cluster: self.cluster,
        }
    }

    fn scope_of_deleted(key: InfraEnvId, _references: &[RowKey]) -> Scope {
        Scope {
            infra_env: Some(key),
            cluster: None,
        }
    }
}
