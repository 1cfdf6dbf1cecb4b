//! Child processes: run one to its end, or keep one as a service that is stopped when its guard is dropped.

use std::ffi::OsStr;
use std::io::{PipeReader, Read, pipe};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::wait;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// A service that has not ended this long after being asked to is killed.
const GRACE: Duration = Duration::from_secs(20);

/// From here on Ctrl-C and a polite kill only raise a flag, so that every guard gets to stop its process.
pub fn catch_signals() -> Result<()> {
    let flag = INTERRUPTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(flag)).context("cannot listen for signals")?;
    }
    Ok(())
}

pub fn interrupted() -> bool {
    INTERRUPTED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Runs a command to its end; an exit code other than 0, an interrupt or the time limit is an error.
///
/// The command gets a process group of its own: what it started ends with it.
pub fn run(command: &mut Command, limit: Duration) -> Result<()> {
    let shown = show(command);
    let child = command.stdin(Stdio::null()).process_group(0).spawn();
    let child = child.with_context(|| format!("cannot start `{shown}`"))?;
    let mut group = Group { child };
    let ended = wait::until(&format!("`{shown}`"), limit, || Ok(group.child.try_wait()?));
    let status = ended?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// What of a command is listened to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    Errors,
    /// Both outputs, in the order in which they were written.
    All,
}

/// A piece of what a command wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece<'a> {
    Line(&'a str),
    /// What the next piece would overwrite on a terminal.
    Passing(&'a str),
}

/// Like [`run`], for a command that is listened to: `hear` gets every piece at once, `meanwhile` is called until the end.
pub fn run_heard(
    mut command: Command,
    heard: Heard,
    limit: Duration,
    mut hear: impl FnMut(Piece<'_>),
    mut meanwhile: impl FnMut(),
) -> Result<()> {
    let shown = show(&command);
    let (said, out) = pipe().context("making a pipe")?;
    // Something that the command leaves behind may keep its end open: nobody waits for that.
    fcntl_setfl(&said, OFlags::NONBLOCK).context("preparing a pipe")?;
    if heard == Heard::All {
        command.stdout(out.try_clone()?);
    }
    command.stdin(Stdio::null()).stderr(out).process_group(0);
    let child = command
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let mut group = Group { child };
    let mut ear = Ear {
        said,
        pending: Vec::new(),
    };
    let status = wait::until(&format!("`{shown}`"), limit, || {
        // Asked first: what was said before the end is there after it.
        let ended = group.child.try_wait()?;
        ear.listen(&mut hear);
        meanwhile();
        Ok(ended)
    })?;
    ear.rest(&mut hear);
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Takes what is said apart.
struct Ear {
    said: PipeReader,
    /// The beginning of a piece.
    pending: Vec<u8>,
}

impl Ear {
    /// All that can be heard at the moment.
    fn listen(&mut self, hear: &mut impl FnMut(Piece<'_>)) {
        let mut bytes = [0; 8192];
        while let Ok(length @ 1..) = self.said.read(&mut bytes) {
            self.pending.extend_from_slice(&bytes[..length]);
            while let Some(end) = self.pending.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                let is_line = self.pending[end] == b'\n';
                let text = String::from_utf8_lossy(&self.pending[..end]).into_owned();
                self.pending.drain(..=end);
                hear(if is_line {
                    Piece::Line(&text)
                } else {
                    Piece::Passing(&text)
                });
            }
        }
    }

    /// What was said without an end.
    fn rest(self, hear: &mut impl FnMut(Piece<'_>)) {
        let rest = String::from_utf8_lossy(&self.pending);
        if !rest.trim().is_empty() {
            hear(Piece::Line(&rest));
        }
    }
}

/// Runs a command quietly and gives back what it printed; its error output becomes the error.
pub fn output(command: &mut Command) -> Result<Vec<u8>> {
    let shown = show(command);
    let done = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !done.status.success() {
        bail!(
            "`{shown}` failed ({}):\n{}",
            done.status,
            String::from_utf8_lossy(&done.stderr).trim_end()
        );
    }
    Ok(done.stdout)
}

/// Whether the command can be started and ends well; nothing is printed.
pub fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The command as a person would type it, for messages.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let words = program.file_name().into_iter().chain(command.get_args());
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// A command whose process is told to end when this process dies, even when it dies without a chance to clean up.
pub fn ending_with_us(program: impl AsRef<OsStr>) -> Command {
    if !Path::new("/usr/bin/setpriv").exists() {
        return Command::new(program);
    }
    let mut command = Command::new("/usr/bin/setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program);
    command
}

/// Asks one process to end, by its id.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .context("not a process id")?;
    rustix::process::kill_process(pid, signal).context("cannot signal the process")
}

/// A running server; dropping it stops it and waits for its end.
pub struct Service {
    name: &'static str,
    child: Child,
    polite: Signal,
}

impl Service {
    pub fn start(name: &'static str, command: &mut Command, polite: Signal) -> Result<Self> {
        let shown = show(command);
        let child = command.stdin(Stdio::null()).process_group(0).spawn();
        Ok(Self {
            name,
            child: child.with_context(|| format!("cannot start `{shown}`"))?,
            polite,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Asks the service to end and says how it did.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        signal(self.child.id(), self.polite)?;
        let started = std::time::Instant::now();
        while started.elapsed() < GRACE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            wait::pause(Duration::from_millis(10));
        }
        self.child.kill()?;
        self.child.wait()?;
        bail!(
            "{} did not stop within {} s and was killed",
            self.name,
            GRACE.as_secs()
        )
    }

    /// Lets the process live on without us; its id is the only handle left.
    pub fn detach(self) -> u32 {
        let id = self.child.id();
        std::mem::forget(self);
        id
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("xtask: {error:#}");
        }
    }
}

/// A command with everything it started; dropping it before its end ends them all.
struct Group {
    child: Child,
}

impl Drop for Group {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else {
            return;
        };
        // A group that is already gone is what we want.
        let _ = rustix::process::kill_process_group(group, Signal::TERM);
        let started = std::time::Instant::now();
        while started.elapsed() < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            wait::pause(Duration::from_millis(10));
        }
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_in_the_error() {
        let error = run(&mut Command::new("false"), Duration::from_secs(10)).unwrap_err();
        assert!(error.to_string().contains("`false` failed"), "{error}");
    }

    #[test]
    fn a_command_over_its_time_is_ended_with_what_it_started() {
        let marker = tempfile::tempdir().unwrap();
        let file = marker.path().join("pid");
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let error = run(
            Command::new("sh").args(["-c", &script]),
            Duration::from_millis(300),
        )
        .unwrap_err();
        assert!(error.to_string().contains("did not happen"), "{error}");
        let pid = std::fs::read_to_string(&file).unwrap();
        let gone = wait::until("the child's end", Duration::from_secs(10), || {
            Ok(is_gone(pid.trim()).then_some(()))
        });
        gone.unwrap();
    }

    #[test]
    fn both_outputs_are_heard_in_order_and_what_is_written_over_is_told_apart() {
        let mut script = Command::new("sh");
        script.args(["-c", "printf 'one\\ntwo\\rthree\\n'; printf 'four' >&2"]);
        let mut heard = Vec::new();
        let hear = |piece: Piece<'_>| heard.push(format!("{piece:?}"));
        run_heard(script, Heard::All, Duration::from_secs(10), hear, || {}).unwrap();
        assert_eq!(
            heard,
            [
                r#"Line("one")"#,
                r#"Passing("two")"#,
                r#"Line("three")"#,
                r#"Line("four")"#
            ]
        );
    }

    #[test]
    fn nobody_waits_for_what_a_command_leaves_behind() {
        let mut script = Command::new("sh");
        script.args(["-c", "sleep 600 & echo $!"]);
        let mut left = String::new();
        let hear = |piece: Piece<'_>| {
            if let Piece::Line(pid) = piece {
                left = pid.to_owned();
            }
        };
        run_heard(script, Heard::All, Duration::from_secs(30), hear, || {}).unwrap();
        assert!(!is_gone(&left));
        signal(left.parse().unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn a_command_that_is_heard_and_fails_is_an_error_after_its_last_word() {
        let mut script = Command::new("sh");
        script.args(["-c", "echo why >&2; exit 3"]);
        let mut heard = String::new();
        let hear = |piece: Piece<'_>| heard += &format!("{piece:?}");
        let error = run_heard(script, Heard::Errors, Duration::from_secs(10), hear, || {}).unwrap_err();
        assert!(error.to_string().contains("failed"), "{error}");
        assert_eq!(heard, r#"Line("why")"#);
    }

    #[test]
    fn a_dropped_service_is_gone() {
        let service = Service::start("sleeper", ending_with_us("sleep").arg("600"), Signal::TERM).unwrap();
        let pid = service.child.id().to_string();
        assert!(!is_gone(&pid));
        drop(service);
        assert!(is_gone(&pid));
    }

    /// Gone or only waiting for whoever adopted it to collect its exit code.
    fn is_gone(pid: &str) -> bool {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return true;
        };
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| rest.trim_start().starts_with('Z'))
    }
}
