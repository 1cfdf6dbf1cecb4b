//! The image that fetches nodes back from the inside of their clusters: the agent, startable as the operator starts it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::image::list;
use crate::image::Image;
use crate::{process, project, tools};

const NAME: &str = "muster-agent:test";

/// As the operator's DaemonSet has it: a name without a path, and flags.
const COMMAND: &str = "muster-agent";
const FLAGS: [&str; 4] = [
    "--installed",
    "--url=http://127.0.0.1:1",
    "--infra-env-id=431b034d-b436-4a8d-8f84-09948d2454dd",
    "--host-id=1de63ff2-0ac8-4d8a-9b83-6b0d3a1d1a6f",
];

/// There is one file to copy.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// In the store of another image, which is there already.
pub fn look_into(store: &Image) -> Result<()> {
    build(store)?;
    let told: Value = serde_json::from_str(&store.ask(&["inspect", "--type", "image", NAME])?)?;
    let config = &told["OCIv1"]["config"];
    let path = path(&config["Env"]).context("the image has no PATH, so nobody finds its program by name")?;
    ensure!(
        config["User"] == "0:0",
        "only root can start another kernel: {config}"
    );
    ensure!(
        config["Entrypoint"] == json!(["/usr/bin/muster-agent"]),
        "{config}"
    );
    let container = store.ask(&["from", NAME])?;
    let root = store.ask(&["mount", &container])?;
    let done = look(Path::new(&root), &path);
    store.ask(&["umount", &container])?;
    done
}

/// As the guide has it, but for the program that does it.
fn build(store: &Image) -> Result<()> {
    let context = tempfile::tempdir()?;
    fs::copy(tools::agent::build()?, context.path().join("muster-agent"))?;
    let mut build = store.buildah();
    build
        .args(["bud", "--isolation", "chroot", "--tag", NAME, "--file"])
        .arg(project::root().join("deploy/Dockerfile.agent"))
        .arg(context.path());
    process::run(&mut build, LIMIT)
}

fn look(root: &Path, path: &str) -> Result<()> {
    let mut files = Vec::new();
    list(root, root, &mut files)?;
    ensure!(
        files == ["usr/bin/muster-agent"],
        "there is more in the image than the agent: {files:?}"
    );
    let mut agent = Command::new("/usr/sbin/chroot");
    agent.env_clear().env("PATH", path).arg(root).arg(COMMAND);
    // It would wait for a hub; this ends, and shows that the flags are understood.
    let said = process::output(agent.args(FLAGS).arg("--print-inventory"))?;
    let inventory: Value =
        serde_json::from_slice(&said).context("the agent in the image prints no inventory")?;
    ensure!(inventory.is_object(), "{inventory}");
    Ok(())
}

fn path(environment: &Value) -> Option<String> {
    let words = environment.as_array()?.iter().filter_map(Value::as_str);
    words
        .filter_map(|word| word.strip_prefix("PATH="))
        .next_back()
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_found_in_the_environment_of_an_image() {
        assert_eq!(path(&json!(["A=1", "PATH=/usr/bin"])), Some("/usr/bin".into()));
        assert_eq!(path(&Value::Null), None);
    }
}
