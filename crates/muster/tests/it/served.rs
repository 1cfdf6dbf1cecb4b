//! The hub as a process on a database of its own: it can be killed and started again on the same data.

use crate::program::command_within;
use muster_contract::HubClient;
use muster_contract::v1::change::{Change, ChangesQuery};
use sqlx::{AssertSqlSafe, Connection};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use uuid::Uuid;

/// Plenty even for a debug build on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
const SERVER: &str = "MUSTER_TEST_POSTGRES";

/// Where a hub keeps its data.
pub struct Place {
    directory: TempDir,
    postgres: Option<Postgres>,
    /// Programs that prepare something and then become the hub.
    around: Vec<String>,
}

struct Postgres {
    server: String,
    name: String,
    url: String,
}

impl Place {
    pub fn sqlite() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            postgres: None,
            around: Vec::new(),
        }
    }

    /// The hubs of this place are started by these words from now on.
    pub fn within(mut self, around: Vec<String>) -> Self {
        self.around = around;
        self
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
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
        let name = format!("served_{}", Uuid::new_v4().simple());
        ask(&server, format!("create database {name}")).await;
        let (front, rest) = server.split_at(server.rfind('/').unwrap());
        let parameters = rest.split_once('?').map(|(_, given)| format!("?{given}"));
        let url = format!("{front}/{name}{}", parameters.unwrap_or_default());
        Some(Self {
            directory: tempfile::tempdir().unwrap(),
            postgres: Some(Postgres { server, name, url }),
            around: Vec::new(),
        })
    }

    /// The data directory of its hubs.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// For tests that came to their end; a failed one leaves its database for a look.
    pub async fn remove(self) {
        if let Some(Postgres { server, name, .. }) = self.postgres {
            ask(&server, format!("drop database {name} with (force)")).await;
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

/// A running hub; it ends with the test.
pub struct Served {
    process: Child,
    log: PathBuf,
    pub url: String,
    pub hub: HubClient,
}

impl Served {
    /// Returns when the hub says that it is ready.
    pub fn start(place: &Place) -> Self {
        Self::start_with(place, &[])
    }

    pub fn start_with(place: &Place, flags: &[&str]) -> Self {
        Self::start_on(place, "127.0.0.1:0", flags)
    }

    /// At the address an earlier one had.
    pub fn start_on(place: &Place, listen: &str, flags: &[&str]) -> Self {
        let data = place.data();
        let words = ["serve", "--listen", listen, "--log", "warn", "--data-dir"];
        let mut serve = command_within(&place.around, &words);
        serve.arg(data).args(flags);
        if let Some(postgres) = &place.postgres {
            serve.args(["--database", &postgres.url]);
        }
        let log = place.directory.path().join("log");
        let lines = File::options().create(true).append(true).open(&log).unwrap();
        let mut process = serve.stdout(Stdio::piped()).stderr(lines).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let Some(url) = line.trim().strip_prefix("muster is ready at ") else {
            panic!("instead of its address the hub said {line:?}\n{}", tail(&log));
        };
        Self {
            hub: HubClient::new(url).unwrap(),
            url: url.to_owned(),
            process,
            log,
        }
    }

    /// `kill -9`: nothing can be tidied up.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<i32> {
        let status = self.process.try_wait().unwrap()?;
        Some(status.code().unwrap_or(-1))
    }

    pub fn log(&self) -> String {
        tail(&self.log)
    }

    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// The whole feed from its beginning.
    pub async fn changes(&self) -> Vec<Change> {
        let mut all: Vec<Change> = Vec::new();
        loop {
            let query = ChangesQuery {
                after: Some(all.last().map_or(0, |change| change.seq)),
                limit: Some(10_000),
                wait_seconds: None,
            };
            let page = self.hub.changes(&query).await.unwrap();
            if page.changes.is_empty() {
                return all;
            }
            all.extend(page.changes);
        }
    }

    /// The number of the newest change.
    pub async fn seq(&self) -> i64 {
        self.changes().await.last().map_or(0, |change| change.seq)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            println!("the hub's log:\n{}", tail(&self.log));
        }
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// Asks until the answer is there.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::task::yield_now().await;
    }
}

/// One test per database out of one body.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        $(mod $name {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let place = crate::served::Place::sqlite();
                super::$name(&place).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(place) = crate::served::Place::postgres().await {
                    super::$name(&place).await;
                    place.remove().await;
                }
            }
        })*
    };
}
pub(crate) use on_both;
