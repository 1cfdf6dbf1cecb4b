//! The database a test runs on: in memory, or a fresh one on a real PostgreSQL with `MUSTER_TEST_DATABASE=postgres`.

use muster_hub::Settings;
use muster_store::{Database, Store};
use sqlx::{AssertSqlSafe, Connection};
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
}

impl Place {
    pub async fn new() -> Self {
        match std::env::var(CHOICE).as_deref() {
            Err(_) | Ok("" | "memory") => Self {
                database: Database::Memory,
                server: None,
            },
            Ok("postgres") => Self::postgres().await,
            Ok(other) => panic!("{CHOICE} is {other:?}; it can be memory or postgres"),
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
        }
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
