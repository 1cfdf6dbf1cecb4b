//! Generated requests, good and bad, for every operation of the OpenAPI document the hub serves.

use std::time::Duration;

use anyhow::{Context, Result};

use super::house::House;
use crate::hub::{self, Hub, Options};
use crate::process;

/// Some hundred operations at a few dozen requests each.
const LIMIT: Duration = Duration::from_secs(8 * 60);

/// Enough to reach every parameter; the edge cases come from the coverage phase, which this does not bound.
const EXAMPLES: &str = "10";

pub fn run(house: &mut House) -> Result<()> {
    let binary = house.binary()?;
    let home = tempfile::Builder::new().prefix("muster-fuzz-").tempdir()?;
    let data_dir = home.path().join("data");
    let mut command = house.python()?.command("st");
    let hub = Hub::start(&Options {
        binary: &binary,
        listen: "127.0.0.1:0",
        data_dir: &data_dir,
        database: None,
        ends_with_us: true,
    })?;
    command.arg("run").arg(format!("{}/openapi.json", hub.url));
    command.args([
        "--checks",
        "not_a_server_error",
        "--phases",
        "examples,coverage,fuzzing",
    ]);
    command.args([
        "--max-examples",
        EXAMPLES,
        "--seed",
        "1",
        "--workers",
        "2",
        "--request-timeout",
        "30",
    ]);
    command.args([
        "--suppress-health-check",
        "all",
        "--continue-on-failure",
        "--warnings",
        "off",
    ]);
    command.current_dir(home.path()).env("HOME", home.path());
    let done = process::run(&mut command, LIMIT).with_context(|| hub::tail(&hub.log));
    let stopped = hub.stop();
    done.and(stopped)
}
