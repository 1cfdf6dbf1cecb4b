//! Where things are: the project, the cache outside the clone, and the binaries built from it.

use std::env;
use std::path::{self, Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process;

/// A cold build of everything on two slow cores takes a good part of this.
pub const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Which build of the binary is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The soonest to be compiled: what `cargo xtask up` starts.
    Quick,
    Dev,
    Release,
}

impl Profile {
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Dev => "dev",
            Self::Release => "release",
        }
    }

    pub fn directory(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }

    /// The one that `cargo xtask up` starts. The tests have another one compiled already when they play the tour.
    pub fn of_up() -> Self {
        match env::var(PROFILE_OF_UP).as_deref() {
            Ok("dev") => Self::Dev,
            Ok(_) | Err(_) => Self::Quick,
        }
    }
}

/// Says `dev` where the program that `up` starts shall be the one that tests are compiled with.
pub const PROFILE_OF_UP: &str = "MUSTER_XTASK_UP_PROFILE";

/// The top of the clone this tool was built from.
pub fn root() -> PathBuf {
    let xtask =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
}

/// Tools that are built or fetched once for all clones are kept here.
pub fn cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    base.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"))
        .join("muster")
}

/// The one directory of compiled code: the one into which cargo has put this very program.
pub fn target() -> PathBuf {
    let given = env::var_os("CARGO_TARGET_DIR").and_then(|given| path::absolute(given).ok());
    given
        .or_else(|| marked(&env::current_exe().ok()?))
        .unwrap_or_else(|| root().join("target"))
}

/// Cargo marks its directories as ones that need no backup.
fn marked(program: &Path) -> Option<PathBuf> {
    let mut above = program.ancestors().skip(1);
    above
        .find(|folder| folder.join("CACHEDIR.TAG").exists())
        .map(Path::to_path_buf)
}

/// Where `cargo xtask up` puts the programs it builds.
pub fn programs() -> PathBuf {
    target().join(Profile::of_up().directory())
}

/// Cargo as it should be called for anything that is built: in the project, into the directory that has us.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).env("CARGO_TARGET_DIR", target());
    // What `cargo run` sets for this tool would otherwise leak into the build scripts of others.
    command
        .env_remove("CARGO_MANIFEST_DIR")
        .env_remove("CARGO_MANIFEST_PATH");
    command
}

/// Where the `muster` binary is once it is built.
pub fn binary(profile: Profile) -> PathBuf {
    target().join(profile.directory()).join("muster")
}

/// The build of the `muster` binary.
///
/// For `up` it is without what `up` does not start. Otherwise the whole workspace decides the features, as in the tests:
/// dependencies are compiled once for both.
pub fn compiler(profile: Profile) -> Command {
    let mut command = cargo();
    command.args(["build", "--profile", profile.name(), "--bin", "muster"]);
    command.args(match profile {
        Profile::Quick => &["--package", "muster", "--no-default-features"][..],
        Profile::Dev | Profile::Release => &["--workspace"],
    });
    command
}

/// Builds the `muster` binary (nothing to do when it is fresh) and says where it is.
pub fn build(profile: Profile) -> Result<PathBuf> {
    process::run(&mut compiler(profile), BUILD_LIMIT)?;
    Ok(binary(profile))
}

/// Talks to our own servers on loopback must not take a detour through a proxy named in the environment.
pub fn without_proxy(command: &mut Command) -> &mut Command {
    command
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_code_is_where_the_program_is_that_asks() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("elsewhere/quick/deps/xtask-1");
        assert_eq!(marked(&program), None);
        std::fs::create_dir(home.path().join("elsewhere")).unwrap();
        std::fs::write(home.path().join("elsewhere/CACHEDIR.TAG"), "").unwrap();
        assert_eq!(marked(&program), Some(home.path().join("elsewhere")));
    }

    #[test]
    fn up_compiles_less_than_the_tests() {
        let words = |profile| process::show(&compiler(profile));
        assert!(words(Profile::Quick).ends_with("--package muster --no-default-features"));
        assert!(words(Profile::Dev).ends_with("build --profile dev --bin muster --workspace"));
    }
}
