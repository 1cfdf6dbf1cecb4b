//! Forward-only numbered migrations, applied in one transaction when the store opens.

use crate::database::Dialect;
use crate::home::Home;
use crate::line::Line;
use crate::nouns::MIGRATIONS;
use crate::{StoreError, identity};
use sqlx::{AnyConnection, AssertSqlSafe, Executor};
use uuid::Uuid;

/// Where the number of applied migrations is kept.
const KEY: &str = "schema";

/// Replicas that start together wait for each other here.
pub(crate) async fn migrate(line: &mut Line) -> Result<(), StoreError> {
    let dialect = line.dialect;
    let mut turn = line.begin().await?;
    let done = bring_up(&mut turn, dialect, line.home.as_ref()).await;
    let id = line.end(turn, done).await?;
    line.identity = Some(id);
    match &mut line.home {
        Some(home) => home.adopt(id),
        None => Ok(()),
    }
}

async fn bring_up(
    connection: &mut AnyConnection,
    dialect: Dialect,
    home: Option<&Home>,
) -> Result<Uuid, StoreError> {
    if dialect == Dialect::Postgres {
        // A large table takes longer than any other work.
        connection
            .execute(sqlx::raw_sql("set local statement_timeout = 0"))
            .await?;
    }
    let applied = applied(connection).await?;
    let id = identity::establish(connection, home, applied == 0).await?;
    if applied > MIGRATIONS.len() {
        let detail = format!("version {applied}; this release knows {}", MIGRATIONS.len());
        return Err(StoreError::corrupt("schema of a newer release", detail));
    }
    for text in &MIGRATIONS[applied..] {
        sqlx::raw_sql(AssertSqlSafe(portable(text, dialect)))
            .execute(&mut *connection)
            .await?;
    }
    if applied < MIGRATIONS.len() {
        sqlx::query(
            "insert into meta (key, value) values ($1, $2) on conflict (key) do update set value = excluded.value",
        )
        .bind(KEY)
        .bind(MIGRATIONS.len().to_string())
        .execute(connection)
        .await?;
    }
    Ok(id)
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
