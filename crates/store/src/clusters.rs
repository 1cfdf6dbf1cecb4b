//! Clusters: one document each.

use crate::batch::{RowKey, Standing, expect_rows};
use crate::commit::ClusterWrite;
use crate::sql::{self, Columns, Value};
use crate::{Store, StoreError, document};
use muster_domain::cluster::Cluster;
use muster_domain::id::ClusterId;
use sqlx::AnyConnection;
use std::collections::HashMap;

impl Store {
    pub async fn cluster_find(&self, id: ClusterId) -> Result<Option<Cluster>, StoreError> {
        self.found("clusters", id.to_string()).await
    }

    /// In the order they were made; without those that cannot be read.
    pub async fn clusters_list(&self) -> Result<Vec<Cluster>, StoreError> {
        self.listed("clusters", "", Vec::new()).await
    }
}

pub(crate) async fn standings(
    connection: &mut AnyConnection,
    ids: &[ClusterId],
    standings: &mut HashMap<RowKey, Standing>,
) -> Result<(), StoreError> {
    let rows = sql::fetch_rows(
        connection,
        "select id, revision from clusters where id in (",
        ids.iter().map(|id| [Value::text(id)]).collect(),
        ")",
    )
    .await?;
    for row in rows {
        let id = row.parsed(0, "cluster id")?;
        let standing = Standing {
            revision: row.int(1)?,
            ..Standing::default()
        };
        standings.insert(RowKey::Cluster(id), standing);
    }
    Ok(())
}

#[derive(Default)]
pub(crate) struct ClusterBatch {
    puts: Vec<[Value; 7]>,
    deletes: Vec<[Value; 2]>,
}

impl ClusterBatch {
    pub fn add(&mut self, write: &ClusterWrite, revision: i64) -> Result<(), StoreError> {
        match write {
            ClusterWrite::Put { cluster } => {
                let [version, doc] = document::written(cluster)?;
                self.puts.push([
                    Value::text(cluster.id),
                    Value::Int(revision),
                    Value::text(cluster.status().word()),
                    Value::foreign(&cluster.name),
                    Value::time(cluster.created_at),
                    version,
                    doc,
                ]);
            }
            ClusterWrite::Delete { id, revision: seen } => {
                self.deletes.push([Value::text(id), Value::Int(*seen)]);
            }
        }
        Ok(())
    }

    pub async fn write(self, connection: &mut AnyConnection) -> Result<(), StoreError> {
        let Self { puts, deletes } = self;
        for delete in deletes {
            let text = "delete from clusters where id = $1 and revision = $2";
            expect_rows("cluster", 1, sql::execute(connection, text, delete.into()).await?)?;
        }
        let wanted = puts.len();
        let met = sql::execute_rows(
            connection,
            "insert into clusters (id, revision, status, name, created_at, version, doc)",
            puts,
            " on conflict (id) do update set revision = excluded.revision, status = excluded.status,
              name = excluded.name, version = excluded.version, doc = excluded.doc
              where clusters.revision = excluded.revision - 1",
        )
        .await?;
        expect_rows("cluster", wanted, met)
    }
}
