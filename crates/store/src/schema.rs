//! Forward-only numbered migrations, applied in one transaction when the store opens.

use crate::StoreError;
use crate::database::{Dialect, Pools};
use crate::writer::lock;
use sqlx::{AnyConnection, AssertSqlSafe};

const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_tables.sql"),
    include_str!("../migrations/0002_files.sql"),
    include_str!("../migrations/0003_without_due_times.sql"),
];

/// Where the number of applied migrations is kept.
const KEY: &str = "schema";

/// Replicas that start together wait for each other here.
pub(crate) async fn migrate(pools: &Pools) -> Result<(), StoreError> {
    let mut tx = pools.writer.begin_with(pools.dialect.begin_write()).await?;
    lock(&mut tx, pools.dialect).await?;
    let applied = applied(&mut tx).await?;
    if applied > MIGRATIONS.len() {
        let detail = format!("version {applied}; this release knows {}", MIGRATIONS.len());
        return Err(StoreError::corrupt("schema of a newer release", detail));
    }
    for text in &MIGRATIONS[applied..] {
        sqlx::raw_sql(AssertSqlSafe(portable(text, pools.dialect)))
            .execute(&mut *tx)
            .await?;
    }
    if applied < MIGRATIONS.len() {
        sqlx::query(
            "insert into meta (key, value) values ($1, $2) on conflict (key) do update set value = excluded.value",
        )
        .bind(KEY)
        .bind(MIGRATIONS.len().to_string())
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn applied(connection: &mut AnyConnection) -> Result<usize, StoreError> {
    sqlx::raw_sql("create table if not exists meta (key text not null primary key, value text not null)")
        .execute(&mut *connection)
        .await?;
    let value: Option<String> = sqlx::query_scalar("select value from meta where key = $1")
        .bind(KEY)
        .fetch_optional(connection)
        .await?;
    value.map_or(Ok(0), |value| {
        value
            .parse()
            .map_err(|error| StoreError::corrupt("schema version", error))
    })
}

fn portable(text: &str, dialect: Dialect) -> String {
    let (id, number, blob, clustered) = match dialect {
        // Only `integer` becomes SQLite's own row number and needs no index beside it.
        Dialect::Sqlite => ("text", "integer", "blob", "without rowid"),
        Dialect::Postgres => ("text collate \"C\"", "bigint", "bytea", ""),
    };
    text.replace("{id}", id)
        .replace("{number}", number)
        .replace("{blob}", blob)
        .replace("{clustered}", clustered)
}
