//! The hub with disks, databases and clocks that fail and come back, and with `kill -9`, bounded in time.

use std::time::Duration;

use anyhow::Result;

use super::house::{House, Tests};
use crate::tools::{self, Unavailable};

/// The programs of PostgreSQL, for tests that freeze and stop a server of their own.
const POSTGRES: &str = "MUSTER_TEST_POSTGRES_BIN";

/// The library that tells a program another time.
const FAKETIME: &str = "MUSTER_TEST_FAKETIME";

/// What fails here fails for ever: nobody waits longer than this for all of it.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// These tests wait most of their time: more of them at once than there are cores.
const THREADS: &str = "4";

pub fn run(house: &mut House) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        let why = "file systems are mounted and made full, which needs root";
        return Err(Unavailable(why.into()).into());
    }
    tools::ensure_disks()?;
    let postgres = tools::ensure_postgres()?.display().to_string();
    let faketime = tools::ensure_faketime()?.display().to_string();
    let environment = [
        (POSTGRES, postgres.as_str()),
        (FAKETIME, &faketime),
        ("RUST_TEST_THREADS", THREADS),
    ];
    house.run(&Tests {
        environment: &environment,
        arguments: &["--ignored"],
        limit: Some(LIMIT),
        ..Tests::of("muster")
    })
}
