//! The container image: a static program in an otherwise empty root, built without a container engine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::project::{self, Profile};
use crate::{process, static_program, tools};

/// There is one file to copy.
const LIMIT: Duration = Duration::from_secs(5 * 60);

#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask image                                      target/muster-image.tar
  cargo xtask image --name registry.example.com/muster:1
  docker load --input target/muster-image.tar            or: podman load, ctr images import")]
pub struct Args {
    /// The name the image gets
    #[arg(long, value_name = "NAME:TAG", default_value = concat!("muster:", env!("CARGO_PKG_VERSION")))]
    name: String,
    /// The archive to write
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Faster to build, slower to run
    #[arg(long)]
    dev: bool,
}

pub fn command(args: &Args) -> Result<()> {
    let profile = if args.dev { Profile::Dev } else { Profile::Release };
    let image = Image::build(profile, &args.name)?;
    let default = || project::root().join("target/muster-image.tar");
    let output = args.output.clone().unwrap_or_else(default);
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder)?;
    }
    if output.exists() {
        fs::remove_file(&output).with_context(|| format!("replacing {}", output.display()))?;
    }
    image.write(&output)?;
    println!("wrote {} as {}", args.name, output.display());
    Ok(())
}

/// An image in a store of its own, which goes with it.
pub struct Image {
    pub name: String,
    /// How large the program in it is.
    pub program_bytes: u64,
    store: TempDir,
}

impl Image {
    pub fn build(profile: Profile, name: &str) -> Result<Self> {
        tools::ensure_compiler()?;
        Self::of(&static_program::build_static(profile)?, name)
    }

    /// With a program that needs nothing of the system it runs on.
    pub fn of(program: &Path, name: &str) -> Result<Self> {
        tools::ensure_buildah()?;
        let store = tempfile::Builder::new().prefix("muster-image-").tempdir()?;
        let context = store.path().join("context");
        fs::create_dir(&context)?;
        let copy = context.join("muster");
        // What debuggers need is most of the file.
        process::output(Command::new("strip").arg("-o").arg(&copy).arg(program))?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
        let image = Self {
            name: name.to_owned(),
            program_bytes: fs::metadata(&copy)?.len(),
            store,
        };
        let mut build = image.buildah();
        build
            .args(["bud", "--isolation", "chroot", "--tag", name, "--file"])
            .arg(project::root().join("deploy/Dockerfile"))
            .arg(&context);
        process::run(&mut build, LIMIT)?;
        Ok(image)
    }

    /// `buildah` with the store of this image; the plain driver works where no overlay can be mounted.
    pub fn buildah(&self) -> Command {
        let mut command = Command::new("buildah");
        let at = |name: &str| self.store.path().join(name);
        command
            .arg("--root")
            .arg(at("storage"))
            .arg("--runroot")
            .arg(at("run"));
        command.args(["--storage-driver", "vfs"]);
        command
    }

    /// Runs `buildah` and gives back what it printed.
    pub fn ask(&self, words: &[&str]) -> Result<String> {
        let text = process::output(self.buildah().args(words))?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    fn write(&self, output: &Path) -> Result<()> {
        let target = format!("docker-archive:{}:{}", output.display(), self.name);
        process::run(self.buildah().args(["push", &self.name, &target]), LIMIT)
    }
}
