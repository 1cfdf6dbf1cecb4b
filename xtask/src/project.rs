//! Where things are: the project, the cache outside the clone, and the binaries built from it.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::{process, tools};

/// A cold build of everything on two slow cores takes a good part of this.
const BUILD_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Which build of the binary is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Dev,
    Release,
}

impl Profile {
    fn directory(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

/// The top of the clone this tool was built from.
pub fn root() -> PathBuf {
    let xtask =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
}

/// Built tools and compiled code live here, so that a fresh clone starts warm.
pub fn cache() -> PathBuf {
    let base = env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    base.unwrap_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"))
        .join("muster")
}

/// One directory per clone: compiled code remembers where it was compiled, and cargo would take one clone's for
/// another's. `.ci/run` names it the same way.
pub fn target() -> PathBuf {
    let own = || {
        let root = root();
        let root = root.canonicalize().unwrap_or(root);
        let name = root.to_string_lossy().trim_start_matches('/').replace('/', "-");
        cache().join("targets").join(name)
    };
    env::var_os("CARGO_TARGET_DIR").map_or_else(own, PathBuf::from)
}

/// Where `cargo xtask up` puts the programs it builds.
pub fn programs() -> PathBuf {
    target().join(Profile::Dev.directory())
}

/// Cargo as it should be called for anything that is built: in the project, with the shared target directory.
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

/// Builds the `muster` binary (nothing to do when it is fresh) and says where it is.
pub fn build(profile: Profile) -> Result<PathBuf> {
    let mut command = cargo();
    // The whole workspace decides the features, as in the tests: dependencies are compiled once for both.
    command.args(["build", "--workspace", "--bin", "muster"]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    process::run(&mut command, BUILD_LIMIT)?;
    Ok(binary(profile))
}

/// Builds the `muster` binary so that it needs nothing of the machine it runs on, for container images.
pub fn build_static(profile: Profile) -> Result<PathBuf> {
    let triple = tools::ensure_static_target()?;
    let mut command = cargo();
    command.args([
        "build",
        "--package",
        "muster",
        "--bin",
        "muster",
        "--target",
        &triple,
    ]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    process::run(&mut command, BUILD_LIMIT)?;
    Ok(target().join(triple).join(profile.directory()).join("muster"))
}

/// What the compiler is called through so that only the program itself is linked without the system's libraries.
const STATIC: &str = "#!/bin/sh
case \" $* \" in
*\" --crate-name muster \"*\" --crate-type bin \"*) exec \"$@\" -C target-feature=+crt-static ;;
esac
exec \"$@\"
";

/// The `muster` program as tests use it, but static. All that others have written is there from the tests already, so
/// this takes a fraction of a build for another target. It cannot look up names: the system's C library does that with
/// files beside the program.
pub fn link_static() -> Result<PathBuf> {
    let wrapper = target().join("static.sh");
    fs::create_dir_all(target())?;
    fs::write(&wrapper, STATIC)?;
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
    let mut command = cargo();
    command.args(["build", "--workspace", "--bin", "muster"]);
    command.env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
    process::run(&mut command, BUILD_LIMIT)?;
    let kept = target().join("muster-static");
    fs::copy(binary(Profile::Dev), &kept)?;
    // Others find the program where it was, linked as it was.
    build(Profile::Dev)?;
    Ok(kept)
}

/// Talks to our own servers on loopback must not take a detour through a proxy named in the environment.
pub fn without_proxy(command: &mut Command) -> &mut Command {
    command
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost")
}
