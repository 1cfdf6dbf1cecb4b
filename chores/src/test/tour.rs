//! README's five-minute tour: its shell blocks, run in order as one script, as if pasted.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::house::House;
use crate::process;
use crate::project::{self, Profile};

/// Five minutes for a person; a script is faster even on a busy machine.
const LIMIT: Duration = Duration::from_secs(10 * 60);

pub fn run(house: &mut House) -> Result<()> {
    let readme = project::root().join("README.md");
    let text = fs::read_to_string(&readme).with_context(|| format!("reading {}", readme.display()))?;
    let script = script(&text)?;
    let binary = house.binary()?;
    let home = tempfile::Builder::new().prefix("muster-tour-").tempdir()?;
    lend_cargo_alias(home.path())?;
    fs::write(home.path().join("tour.sh"), script)?;
    let mut bash = Command::new("bash");
    bash.arg("tour.sh")
        .current_dir(home.path())
        .env("PATH", path_with(&binary)?);
    at_home(&mut bash);
    let done = process::run(&mut bash, LIMIT);
    // A tour that failed half-way has not come to its own `down`.
    let stopped = xtask_down(home.path());
    done.and(stopped)
}

/// The tour runs away from the clone, so that it cannot touch the data of whoever runs the tests.
fn lend_cargo_alias(home: &Path) -> Result<()> {
    let manifest = project::root().join("Cargo.toml");
    let alias = format!(
        "[alias]\nxtask = [\"run\", \"--profile\", \"quick\", \"--manifest-path\", {:?}, \"--package\", \"xtask\", \"--\"]\n",
        manifest.display().to_string()
    );
    fs::create_dir(home.join(".cargo"))?;
    fs::write(home.join(".cargo/config.toml"), alias).context("lending the cargo alias to the tour")
}

fn xtask_down(home: &Path) -> Result<()> {
    let xtask = project::target().join(Profile::Quick.directory()).join("xtask");
    let mut down = Command::new(xtask);
    process::output(at_home(down.arg("down").current_dir(home))).map(|_| ())
}

/// What we have compiled is used, the program of the tests included: `up` starts another one, which takes minutes.
fn at_home(command: &mut Command) -> &mut Command {
    project::without_proxy(command)
        .env("CARGO_TARGET_DIR", project::target())
        .env(project::PROFILE_OF_UP, "dev")
}

fn path_with(binary: &Path) -> Result<OsString> {
    let bin = binary.parent().context("a binary has a directory")?.to_path_buf();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(
        std::iter::once(bin).chain(std::env::split_paths(&rest)),
    )?)
}

/// All marked blocks as one script that stops at the first failing command and shows each as it runs it.
fn script(readme: &str) -> Result<String> {
    let blocks = blocks(readme);
    if blocks.is_empty() {
        bail!("README.md has no code block that opens with ```sh tour");
    }
    Ok(format!("set -euo pipefail\nset -x\n{}\n", blocks.join("\n")))
}

/// The code blocks whose opening fence says `sh tour`; other blocks show output or are for reading only.
fn blocks(readme: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<Block> = None;
    for line in readme.lines() {
        let fence = line.trim_start().strip_prefix("```").map(str::trim);
        match (inside.as_mut(), fence) {
            // Only a bare fence closes a block; one with a word is text of the block.
            (Some(_), Some("")) => found.extend(
                inside
                    .take()
                    .filter(|block| block.ours)
                    .map(|block| block.lines.join("\n")),
            ),
            (Some(block), _) => block.lines.push(line),
            (None, Some(info)) => {
                inside = Some(Block {
                    ours: is_ours(info),
                    lines: Vec::new(),
                })
            }
            (None, None) => {}
        }
    }
    found
}

struct Block<'a> {
    ours: bool,
    lines: Vec<&'a str>,
}

fn is_ours(info: &str) -> bool {
    let mut words = info.split_whitespace();
    matches!(words.next(), Some("sh" | "bash" | "shell")) && words.any(|word| word == "tour")
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# Muster\n\n```sh\nnot this\n```\n\nTour:\n\n```sh tour\nmuster host list\nx=1\n```\nshows\n```text\n```sh tour\nnot this either\n```\n\n```bash tour\necho $x\n```\n";

    #[test]
    fn marked_blocks_are_taken_in_order_and_others_left() {
        assert_eq!(blocks(README), ["muster host list\nx=1", "echo $x"]);
    }

    #[test]
    fn a_readme_without_a_tour_is_an_error_not_a_pass() {
        assert!(script("# Muster\n```sh\nls\n```\n").is_err());
    }

    #[test]
    fn the_script_stops_at_the_first_failing_command() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("tour.sh");
        fs::write(&file, script("```sh tour\nfalse\ntouch reached\n```\n").unwrap()).unwrap();
        let done = process::run(Command::new("bash").arg(&file).current_dir(home.path()), LIMIT);
        assert!(done.is_err());
        assert!(!home.path().join("reached").exists());
    }
}
