//! Runs the program with a clean environment.

use std::process::{Command, Output};

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

pub fn command(args: &[&str]) -> Command {
    command_within(&[], args)
}

/// With words in front of it: programs that prepare something, then become this one.
pub fn command_within(words: &[String], args: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_muster");
    let mut command = match words {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    // Nothing of the caller's own settings may shine through.
    command.env_clear().args(args).current_dir(std::env::temp_dir());
    command
}

pub fn run(args: &[&str]) -> Ran {
    finish(command(args))
}

pub fn finish(mut command: Command) -> Ran {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Ran {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}
