//! The container image: what is in it, who it runs as, and that a hub runs from it.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use crate::image::Image;
use crate::project::Profile;
use crate::tools::Unavailable;
use crate::{http, hub, port, process, static_program, wait};

/// The number in the Dockerfile: nobody in particular.
const USER: u32 = 65532;

/// What the image may take beyond its only file: a manifest and some names.
const ROOM_BYTES: u64 = 64 << 10;

/// Where the hub's volume is, without the slash before it.
const DATA: &str = "var/lib/muster";

const START_LIMIT: Duration = Duration::from_secs(60);

/// With the program as tests have it: what we look at here does not depend on how it was compiled.
pub fn quick() -> Result<()> {
    needs_root()?;
    look_into_both(&Image::of(&static_program::link_static()?, "muster:test")?)
}

/// With the program that people deploy, but for its optimisation, which takes minutes more.
pub fn shipped() -> Result<()> {
    needs_root()?;
    look_into_both(&Image::build(Profile::Dev, "muster:test")?)
}

/// The hub's image, and the one of the agent.
fn look_into_both(image: &Image) -> Result<()> {
    look_into(image)?;
    super::reclaim::look_into(image).context("the image of the agent")
}

fn needs_root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(Unavailable("looking into an image without a container engine needs root".into()).into());
    }
    Ok(())
}

fn look_into(image: &Image) -> Result<()> {
    let user = image.ask(&[
        "inspect",
        "--type",
        "image",
        "--format",
        "{{.OCIv1.Config.User}}",
        &image.name,
    ])?;
    ensure!(user == format!("{USER}:{USER}"), "the image runs as {user:?}");
    let container = image.ask(&["from", &image.name])?;
    let root = image.ask(&["mount", &container])?;
    let done = look(image, Path::new(&root)).and_then(|()| serve(Path::new(&root)));
    image.ask(&["umount", &container])?;
    done
}

fn look(image: &Image, root: &Path) -> Result<()> {
    let mut files = Vec::new();
    list(root, root, &mut files)?;
    ensure!(
        files == ["muster"],
        "there is more in the image than the program: {files:?}"
    );
    let archive = tempfile::tempdir()?;
    let layout = format!("oci:{}:test", archive.path().join("layout").display());
    image.ask(&["push", "--disable-compression", &image.name, &layout])?;
    let bytes = size(archive.path())?;
    println!("the image takes {} MiB, without compression", bytes >> 20);
    ensure!(
        bytes <= image.program_bytes + ROOM_BYTES,
        "the image takes {bytes} bytes, its program only {}",
        image.program_bytes
    );
    let version = process::output(inside(root).args(["/muster", "--version"]))?;
    let version = String::from_utf8_lossy(&version);
    ensure!(
        version.starts_with("muster "),
        "the program in the image says {version:?}"
    );
    Ok(())
}

/// A hub in that root, as a user who owns nothing in it but what a pod would mount.
fn serve(root: &Path) -> Result<()> {
    // Where something is mounted a runtime makes a folder, in the image or above it.
    fs::create_dir_all(root.join(DATA))?;
    let volume = tempfile::tempdir()?;
    let data = volume.path();
    std::os::unix::fs::chown(data, Some(USER), Some(USER))?;
    let refused = process::succeeds(&mut mounted(
        root,
        data,
        &["/muster", "serve", "--data-dir", "/elsewhere"],
    ));
    ensure!(!refused, "the program writes to a root that is read-only");
    let port = port::free()?;
    let log = tempfile::NamedTempFile::new()?;
    let listen = format!("127.0.0.1:{port}");
    let mut command = mounted(
        root,
        data,
        &[
            "/muster",
            "serve",
            "--data-dir",
            "/var/lib/muster",
            "--listen",
            &listen,
        ],
    );
    command.stdout(File::create(log.path())?).stderr(log.reopen()?);
    let mut hub = process::Service::start("the hub of the image", &mut command, Signal::TERM)?;
    wait::until("the hub of the image", START_LIMIT, || {
        if let Some(status) = hub.ended()? {
            bail!("it ended ({status})");
        }
        Ok(http::answers(&format!("http://127.0.0.1:{port}/health")).then_some(()))
    })
    .with_context(|| hub::tail(log.path()))?;
    let status = hub.stop()?;
    ensure!(status.success(), "the hub of the image ended with {status}");
    let owned = fs::read_dir(data)?.count();
    ensure!(owned > 0, "the hub wrote nothing to its volume");
    Ok(())
}

/// A command that sees only this root, which is mounted read-only, and a volume in it: as a pod has it. The mounts are its
/// own and go with it.
fn mounted(root: &Path, volume: &Path, words: &[&str]) -> Command {
    let script = format!(
        "mount --bind \"$1\" \"$1\" && mount --bind \"$2\" \"$1/{DATA}\" && mount -o remount,bind,ro \"$1\" &&
         root=$1 && shift 2 && exec chroot --userspec={USER}:{USER} --groups= \"$root\" \"$@\""
    );
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-e",
        "-c",
        &script,
        "sh",
    ]);
    command.arg(root).arg(volume).args(words);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

/// A command that sees only this root.
fn inside(root: &Path) -> Command {
    let mut command = Command::new("chroot");
    command
        .arg(format!("--userspec={USER}:{USER}"))
        .arg("--groups=")
        .arg(root);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

pub fn list(root: &Path, folder: &Path, files: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            list(root, &path, files)?;
        } else {
            files.push(path.strip_prefix(root)?.display().to_string());
        }
    }
    files.sort();
    Ok(())
}

fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        sum += if entry.file_type()?.is_dir() {
            size(&entry.path())?
        } else {
            entry.metadata()?.len()
        };
    }
    Ok(sum)
}
