//! A PostgreSQL server of a trial's own, which freezes, crashes, goes away and comes back at the same address.
//!
//! It lives in a process namespace of its own: what is left of it ends with its first process, frozen or not.

use super::processes::{ENDING_WITH_US, Frozen, children, send};
use crate::served::until;
use rustix::process::Signal;
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// Where the programs are.
const PROGRAMS: &str = "MUSTER_TEST_POSTGRES_BIN";
/// The system gives ports from 32768 on to anybody; a server that comes back needs its own.
const FIRST_PORT: u16 = 20_000;
const PORTS: u32 = 10_000;

/// Nobody cuts the machine's power here: what the system has taken is safe. Shared memory in its own directory goes
/// with the directory.
const SETTINGS: [&str; 4] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "dynamic_shared_memory_type=mmap",
];

pub struct Server {
    bin: PathBuf,
    port: u16,
    running: Option<Child>,
    home: TempDir,
}

impl Server {
    pub async fn start() -> Self {
        let bin = std::env::var_os(PROGRAMS).unwrap_or_else(|| {
            panic!("{PROGRAMS} is not set; run this with `cargo xtask test --only chaos`")
        });
        let home = tempfile::Builder::new()
            .prefix("muster-chaos-")
            .tempdir()
            .unwrap();
        let mut server = Self {
            bin: bin.into(),
            port: free_port(),
            running: None,
            home,
        };
        server.initialise();
        server.come_back().await;
        server.ask("postgres", "create database hub").await;
        server
    }

    /// `name` is what the server calls whoever connects with it.
    pub fn url(&self, name: &str) -> String {
        format!("{}?application_name={name}", self.address("hub"))
    }

    fn address(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn initialise(&self) {
        give_to_server(self.home.path());
        let mut initdb = self.program("initdb");
        initdb.arg("--pgdata").arg(self.data());
        initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        let done = initdb.args(["--locale=C", "--no-sync"]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// One of its programs, which ends with us.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(ENDING_WITH_US[0]);
        command.args(&ENDING_WITH_US[1..]).args(own_namespace());
        let server = as_server(&ENDING_WITH_US[1..3]);
        command.arg(server.get_program()).args(server.get_args());
        command.arg(self.bin.join(name)).current_dir("/");
        command
    }

    /// Starts it again, and returns when it answers.
    pub async fn come_back(&mut self) {
        assert!(self.running.is_none());
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.home.path().join("log"));
        let (log, mut command) = (log.unwrap(), self.program("postgres"));
        command.arg("-D").arg(self.data());
        command.args(["-p", &self.port.to_string()]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.running = Some(command.spawn().unwrap());
        until("PostgreSQL answers", async || self.answers().await.then_some(())).await;
    }

    async fn answers(&self) -> bool {
        sqlx::any::install_default_drivers();
        match AnyConnection::connect(&self.address("postgres")).await {
            Ok(connection) => connection.close().await.is_ok(),
            Err(_) => false,
        }
    }

    /// Runs a statement and gives the rows it changed or gave.
    pub async fn ask(&self, database: &str, statement: &str) -> u64 {
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&self.address(database)).await.unwrap();
        let done = sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        done.rows_affected()
    }

    /// Connections to it are taken by the system and answered by nobody.
    pub fn freeze(&self) -> Frozen {
        Frozen::all_below(self.pid())
    }

    /// It ends in order: clients are told.
    pub fn leave(&mut self) {
        let first = children(self.pid());
        first.into_iter().for_each(|pid| send(pid, Signal::INT));
        self.running.take().unwrap().wait().unwrap();
    }

    /// `kill -9`: it has to put itself right from its log.
    pub fn crash(&mut self) {
        let mut all = self.running.take().unwrap();
        all.kill().unwrap();
        all.wait().unwrap();
    }

    fn pid(&self) -> u32 {
        self.running.as_ref().unwrap().id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.kill();
            let _ = running.wait();
        }
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            println!(
                "PostgreSQL's log:\n{}",
                lines[lines.len().saturating_sub(20)..].join("\n")
            );
        }
    }
}

/// What ends with its first process, which ends with the one that waits for it.
fn own_namespace() -> Vec<&'static str> {
    let mut words = vec!["unshare", "--pid", "--ipc", "--fork", "--kill-child=KILL"];
    if !rustix::process::geteuid().is_root() {
        words.extend(["--user", "--map-current-user"]);
    }
    words.push("--");
    words
}

/// PostgreSQL refuses to run as root.
fn as_server(more: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    if rustix::process::geteuid().is_root() {
        let id = account();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    }
    command.args(more).arg("--");
    command
}

/// `nobody` is the same number everywhere, and owns nothing.
fn account() -> String {
    "65534".into()
}

fn give_to_server(directory: &Path) {
    if rustix::process::geteuid().is_root() {
        let id = account().parse().unwrap();
        std::os::unix::fs::chown(directory, Some(id), Some(id)).unwrap();
    }
}

/// A port that nobody else is given meanwhile, however long its server is down.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(89);
    let next = || start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let mut ports = (0..PORTS).map(|_| FIRST_PORT + u16::try_from(next()).unwrap());
    ports
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .unwrap()
}
