//! The tests of our packages, compiled together.
//!
//! `cargo test --package X` compiles the dependencies with the features X alone asks for, so one such command per
//! package compiles most of them several times. A full run therefore builds all test programs at once and runs
//! them package by package.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use serde::Deserialize;

use super::house::Tests;
use super::skips::Skips;
use super::suites::LIMIT;
use crate::project::{self, Profile};
use crate::{process, tools};

/// The test programs of all packages.
pub struct Built {
    programs: Vec<Program>,
    /// Folders of packages of which at least a part did not compile.
    broken: BTreeSet<PathBuf>,
}

#[derive(Debug, PartialEq)]
struct Program {
    folder: PathBuf,
    file: PathBuf,
}

/// The part of cargo's messages that we read.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    manifest_path: PathBuf,
    executable: Option<PathBuf>,
    profile: Option<ArtifactProfile>,
    message: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct ArtifactProfile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    #[serde(default)]
    rendered: String,
}

impl Built {
    /// Compiles whatever compiles; what does not fails the suite of its package only.
    pub fn build() -> Result<Self> {
        tools::ensure_compiler()?;
        println!("compiling the tests of all packages together");
        let messages = tempfile::NamedTempFile::new()?;
        let mut command = project::cargo();
        command.args(["build", "--workspace", "--tests", "--keep-going"]);
        command
            .arg("--message-format=json-render-diagnostics")
            .stdout(File::create(messages.path())?);
        let done = process::run(&mut command, LIMIT);
        let mut built = read(&fs::read_to_string(messages.path())?);
        match done {
            Err(error) if process::interrupted() => return Err(error),
            // Something between the packages: a lock file, a linker. No program can be trusted to be fresh.
            Err(error) if built.broken.is_empty() => {
                eprintln!("{error:#}");
                built.programs.clear();
            }
            Err(_) | Ok(()) => {}
        }
        Ok(built)
    }

    /// Runs the tests of one package.
    pub fn run(&self, tests: &Tests, skips: &mut Skips) -> Result<()> {
        let package = tests.package;
        let folder = folder(package);
        let programs: Vec<&Program> = self
            .programs
            .iter()
            .filter(|program| program.folder == folder)
            .collect();
        if self.broken.contains(&folder) || programs.is_empty() {
            bail!("the tests of {package} did not compile");
        }
        let mut failed = Vec::new();
        for program in programs {
            println!("running {}", program.file.display());
            let mut command = self.command(program, tests.environment);
            command.args(tests.arguments);
            if let Err(error) = skips.run(command, tests.limit.unwrap_or(LIMIT)) {
                failed.push(format!("{error:#}"));
            }
        }
        if !failed.is_empty() {
            bail!("{}", failed.join("; "));
        }
        Ok(())
    }

    /// The program with the environment cargo would give it.
    fn command(&self, program: &Program, environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(&program.file);
        command
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder);
        command.env("CARGO_TARGET_DIR", project::target());
        command
            .env("CARGO_BIN_EXE_muster", project::binary(Profile::Dev))
            .envs(environment.iter().copied());
        command
    }
}

fn read(messages: &str) -> Built {
    let mut built = Built {
        programs: Vec::new(),
        broken: BTreeSet::new(),
    };
    for message in messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
    {
        let folder = message
            .manifest_path
            .parent()
            .map(PathBuf::from)
            .unwrap_or_default();
        if let Some(error) = message.message.filter(|diagnostic| diagnostic.level == "error") {
            eprint!("{}", error.rendered);
            built.broken.insert(folder);
        } else if let (Some(file), Some(ArtifactProfile { test: true })) =
            (message.executable, message.profile)
        {
            built.programs.push(Program { folder, file });
        }
    }
    built
}

/// Our packages live in folders named after them.
fn folder(package: &str) -> PathBuf {
    match package {
        "xtask" | "chores" => project::root().join(package),
        _ => project::root()
            .join("crates")
            .join(package.strip_prefix("muster-").unwrap_or(package)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_kept_and_other_artifacts_left() {
        let built = read(concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/p/crates/hub/Cargo.toml","profile":{"test":true},"executable":"/t/hub-1"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/p/crates/muster/Cargo.toml","profile":{"test":false},"executable":"/t/muster"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        ));
        assert_eq!(
            built.programs,
            [Program {
                folder: "/p/crates/hub".into(),
                file: "/t/hub-1".into()
            }]
        );
        assert!(built.broken.is_empty());
    }

    #[test]
    fn a_package_that_compiles_only_in_part_is_broken_as_a_whole() {
        let built = read(
            r#"{"reason":"compiler-message","manifest_path":"/p/crates/hub/Cargo.toml","message":{"level":"error"}}"#,
        );
        assert!(built.broken.contains(&PathBuf::from("/p/crates/hub")));
    }

    #[test]
    fn every_package_has_a_folder() {
        for package in ["muster", "muster-domain", "xtask", "chores"] {
            assert!(folder(package).join("Cargo.toml").exists(), "{package}");
        }
    }
}
