//! A database of its own for each test.

use muster_store::{Database, Store};
use sqlx::{AssertSqlSafe, Connection};
use std::io::Write;
use std::sync::Once;
use tempfile::TempDir;

const SERVER: &str = "MUSTER_TEST_POSTGRES";

pub struct Place {
    pub database: Database,
    _directory: Option<TempDir>,
    /// Where to ask for the removal of which database.
    server: Option<(String, String)>,
}

impl Place {
    pub fn sqlite() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("muster store? ")
            .tempdir()
            .unwrap();
        Self {
            database: Database::directory(directory.path()),
            _directory: Some(directory),
            server: None,
        }
    }

    /// `None` when nobody gave a server; on CI that is a failure.
    pub async fn postgres() -> Option<Self> {
        let Ok(server) = std::env::var(SERVER) else {
            say_skipped();
            assert!(
                std::env::var_os("CI").is_none(),
                "{SERVER} is not set, and CI must test PostgreSQL too"
            );
            return None;
        };
        let name = format!("store_{}", uuid::Uuid::new_v4().simple());
        ask(&server, format!("create database {name}")).await;
        let (front, rest) = server.split_at(server.rfind('/').expect("a database URL has a path"));
        let parameters = rest
            .split_once('?')
            .map(|(_, parameters)| format!("?{parameters}"))
            .unwrap_or_default();
        let database = Database::Postgres(format!("{front}/{name}{parameters}"));
        Some(Self {
            database,
            _directory: None,
            server: Some((server, name)),
        })
    }

    pub async fn open(&self) -> Store {
        Store::open(&self.database).await.unwrap()
    }

    pub async fn remove(self) {
        if let Some((server, name)) = self.server {
            ask(&server, format!("drop database {name} with (force)")).await;
        }
    }

    /// Runs a statement past the store.
    pub async fn tamper(&self, text: &str) {
        ask(&self.url(), text.to_owned()).await;
    }

    /// One of two statements, whichever the database understands.
    pub async fn tamper_either(&self, sqlite: &str, postgres: &str) {
        self.tamper(if self.is_postgres() { postgres } else { sqlite })
            .await;
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.database, Database::Postgres(_))
    }

    /// The rows of a table.
    pub async fn count(&self, table: &str) -> i64 {
        sqlx::any::install_default_drivers();
        let mut connection = sqlx::AnyConnection::connect(&self.url()).await.unwrap();
        let text = AssertSqlSafe(format!("select count(*) from {table}"));
        let count = sqlx::query_scalar(text).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        count
    }

    /// The only value of the only row.
    pub async fn text(&self, text: &str) -> String {
        sqlx::any::install_default_drivers();
        let mut connection = sqlx::AnyConnection::connect(&self.url()).await.unwrap();
        let text = AssertSqlSafe(text.to_owned());
        let value = sqlx::query_scalar(text).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        value
    }

    pub fn url(&self) -> String {
        match &self.database {
            Database::Sqlite(path) => {
                format!(
                    "sqlite://{}",
                    path.to_str().unwrap().replace(' ', "%20").replace('?', "%3F")
                )
            }
            Database::Postgres(url) => url.clone(),
            Database::Memory => unreachable!("nobody else reaches a database in memory"),
        }
    }
}

async fn ask(url: &str, text: String) {
    sqlx::any::install_default_drivers();
    let mut connection = sqlx::AnyConnection::connect(url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(text))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// Written to the terminal itself: the test runner swallows what is printed.
fn say_skipped() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let text = format!("\nSKIPPED on PostgreSQL: {SERVER} is not set\n");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
    });
}
