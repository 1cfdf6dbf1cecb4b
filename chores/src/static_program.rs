//! The `muster` program so that it needs nothing of the machine it runs on, for container images.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::Result;

use xtask::project::{BUILD_LIMIT, Profile, binary, build, cargo, compiler, target};

use crate::{process, tools};

/// For another target, which compiles everything anew.
pub fn build_static(profile: Profile) -> Result<PathBuf> {
    let triple = tools::ensure_static_target()?;
    let mut command = cargo();
    command.args(["build", "--package", "muster", "--bin", "muster"]);
    command.args(["--profile", profile.name(), "--target", &triple]);
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
    let mut command = compiler(Profile::Dev);
    command.env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
    process::run(&mut command, BUILD_LIMIT)?;
    let kept = target().join("muster-static");
    fs::copy(binary(Profile::Dev), &kept)?;
    // Others find the program where it was, linked as it was.
    build(Profile::Dev)?;
    Ok(kept)
}
