//! The database's id, by which a hub knows that it is still the same one.

use crate::StoreError;
use crate::home::Home;
use sqlx::AnyConnection;
use uuid::Uuid;

/// Where it is kept.
pub(crate) const KEY: &str = "identity";

/// Finds the id or gives one. A database from before there were ids takes the one that its directory has.
pub(crate) async fn establish(
    connection: &mut AnyConnection,
    home: Option<&Home>,
    was_empty: bool,
) -> Result<Uuid, StoreError> {
    let expected = home.and_then(|home| home.expected);
    let found = find(connection).await?;
    if let (Some(home), Some(expected)) = (home, expected)
        && (was_empty || found.is_some_and(|found| found != expected))
    {
        return Err(home.mismatch(found));
    }
    if let Some(found) = found {
        return Ok(found);
    }
    let id = expected.unwrap_or_else(Uuid::new_v4);
    sqlx::query("insert into meta (key, value) values ($1, $2)")
        .bind(KEY)
        .bind(id.to_string())
        .execute(connection)
        .await?;
    Ok(id)
}

async fn find(connection: &mut AnyConnection) -> Result<Option<Uuid>, StoreError> {
    let value: Option<String> = sqlx::query_scalar("select value from meta where key = $1")
        .bind(KEY)
        .fetch_optional(connection)
        .await?;
    value
        .map(|value| {
            value
                .parse()
                .map_err(|error| StoreError::corrupt("id of the database", error))
        })
        .transpose()
}

/// A server's answer to whoever asked for [`KEY`]: tables that were there when the hub started may be gone.
pub(crate) fn check(expected: Uuid, answer: Result<Option<String>, sqlx::Error>) -> Result<(), StoreError> {
    let what = match answer.map_err(StoreError::from) {
        Ok(Some(found)) if found == expected.to_string() => return Ok(()),
        Ok(Some(found)) => format!("is another one now, {found},"),
        Ok(None) => "was emptied".to_owned(),
        Err(error) => match error.code().as_deref() {
            Some("42P01") => "has lost its tables".to_owned(),
            _ => return Err(error),
        },
    };
    Err(StoreError::not_ours(format!(
        "the database {expected} {what} while the hub ran: restore a backup and start the hub again"
    )))
}

/// Asks while nothing is written.
pub(crate) async fn probe(
    connection: &mut AnyConnection,
    expected: Uuid,
) -> Result<Result<(), StoreError>, StoreError> {
    let found = sqlx::query_scalar("select value from meta where key = $1")
        .bind(KEY)
        .fetch_optional(connection);
    match check(expected, found.await) {
        Err(error) if !matches!(error, StoreError::NotOurs(_)) => Err(error),
        found => Ok(found),
    }
}
