//! Generated requests, good and bad, for every operation of the OpenAPI document the hub serves.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::house::House;
use crate::hub::{self, Hub, Options};
use crate::{http, process};

/// Some hundred operations at a few dozen requests each.
const LIMIT: Duration = Duration::from_secs(8 * 60);

/// Enough to reach every parameter; the edge cases come from the coverage phase, which this does not bound.
const EXAMPLES: &str = "10";

/// What is not offered yet says so. An agent of an InfraEnv that is not there is asked to come again.
const CHECKS: &str = r#"[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "501"]

[[operations]]
include-operation-id = "v2GetNextSteps"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]
"#;

/// First as a stranger, whose ids name nothing; then on PostgreSQL as somebody who knows what is there.
pub fn run(house: &mut House) -> Result<()> {
    let binary = house.binary()?;
    let home = tempfile::Builder::new().prefix("muster-fuzz-").tempdir()?;
    let start = |name: &str, database: Option<&str>| {
        Hub::start(&Options {
            binary: &binary,
            listen: "127.0.0.1:0",
            data_dir: &home.path().join(name),
            database,
            ends_with_us: true,
        })
    };
    let stranger = start("stranger", None)?;
    // Not an empty hub: whoever follows its feed would wait for each answer.
    made(&stranger.url)?;
    let file = home.path().join("schemathesis.toml");
    fs::write(&file, CHECKS)?;
    let done = ask(house, &stranger, home.path(), &[]);
    stranger.stop().and(done)?;

    let database = house.postgres()?.create_database("fuzz")?;
    let insider = start("insider", Some(&database))?;
    fs::write(&file, format!("{}\n{CHECKS}", made(&insider.url)?))?;
    // What is deleted could not be asked about any more.
    let done = ask(house, &insider, home.path(), &["--exclude-method", "DELETE"]);
    insider.stop().and(done)
}

fn ask(house: &mut House, hub: &Hub, home: &Path, more: &[&str]) -> Result<()> {
    let mut command = house.python()?.command("st");
    command
        .arg("run")
        .arg(format!("{}/openapi.json", hub.url))
        .args(more);
    command.args([
        "--checks",
        "not_a_server_error",
        "--phases",
        "examples,coverage,fuzzing",
    ]);
    command.args(["--max-examples", EXAMPLES, "--seed", "1", "--workers", "2"]);
    command.args(["--request-timeout", "40", "--suppress-health-check", "all"]);
    command.args(["--continue-on-failure", "--warnings", "off"]);
    command.current_dir(home).env("HOME", home);
    process::run(&mut command, LIMIT).with_context(|| hub::tail(&hub.log))
}

/// Makes a pool, a cluster and a host, and gives their ids for every request that needs one.
fn made(url: &str) -> Result<String> {
    let base = format!("{url}/api/assisted-install/v2");
    let pull_secret = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
    let make = |path: &str, body: Value| -> Result<String> {
        let made = http::post(&format!("{base}{path}"), &body)?;
        Ok(made["id"].as_str().context("what was made has an id")?.to_owned())
    };
    let infra_env = make(
        "/infra-envs",
        json!({ "name": "pool", "pull_secret": pull_secret }),
    )?;
    let wish = json!({ "name": "alpha", "openshift_version": "4.20", "pull_secret": pull_secret,
        "base_dns_domain": "example.com" });
    let cluster = make("/clusters", wish)?;
    let host = "00000000-0000-4000-8000-000000000001";
    make(
        &format!("/infra-envs/{infra_env}/hosts"),
        json!({ "host_id": host }),
    )?;
    Ok(format!(
        "[parameters]\ninfra_env_id = {infra_env:?}\ncluster_id = {cluster:?}\nhost_id = {host:?}\n"
    ))
}
