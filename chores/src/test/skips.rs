//! Tests that were skipped say so in a line of their own, which is kept here: a test that was not run proves nothing.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process::{self, Heard, Piece};

/// How the line begins. It is written past the test's captured output, so that it is seen when the test passes.
const MARK: &str = "SKIPPED";

/// What has been skipped since somebody asked.
#[derive(Default)]
pub struct Skips(Vec<String>);

impl Skips {
    /// Runs tests, with all that they print.
    pub fn run(&mut self, command: Command, limit: Duration) -> Result<()> {
        let hear = |piece: Piece<'_>| match piece {
            Piece::Line(line) => {
                println!("{line}");
                self.note(line);
            }
            Piece::Passing(text) => {
                print!("{text}\r");
                // Where nobody reads, nothing is to be seen.
                let _ = std::io::stdout().flush();
            }
        };
        process::run_heard(command, Heard::All, limit, hear, || {})
    }

    fn note(&mut self, line: &str) {
        if line.starts_with(MARK) {
            self.0.push(line.to_owned());
        }
    }

    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_that_it_is_skipped_is_kept_and_asked_for_once() {
        let mut script = Command::new("sh");
        script.args([
            "-c",
            "echo test one ... ok; echo 'SKIPPED one: no root' >&2; echo not SKIPPED",
        ]);
        let mut skips = Skips::default();
        skips.run(script, Duration::from_secs(10)).unwrap();
        assert_eq!(skips.take(), ["SKIPPED one: no root"]);
        assert!(skips.take().is_empty());
    }
}
