//! Which database, and how to connect to it.

use crate::home::Home;
use crate::line::Line;
use crate::{StoreError, shrink};
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyPool, Executor};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The file inside a data directory.
const FILE: &str = "muster.db";

/// Longer than any healthy query takes; after it the caller gets an error rather than waiting on.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(10);

/// SQLite readers each keep a cache, and more of them than cores gain nothing.
const SQLITE_READERS: u32 = 4;

/// Leaves room for several replicas under PostgreSQL's usual limit of 100 connections.
const POSTGRES_READERS: u32 = 10;

#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    Sqlite(PathBuf),
    /// Gone with its store; for tests and simulations.
    Memory,
    Postgres(String),
}

// A URL may hold a password.
impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Memory => f.write_str("sqlite::memory:"),
            Self::Postgres(_) => f.write_str("postgres"),
        }
    }
}

impl FromStr for Database {
    type Err = String;

    /// `postgres://…`, `sqlite:PATH`, `sqlite::memory:`, or a data directory.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        match text.strip_prefix("sqlite:") {
            Some(":memory:") => Ok(Self::Memory),
            Some(path) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    return Err("sqlite: needs the path of a file".into());
                }
                Ok(Self::Sqlite(path.into()))
            }
            None => match text.split_once("://") {
                Some((scheme, _)) => Err(format!(
                    "{scheme} is not a supported database; use postgres or sqlite"
                )),
                None if text.is_empty() => Err("the database is not named".into()),
                None => Ok(Self::directory(text)),
            },
        }
    }
}

impl Database {
    pub fn directory(path: impl AsRef<Path>) -> Self {
        Self::Sqlite(path.as_ref().join(FILE))
    }
}

/// The few places where the two databases want other words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Starts a transaction that will write.
    pub fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "begin immediate",
            Self::Postgres => "begin",
        }
    }

    /// Starts a transaction whose reads all see the same moment.
    pub fn begin_read(self) -> &'static str {
        match self {
            Self::Sqlite => "begin",
            Self::Postgres => "begin isolation level repeatable read read only",
        }
    }
}

pub(crate) struct Pools {
    pub writer: Line,
    pub readers: AnyPool,
}

/// FULL: what was acknowledged survives a power cut. Checkpoints every 32,000 pages (128 MB): each costs two more waits
/// for the disk, and the longer the log, the more changes of a page are copied back at once.
/// A file that is empty yet is made so that it can shrink.
const SQLITE_WRITER: &str =
    "pragma auto_vacuum = incremental; pragma journal_mode = wal; pragma synchronous = full; pragma temp_store = memory;
    pragma cache_size = -12000; pragma wal_autocheckpoint = 32000; pragma journal_size_limit = 268435456;";

const SQLITE_READER: &str = "pragma query_only = on; pragma temp_store = memory; pragma cache_size = -2000;";

/// A plan that is kept from when a table was small walks the whole of it for every key when it is large.
const POSTGRES_READER: &str = "set plan_cache_mode = force_custom_plan;
    set idle_in_transaction_session_timeout = '60s'";

/// Whoever falls asleep in its turn loses it: a frozen hub after five seconds, one whose machine is gone after twenty, at
/// rest as well. Nobody waits for a turn or a statement without an end.
pub(crate) const POSTGRES_WRITER: &str = "set plan_cache_mode = force_custom_plan;
    set idle_in_transaction_session_timeout = '5s'; set lock_timeout = '12s'; set statement_timeout = '15s';
    set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 3; set tcp_keepalives_count = 3";

impl Pools {
    pub async fn connect(database: &Database) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        match database {
            Database::Sqlite(path) => sqlite(path).await,
            Database::Memory => memory().await,
            Database::Postgres(url) => postgres(url).await,
        }
    }
}

async fn sqlite(path: &Path) -> Result<Pools, StoreError> {
    let mut home = Home::enter(path).await?;
    // Not `rwc`: whoever connects again later must not make a new file where the old one was.
    let options = parse(&format!("sqlite://{}?mode=rw", percent_encoded(&home.path)?))?;
    shrink::renew(&mut home, &options).await;
    let writer = Line::connect(Dialect::Sqlite, options.clone(), SQLITE_WRITER).await;
    let mut writer = writer.map_err(|error| home.explain(error))?;
    writer.home = Some(home);
    let readers = sqlite_pool(SQLITE_READERS, SQLITE_READER).connect_lazy_with(options);
    Ok(Pools { writer, readers })
}

/// Readers share the one connection, because a database in memory belongs to its connection.
async fn memory() -> Result<Pools, StoreError> {
    let options = parse("sqlite::memory:")?;
    let pool = sqlite_pool(1, "pragma temp_store = memory;").after_release(|connection, _| {
        Box::pin(async move {
            // It cannot be renewed: whoever left a transaction open must not leave it to the next one.
            connection.execute(sqlx::raw_sql("rollback")).await.ok();
            Ok(true)
        })
    });
    let readers = pool.connect_with(options).await?;
    Ok(Pools {
        writer: Line::shared(Dialect::Sqlite, readers.clone()),
        readers,
    })
}

async fn postgres(url: &str) -> Result<Pools, StoreError> {
    let options = parse(url)?;
    let writer = Line::connect(Dialect::Postgres, options.clone(), POSTGRES_WRITER).await?;
    let readers = AnyPoolOptions::new().max_connections(POSTGRES_READERS);
    let readers = prepared(readers, POSTGRES_READER).connect_lazy_with(options);
    Ok(Pools { writer, readers })
}

fn sqlite_pool(size: u32, pragmas: &'static str) -> AnyPoolOptions {
    let options = AnyPoolOptions::new()
        .max_connections(size)
        // A file does not hang up: connections need neither renewal nor a test.
        .max_lifetime(None)
        .idle_timeout(None)
        .test_before_acquire(false);
    prepared(options, pragmas)
}

/// Every new connection starts with these statements.
fn prepared(options: AnyPoolOptions, statements: &'static str) -> AnyPoolOptions {
    options
        .acquire_timeout(ACQUIRE_LIMIT)
        .after_connect(move |connection, _| {
            Box::pin(async move { connection.execute(sqlx::raw_sql(statements)).await.map(drop) })
        })
}

fn parse(url: &str) -> Result<AnyConnectOptions, StoreError> {
    // The parser's own words may repeat the URL, and with it a password.
    AnyConnectOptions::from_str(url).map_err(|_| {
        StoreError::Sql(Arc::new(sqlx::Error::Configuration(
            "the database URL is malformed".into(),
        )))
    })
}

fn percent_encoded(path: &Path) -> Result<String, StoreError> {
    let text = path.to_str().ok_or_else(|| {
        StoreError::Sql(Arc::new(sqlx::Error::Configuration(
            "the database's path is not UTF-8".into(),
        )))
    })?;
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    Ok(text
        .bytes()
        .map(|byte| {
            if keep(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_named_by_url_path_or_directory() {
        let sqlite = |path: &str| Database::Sqlite(path.into());
        assert_eq!("sqlite:a/b.db".parse(), Ok(sqlite("a/b.db")));
        assert_eq!("sqlite:///a/b.db".parse(), Ok(sqlite("/a/b.db")));
        assert_eq!("./muster-data".parse(), Ok(sqlite("./muster-data/muster.db")));
        assert_eq!("sqlite::memory:".parse(), Ok(Database::Memory));
        assert_eq!(
            "postgres://h/d".parse(),
            Ok(Database::Postgres("postgres://h/d".into()))
        );
        assert!("mysql://h/d".parse::<Database>().is_err());
        assert!("sqlite:".parse::<Database>().is_err());
    }

    #[test]
    fn a_password_is_not_printed() {
        let database: Database = "postgres://me:hunter2@h/d".parse().unwrap();
        assert!(!format!("{database:?}").contains("hunter2"));
        let error = parse("postgres://me:hunter2@h:notaport/d").unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}
