//! Runs a foreign program with nothing of ours but what it needs, for a limited time, and hears what it complains about.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

/// The end of a complaint tells the cause; more than this nobody reads.
const TAIL: usize = 2000;
/// Much more is kept until secrets are struck out of it: half of one could not be recognised.
const KEPT: usize = 256 * 1024;
/// A program that has ended may have left its stderr to somebody who has not.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub struct Call<'a> {
    pub program: &'a Path,
    pub args: &'a [&'a str],
    pub dir: &'a Path,
    pub env: &'a [(&'a str, String)],
    pub time: Duration,
}

pub struct Ended {
    pub status: ExitStatus,
    pub complaint: String,
}

pub enum RunError {
    CannotStart(std::io::Error),
    /// With what it complained about until then.
    TookTooLong(String),
}

/// Dropped while the program runs, this ends the program and everything it started.
pub async fn run(call: &Call<'_>) -> Result<Ended, RunError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = Command::new(call.program);
    command
        .args(call.args)
        .current_dir(call.dir)
        .env_clear()
        .env("PATH", path)
        .env("HOME", call.dir)
        .envs(call.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let mut running = Running(command.spawn().map_err(RunError::CannotStart)?);
    let mut tail = Tail::default();
    let stderr = running.0.stderr.take();
    let ended = async {
        let Some(mut stderr) = stderr else {
            return running.0.wait().await;
        };
        let status = tokio::select! {
            status = running.0.wait() => status,
            () = tail.fill(&mut stderr) => running.0.wait().await,
        };
        // What was printed last may still be on its way.
        let _ = tokio::time::timeout(LAST_WORDS, tail.fill(&mut stderr)).await;
        status
    };
    match tokio::time::timeout(call.time, ended).await {
        Ok(Ok(status)) => Ok(Ended {
            status,
            complaint: tail.text(),
        }),
        Ok(Err(error)) => Err(RunError::CannotStart(error)),
        Err(_) => Err(RunError::TookTooLong(tail.text())),
    }
}

/// A program and everything it started, ended together.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // None once it has ended by itself: then its number may be somebody else's.
        let leader = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(leader) = leader.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin)) {
        let mut buffer = [0; 4096];
        loop {
            match from.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    self.0.extend_from_slice(&buffer[..read]);
                    // Cut in large steps, not with every line.
                    if self.0.len() > 2 * KEPT {
                        self.0.drain(..self.0.len() - KEPT);
                    }
                }
            }
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim().to_owned()
    }
}

/// The end of a text, from the beginning of a line where there is one.
pub fn tail(text: &str) -> &str {
    let Some(from) = text.len().checked_sub(TAIL) else {
        return text;
    };
    let from = (from..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let end = &text[from..];
    end.split_once('\n').map_or(end, |(_, lines)| lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_complaint_begins_with_a_line() {
        let text = format!("{}\n{}", "x".repeat(TAIL), "y".repeat(TAIL - 10));
        assert_eq!(tail(&text), "y".repeat(TAIL - 10));
        assert_eq!(tail("short"), "short");
        assert_eq!(tail(&"ä".repeat(TAIL)).chars().next(), Some('ä'));
    }
}
