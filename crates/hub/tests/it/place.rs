//! The database a test runs on: in memory, or a fresh one on a real PostgreSQL with `MUSTER_TEST_DATABASE=postgres`.

use muster_hub::Settings;
use muster_store::{Database, Store};
use sqlx::{AssertSqlSafe, Connection};
use tempfile::TempDir;
use uuid::Uuid;

const CHOICE: &str = "MUSTER_TEST_DATABASE";
const SERVER: &str = "MUSTER_TEST_POSTGRES";

pub fn is_postgres() -> bool {
    std::env::var(CHOICE).is_ok_and(|choice| choice == "postgres")
}

/// Its database is gone with it.
pub struct Place {
    database: Database,
    /// Where to ask for the removal of which database.
    server: Option<(String, String)>,
    _directory: Option<TempDir>,
}

impl Place {
    pub async fn new() -> Self {
        match std::env::var(CHOICE).as_deref() {
            Err(_) | Ok("" | "memory") => Self::memory(),
            Ok("postgres") => Self::postgres().await,
            Ok(other) => panic!("{CHOICE} is {other:?}; it can be memory or postgres"),
        }
    }

    pub fn memory() -> Self {
        Self {
            database: Database::Memory,
            server: None,
            _directory: None,
        }
    }

    /// The file or the URL.
    pub fn address_of_database(&self) -> String {
        match &self.database {
            Database::Sqlite(path) => path.display().to_string(),
            Database::Postgres(url) => url.clone(),
            Database::Memory => unreachable!("nobody else reaches a database in memory"),
        }
    }

    async fn postgres() -> Self {
        let server =
            std::env::var(SERVER).unwrap_or_else(|_| panic!("{CHOICE}=postgres needs a server in {SERVER}"));
        let name = format!("hub_{}", Uuid::new_v4().simple());
        ask(&server, format!("create database {name}")).await;
        let (front, rest) = server.split_at(server.rfind('/').unwrap());
        let parameters = rest.split_once('?').map(|(_, given)| format!("?{given}"));
        let url = format!("{front}/{name}{}", parameters.unwrap_or_default());
        Self {
            database: Database::Postgres(url),
            server: Some((server, name)),
            _directory: None,
        }
    }

    /// For tests that reach round the hub: a file instead of memory.
    pub async fn on_disk() -> Self {
        if is_postgres() {
            return Self::postgres().await;
        }
        let directory = tempfile::tempdir().unwrap();
        Self {
            database: Database::directory(directory.path()),
            server: None,
            _directory: Some(directory),
        }
    }

    /// With what an earlier release left: a file, or the statements that make it.
    pub async fn holding(sqlite: &[u8], postgres: &str) -> Self {
        let place = Self::on_disk().await;
        match &place.database {
            Database::Sqlite(path) => std::fs::write(path, sqlite).unwrap(),
            Database::Postgres(url) => ask(url, postgres.to_owned()).await,
            Database::Memory => unreachable!("it is on disk"),
        }
        place
    }

    /// Runs the statement that the database understands, past the hub.
    pub async fn tamper(&self, sqlite: &str, postgres: &str) {
        match &self.database {
            Database::Sqlite(path) => ask(&format!("sqlite://{}", path.display()), sqlite.to_owned()).await,
            Database::Postgres(url) => ask(url, postgres.to_owned()).await,
            Database::Memory => unreachable!("nobody else reaches a database in memory"),
        }
    }

    /// The only value of the only row that it finds.
    pub async fn text(&self, text: &str) -> String {
        let url = match &self.database {
            Database::Sqlite(path) => format!("sqlite://{}", path.display()),
            Database::Postgres(url) => url.clone(),
            Database::Memory => unreachable!("nobody else reaches a database in memory"),
        };
        sqlx::any::install_default_drivers();
        let mut connection = sqlx::AnyConnection::connect(&url).await.unwrap();
        let found = sqlx::query_scalar(AssertSqlSafe(text.to_owned()));
        let found = found.fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        found
    }

    /// Where the server listens.
    pub fn address(&self) -> String {
        self.authority().to_owned()
    }

    /// From now on the hub goes to its server by another address.
    pub fn reach_by(&mut self, address: &str) {
        let changed = match &self.database {
            Database::Postgres(url) => url.replacen(self.authority(), address, 1),
            _ => unreachable!("only a server has an address"),
        };
        self.database = Database::Postgres(changed);
    }

    fn authority(&self) -> &str {
        let Database::Postgres(url) = &self.database else {
            unreachable!("only a server has an address")
        };
        let rest = url.split_once("://").unwrap().1;
        let whole = rest.split(['/', '?']).next().unwrap();
        whole.rsplit('@').next().unwrap()
    }

    pub async fn open(&self) -> Store {
        Store::open(&self.database).await.unwrap()
    }

    pub fn settings(&self) -> Settings {
        let mut settings = Settings::plain().unwrap();
        if self.server.is_some() {
            settings.database = "postgresql";
        }
        settings
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((server, name)) = self.server.take() else {
            return;
        };
        // A test's own runtime is busy ending.
        let removal = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(ask(&server, format!("drop database {name} with (force)")));
        });
        if removal.join().is_err() {
            eprintln!("a test's database could not be removed");
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
