//! A private PostgreSQL server on loopback, gone with its guard.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::{port, process, tools, wait};

/// Usually well under two seconds.
const START_LIMIT: Duration = Duration::from_secs(60);

/// What a server must survive; tests that never cut its power need not wait for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    Relaxed,
    /// For measurements, where the disk is part of the answer.
    Full,
}

/// A running server. `url` names its maintenance database, with the right to create others.
pub struct Postgres {
    pub url: String,
    bin: PathBuf,
    // The order matters: the server stops before its directory goes.
    server: process::Service,
    #[cfg_attr(not(test), expect(dead_code, reason = "kept for its drop"))]
    home: TempDir,
}

impl Postgres {
    pub fn start(durability: Durability) -> Result<Self> {
        let bin = tools::ensure_postgres()?;
        let home = tempfile::Builder::new().prefix("muster-postgres-").tempdir()?;
        let user = Account::for_server()?;
        user.own(home.path())?;
        let data = home.path().join("data");
        let mut initdb = user.command(&bin.join("initdb"));
        initdb
            .arg("--pgdata")
            .arg(&data)
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8"]);
        process::output(initdb.args(["--locale=C", "--no-sync"]).current_dir(home.path()))?;

        let port = port::free()?;
        let log = home.path().join("log");
        let mut command = user.command(&bin.join("postgres"));
        command
            .arg("-D")
            .arg(&data)
            .arg("-p")
            .arg(port.to_string())
            .args(settings(durability));
        let written = File::create(&log)?;
        command
            .current_dir(home.path())
            .stdout(written.try_clone()?)
            .stderr(written);
        // SIGINT is PostgreSQL's fast shutdown: clients are disconnected, the data is left whole.
        let mut server = process::Service::start("PostgreSQL", &mut command, Signal::INT)?;

        let mut asked = Command::new(bin.join("pg_isready"));
        asked.args(["--quiet", "--host=127.0.0.1", "--port", &port.to_string()]);
        wait::until("PostgreSQL to accept connections", START_LIMIT, || {
            if let Some(status) = server.ended()? {
                bail!(
                    "PostgreSQL ended at once ({status}):\n{}",
                    fs::read_to_string(&log).unwrap_or_default()
                );
            }
            Ok(process::succeeds(&mut asked).then_some(()))
        })?;
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        Ok(Self {
            url,
            bin,
            server,
            home,
        })
    }

    /// Its first process; all others are children of it.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Makes an empty database and gives its URL.
    pub fn create_database(&self, name: &str) -> Result<String> {
        let mut psql = Command::new(self.bin.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--dbname", &self.url, "--command"]);
        process::output(psql.arg(format!("create database \"{name}\"")))?;
        let (server, _) = self.url.rsplit_once('/').context("a database URL has a path")?;
        Ok(format!("{server}/{name}"))
    }
}

fn settings(durability: Durability) -> Vec<&'static str> {
    let mut settings = vec![
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "unix_socket_directories=",
        // Every test opens a pool of its own, many at a time.
        "-c",
        "max_connections=400",
        "-c",
        "shared_buffers=128MB",
    ];
    if durability == Durability::Relaxed {
        settings.extend([
            "-c",
            "fsync=off",
            "-c",
            "synchronous_commit=off",
            "-c",
            "full_page_writes=off",
        ]);
    }
    settings
}

/// Who runs the server: PostgreSQL refuses to run as root.
enum Account {
    Ourselves,
    Other { uid: u32, gid: u32 },
}

impl Account {
    fn for_server() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        let number = |flag, user| -> Result<u32> {
            let text = process::output(Command::new("id").args([flag, user]))?;
            String::from_utf8_lossy(&text)
                .trim()
                .parse()
                .context("`id` did not print a number")
        };
        let user = if number("-u", "postgres").is_ok() {
            "postgres"
        } else {
            "nobody"
        };
        Ok(Self::Other {
            uid: number("-u", user)?,
            gid: number("-g", user)?,
        })
    }

    fn own(&self, directory: &Path) -> Result<()> {
        match self {
            Self::Ourselves => Ok(()),
            Self::Other { uid, gid } => std::os::unix::fs::chown(directory, Some(*uid), Some(*gid))
                .with_context(|| format!("handing {} to the server's user", directory.display())),
        }
    }

    fn command(&self, program: &Path) -> Command {
        match self {
            Self::Ourselves => process::ending_with_us(program),
            Self::Other { uid, gid } => {
                let mut command = Command::new("setpriv");
                command.args([
                    "--reuid",
                    &uid.to_string(),
                    "--regid",
                    &gid.to_string(),
                    "--clear-groups",
                ]);
                command.args(["--pdeathsig", "INT", "--"]).arg(program);
                command
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_must_survive_power_loss_syncs() {
        assert!(!settings(Durability::Full).contains(&"fsync=off"));
        assert!(settings(Durability::Relaxed).contains(&"fsync=off"));
    }

    #[test]
    fn a_server_makes_databases_and_is_gone_with_its_guard() {
        let server = Postgres::start(Durability::Relaxed).unwrap();
        let home = server.home.path().to_path_buf();
        let url = server.create_database("one").unwrap();
        let ask = |url: &str| {
            let mut psql = Command::new(server.bin.join("psql"));
            psql.args([
                "--no-psqlrc",
                "-Atc",
                "select current_database()",
                "--dbname",
                url,
            ]);
            process::output(&mut psql).map(|text| String::from_utf8_lossy(&text).trim().to_owned())
        };
        assert_eq!(ask(&url).unwrap(), "one");
        let (psql, gone) = (server.bin.join("psql"), url.clone());
        drop(server);
        assert!(!home.exists());
        assert!(!process::succeeds(
            Command::new(psql).args(["-c", "select 1", "--dbname", &gone])
        ));
    }
}
