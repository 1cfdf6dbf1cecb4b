//! Lets coreos-installer write the disk where the image brings it along.
//!
//! It checks signatures, where there are any, and knows nothing of sums. An image with a sum is therefore fetched and
//! checked here before the program is started, and handed over as a file if there is room to keep it.

use super::image::Image;
use super::report::Ended;
use super::{Slot, check, spool};
use crate::collect::Machine;
use crate::note;
use crate::steps::Context;
use anyhow::{Context as _, ensure};
use muster_contract::v2::agent::args::InstallArgs;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

const PROGRAM: &str = "coreos-installer";
/// The program itself gives up at the first fault of a download; so many are bridged with growing pauses.
const FETCH_RETRIES: &str = "10";
/// Between looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(500);

/// Where the program is, if it is there.
pub fn program(machine: &Machine) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| machine.path(&folder.join(PROGRAM).to_string_lossy()))
        .find(|file| file.is_file())
}

/// What the program writes.
#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// What the medium brings, or what the order's other arguments say.
    Own,
    /// Checked, and kept here.
    File(PathBuf),
    Url {
        url: String,
        /// Neither checked here nor signed, or checked here and therefore not to be checked again.
        is_unsigned: bool,
    },
}

/// One try: everything is fetched and checked that can be, then the hub and the disk are asked once more, then it runs.
pub fn install(
    context: &Context,
    order: &InstallArgs,
    (program, image, config): (&Path, &Image, &[u8]),
    mut tell: impl FnMut(u64),
) -> Result<(), Ended> {
    let folder = Folder::new()?;
    let ignition = folder.0.join("host.ign");
    write_private(&ignition, config).context("cannot hand over the config of this host")?;
    let has_sum = !image.url.is_empty() && !image.sha256.is_empty();
    let origin = origin(context, image, &folder.0, |at| tell(at / 2))?;
    let disk = check::disk(context, order)?;
    let disk = context.machine.path(&disk.path);
    let args = arguments(image, &origin, &ignition, &disk);
    let tell = |at: u64| tell(if has_sum { 50 + at / 2 } else { at });
    Ok(run(program, &context.shared.install, &args, tell)?)
}

fn origin(context: &Context, image: &Image, folder: &Path, tell: impl FnMut(u64)) -> anyhow::Result<Origin> {
    let url = image.url.clone();
    if url.is_empty() {
        return Ok(Origin::Own);
    }
    if image.sha256.is_empty() {
        let signature = context.hub.http.head(format!("{url}.sig")).call();
        let is_signed = signature.is_ok_and(|answer| answer.status().is_success());
        if !is_signed {
            note!("{url} has neither a sum nor a signature: it is written unchecked");
        }
        return Ok(Origin::Url {
            url,
            is_unsigned: !is_signed,
        });
    }
    Ok(match fetch(context, image, folder, tell)? {
        Some(file) => Origin::File(file),
        None => Origin::Url {
            url,
            is_unsigned: true,
        },
    })
}

/// Reads the whole image and checks its sum. What there is room for is kept in the folder, under its own name, because
/// the program may go by that.
fn fetch(
    context: &Context,
    image: &Image,
    folder: &Path,
    mut tell: impl FnMut(u64),
) -> anyhow::Result<Option<PathBuf>> {
    let name = image.url.split(['?', '#']).next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let path = folder.join(format!("image-{name}"));
    let mut room = spool::room(&context.machine);
    let mut kept = File::create(&path).ok();
    let mut source = image.fetch(context);
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = source.read(&mut buffer).context("cannot read the image")?;
        if length == 0 {
            break;
        }
        let left = room.checked_sub(length as u64);
        let fits = left.is_some_and(|_| {
            kept.as_mut()
                .is_some_and(|file| file.write_all(&buffer[..length]).is_ok())
        });
        room = left.unwrap_or_default();
        if !fits && kept.take().is_some() {
            std::fs::remove_file(&path)?;
        }
        source.percent().into_iter().for_each(&mut tell);
    }
    image.check_sum(&source.finish().context("cannot read the image to its end")?)?;
    Ok(kept.map(|_| path))
}

fn arguments(image: &Image, origin: &Origin, ignition: &Path, disk: &Path) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec!["install".into(), "--ignition-file".into(), ignition.into()];
    args.extend(image.args.iter().map(OsString::from));
    let mut add = |flag: &str, value: Option<OsString>| {
        // The program refuses an argument given twice.
        if !image.has(flag) {
            args.push(flag.into());
            args.extend(value);
        }
    };
    match origin {
        Origin::Own => {}
        Origin::File(path) => {
            add("--image-file", Some(path.into()));
            add("--insecure", None);
        }
        Origin::Url { url, is_unsigned } => {
            add("--image-url", Some(url.into()));
            add("--fetch-retries", Some(FETCH_RETRIES.into()));
            if *is_unsigned {
                add("--insecure", None);
            }
        }
    }
    args.push(disk.into());
    args
}

/// Runs it; `tell` gets the percentages it prints.
fn run(program: &Path, slot: &Slot, args: &[OsString], mut tell: impl FnMut(u64)) -> anyhow::Result<()> {
    let mut child = Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let errors = child.stderr.take().context("cannot read its output")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || read_lines(errors, &sender));
    let mut last = String::new();
    loop {
        if slot.is_cancelled() {
            let _ = crate::sys::terminate(child.id());
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => match percent(&line) {
                Some(percent) => tell(percent),
                None => last = line,
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "coreos-installer ended with {status}: {last}");
    Ok(())
}

/// A line that shows progress ends with a carriage return.
fn read_lines(mut errors: ChildStderr, lines: &mpsc::Sender<String>) {
    let mut line = Vec::new();
    let mut buffer = [0; 4096];
    let send = |line: &mut Vec<u8>| {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        line.clear();
        text.is_empty() || lines.send(text).is_ok()
    };
    while let Ok(length @ 1..) = errors.read(&mut buffer) {
        for byte in &buffer[..length] {
            match byte {
                b'\r' | b'\n' if !send(&mut line) => return,
                b'\r' | b'\n' => {}
                byte => line.push(*byte),
            }
        }
    }
    send(&mut line);
}

/// For root's eyes only, and gone with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("muster-agent-{}", uuid::Uuid::new_v4().simple()));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The config holds secrets.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)
}

/// `Read disk 1.1 GiB/2.5 GiB (44%)`.
fn percent(line: &str) -> Option<u64> {
    let (_, rest) = line.rsplit_once('(')?;
    rest.split_once("%)")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(image: &Image, origin: &Origin) -> String {
        let args = arguments(image, origin, Path::new("/x.ign"), Path::new("/dev/vda"));
        args.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn percentages_are_read_from_its_output() {
        assert_eq!(percent("> Read disk 1.1 GiB/2.5 GiB (44%)   "), Some(44));
        assert_eq!(percent("Installing Fedora CoreOS (x86_64)"), None);
        assert_eq!(percent(""), None);
    }

    #[test]
    fn signatures_are_left_unchecked_only_where_there_are_none() {
        let image = Image {
            args: vec!["-n".into()],
            ..Image::default()
        };
        assert_eq!(
            words(&image, &Origin::Own),
            "install --ignition-file /x.ign -n /dev/vda"
        );
        let signed = Origin::Url {
            url: "http://h/os".into(),
            is_unsigned: false,
        };
        assert_eq!(
            words(&image, &signed),
            "install --ignition-file /x.ign -n --image-url http://h/os --fetch-retries 10 /dev/vda"
        );
        let unsigned = Origin::Url {
            url: "http://h/os".into(),
            is_unsigned: true,
        };
        assert!(words(&image, &unsigned).contains("--insecure"));
        let file = words(&image, &Origin::File("/tmp/os.xz".into()));
        assert!(file.contains("--image-file /tmp/os.xz --insecure"), "{file}");
    }

    #[test]
    fn nothing_is_said_twice() {
        let image = Image {
            args: vec!["--fetch-retries=infinite".into(), "--insecure".into()],
            ..Image::default()
        };
        let origin = Origin::Url {
            url: "http://h/os".into(),
            is_unsigned: true,
        };
        let told = words(&image, &origin);
        assert_eq!(told.matches("--fetch-retries").count(), 1, "{told}");
        assert_eq!(told.matches("--insecure").count(), 1, "{told}");
    }

    fn shell(script: &str) -> [OsString; 2] {
        ["-c".into(), script.into()]
    }

    #[test]
    fn its_last_words_are_told_when_it_fails() {
        let script = "printf 'Read disk 1/2 (50%%)\\rError: no such disk\\n' >&2; exit 1";
        let mut seen = Vec::new();
        let error = run(
            Path::new("/bin/sh"),
            &Slot::default(),
            &shell(script),
            |percent| seen.push(percent),
        )
        .unwrap_err();
        assert!(error.to_string().contains("no such disk"), "{error}");
        assert_eq!(seen, [50]);
    }

    #[test]
    fn one_that_says_nothing_is_stopped_all_the_same() {
        let slot = Slot::default();
        assert!(slot.take());
        slot.cancel();
        let error = run(Path::new("/bin/sh"), &slot, &shell("exec sleep 600"), |_| ()).unwrap_err();
        assert!(error.to_string().contains("signal"), "{error}");
    }
}
