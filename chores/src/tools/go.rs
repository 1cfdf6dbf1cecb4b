//! Programs written in Go, built once from their modules into the cache.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{apt, turn};
use crate::{process, project};

/// What the modules we build ask for.
const NEEDED: (u32, u32) = (1, 26);

/// The toolchain taken from its module where the machine's own is older.
const TOOLCHAIN: &str = "go1.26.8";

/// The largest, the API server with all it downloads, takes four minutes on two idle cores.
const LIMIT: Duration = Duration::from_secs(40 * 60);

/// A toolchain that is new enough.
pub struct Go {
    program: PathBuf,
}

/// A directory in which something is built, and where the programs go.
pub struct Workshop {
    pub home: PathBuf,
    pub bin: PathBuf,
}

/// What `go mod download -json` tells of a module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Module {
    #[serde(default)]
    pub go_mod: PathBuf,
    #[serde(default)]
    pub dir: PathBuf,
}

/// The directory with the programs of this name, which should tell their versions; built when it is not there yet.
pub fn programs(name: &str, build: impl FnOnce(&Go, &Workshop) -> Result<()>) -> Result<PathBuf> {
    let finished = project::cache().join(name);
    let _turn = turn::take(name)?;
    if finished.exists() {
        return Ok(finished);
    }
    let go = ensure()?;
    println!("building {name} from Go modules, once");
    fs::create_dir_all(project::cache())?;
    let temporary = tempfile::Builder::new()
        .prefix("building-")
        .tempdir_in(project::cache())?;
    let shop = Workshop {
        home: temporary.path().to_owned(),
        bin: temporary.path().join("bin"),
    };
    fs::create_dir(&shop.bin)?;
    build(&go, &shop).with_context(|| format!("building {name}"))?;
    // The directory appears whole.
    fs::rename(&shop.bin, &finished)
        .with_context(|| format!("moving the programs to {}", finished.display()))?;
    Ok(finished)
}

impl Go {
    /// Go in a directory, politely: others use this machine, too.
    fn command(&self, home: &Path) -> Command {
        let mut command = Command::new("nice");
        command.args(["-n", "10"]).arg(&self.program).current_dir(home);
        command
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=mod")
            .env("GOWORK", "off")
            .env("CGO_ENABLED", "0");
        for foreign in ["GOROOT", "GOOS", "GOARCH", "GOBIN"] {
            command.env_remove(foreign);
        }
        command
    }

    /// Runs Go to its end.
    pub fn run(&self, home: &Path, words: &[&str]) -> Result<()> {
        process::run(self.command(home).args(words), LIMIT)
    }

    /// Installs the program of a module that names no replacements.
    pub fn install(&self, shop: &Workshop, module: &str) -> Result<()> {
        let mut command = self.command(&shop.home);
        command.args(["install", "-p", "2", "-trimpath", "-ldflags", "-s -w", module]);
        process::run(command.env("GOBIN", &shop.bin), LIMIT)
    }

    /// Fetches a module and says where it is.
    pub fn download(&self, home: &Path, module: &str) -> Result<Module> {
        let told = process::output(self.command(home).args(["mod", "download", "-json", module]))?;
        serde_json::from_slice(&told).with_context(|| format!("go said nothing useful about {module}"))
    }
}

fn ensure() -> Result<Go> {
    if let Some(found) = newest_here() {
        return of_age(found);
    }
    apt::install(&["golang"])?;
    of_age(newest_here().context("the package golang brought no `go`")?)
}

/// The newest of the toolchains people usually have.
fn newest_here() -> Option<(PathBuf, (u32, u32))> {
    ["go", "/usr/local/go/bin/go", "/usr/lib/go/bin/go"]
        .into_iter()
        .filter_map(|program| Some((program.into(), version_of(Path::new(program))?)))
        .max_by_key(|(_, version)| *version)
}

fn version_of(program: &Path) -> Option<(u32, u32)> {
    let mut asked = Command::new(program);
    asked.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local");
    let text = process::output(&mut asked).ok()?;
    parse_version(&String::from_utf8_lossy(&text))
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().strip_prefix("go")?.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?;
    let minor = minor.split(|c: char| !c.is_ascii_digit()).next()?;
    Some((major, minor.parse().ok()?))
}

fn of_age((program, version): (PathBuf, (u32, u32))) -> Result<Go> {
    let there = Go { program };
    if version >= NEEDED {
        return Ok(there);
    }
    println!("Go {}.{} is too old, fetching {TOOLCHAIN}", version.0, version.1);
    let newer = fetch(&there)?;
    match version_of(&newer) {
        Some(version) if version >= NEEDED => Ok(Go { program: newer }),
        found => bail!("the fetched Go toolchain says it is {found:?}"),
    }
}

/// Toolchains are modules like others, so any Go can fetch any later one; only the permissions are lost on the way.
fn fetch(go: &Go) -> Result<PathBuf> {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let home = tempfile::tempdir()?;
    let module = format!("golang.org/toolchain@v0.0.1-{TOOLCHAIN}.linux-{arch}");
    let root = go.download(home.path(), &module)?.dir;
    for folder in ["bin".to_owned(), format!("pkg/tool/linux_{arch}")] {
        let folder = root.join(folder);
        let entries = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o555))?;
        }
    }
    Ok(root.join("bin/go"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(parse_version("go1.26.8\n"), Some((1, 26)));
        assert_eq!(parse_version("go1.27rc1\n"), Some((1, 27)));
        assert_eq!(parse_version("devel +abc"), None);
        assert!(parse_version("go1.9") < parse_version("go1.26"));
    }
}
