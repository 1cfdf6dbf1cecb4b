//! The Python clients people already use, unmodified, against a running hub with simulated hosts.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::house::House;
use crate::hub::{Hub, Options, installer};
use crate::{process, project};

/// `aicli wait` looks every five seconds; the whole run takes a few minutes.
const LIMIT: Duration = Duration::from_secs(8 * 60);

pub fn run(house: &mut House) -> Result<()> {
    house.python()?;
    let binary = house.binary()?;
    drive(house, &binary, None).context("on SQLite")?;
    let database = house.postgres()?.create_database("muster_clients")?;
    drive(house, &binary, Some(&database)).context("on PostgreSQL")
}

fn drive(house: &mut House, binary: &Path, database: Option<&str>) -> Result<()> {
    println!(
        "aicli against {}",
        if database.is_some() {
            "PostgreSQL"
        } else {
            "SQLite"
        }
    );
    let home = tempfile::Builder::new().prefix("muster-clients-").tempdir()?;
    let data_dir = home.path().join("data");
    let options = Options {
        binary,
        listen: "127.0.0.1:0",
        data_dir: &data_dir,
        database,
        ends_with_us: true,
    };
    let hub = Hub::start_with(&options, &installer::put(home.path())?)?;
    let mut tests = house.python()?.command("python");
    tests.args([
        "-m",
        "unittest",
        "--failfast",
        "--verbose",
        "test_clients",
        "test_installation",
    ]);
    tests
        .env("PYTHONPATH", project::root().join("chores/python"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("MUSTER_HUB", &hub.url).env("MUSTER_BIN", binary);
    // aicli keeps files in the home directory.
    tests.env("HOME", home.path()).current_dir(home.path());
    let done = process::run(&mut tests, LIMIT).with_context(|| crate::hub::tail(&hub.log));
    let stopped = hub.stop();
    done.and(stopped)
}
