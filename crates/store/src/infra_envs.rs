//! InfraEnvs: one document each.

use crate::batch::{RowKey, Standing, expect_rows};
use crate::commit::InfraEnvWrite;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError, document};
use muster_domain::id::{ClusterId, InfraEnvId};
use muster_domain::infra_env::InfraEnv;
use sqlx::AnyConnection;
use std::collections::HashMap;

impl Store {
    pub async fn infra_env_find(&self, id: InfraEnvId) -> Result<Option<InfraEnv>, StoreError> {
        self.found("infra_envs", id.to_string()).await
    }

    /// In the order they were made, without those that cannot be read; with a cluster, those whose hosts are bound to it
    /// as they register.
    pub async fn infra_envs_list(&self, cluster: Option<ClusterId>) -> Result<Vec<InfraEnv>, StoreError> {
        let (condition, values) = match cluster {
            Some(id) => ("where cluster_id = $1", vec![Value::text(id)]),
            None => ("", Vec::new()),
        };
        self.listed("infra_envs", condition, values).await
    }
}

pub(crate) async fn standings(
    connection: &mut AnyConnection,
    ids: &[InfraEnvId],
    standings: &mut HashMap<RowKey, Standing>,
) -> Result<(), StoreError> {
    let rows = sql::fetch_rows(
        connection,
        "select id, revision from infra_envs where id in (",
        ids.iter().map(|id| [Value::text(id)]).collect(),
        ")",
    )
    .await?;
    for row in rows {
        let id = row.parsed(0, "infra-env id")?;
        let standing = Standing {
            revision: row.int(1)?,
            ..Standing::default()
        };
        standings.insert(RowKey::InfraEnv(id), standing);
    }
    Ok(())
}

#[derive(Default)]
pub(crate) struct InfraEnvBatch {
    puts: Vec<[Value; 7]>,
    deletes: Vec<[Value; 2]>,
}

impl InfraEnvBatch {
    pub fn add(&mut self, write: &InfraEnvWrite, revision: i64) -> Result<(), StoreError> {
        match write {
            InfraEnvWrite::Put { infra_env } => {
                let [version, doc] = document::written(infra_env)?;
                self.puts.push([
                    Value::text(infra_env.id),
                    Value::Int(revision),
                    Value::foreign(&infra_env.name),
                    Value::maybe_text(infra_env.cluster),
                    Value::time(infra_env.created_at),
                    version,
                    doc,
                ]);
            }
            InfraEnvWrite::Delete { id, revision: seen } => {
                self.deletes.push([Value::text(id), Value::Int(*seen)]);
            }
        }
        Ok(())
    }

    pub async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let Self { puts, deletes } = self;
        for delete in deletes {
            let text = "delete from infra_envs where id = $1 and revision = $2";
            expect_rows(
                "infra-env",
                1,
                sql::execute(connection, text, delete.into()).await?,
            )?;
        }
        let wanted = puts.len();
        let met = sql::execute_rows(
            connection,
            "insert into infra_envs (id, revision, name, cluster_id, created_at, version, doc)",
            puts,
            " on conflict (id) do update set revision = excluded.revision, name = excluded.name,
              cluster_id = excluded.cluster_id, version = excluded.version, doc = excluded.doc
              where infra_envs.revision = excluded.revision - 1",
        )
        .await?;
        expect_rows("infra-env", wanted, met)
    }
}
