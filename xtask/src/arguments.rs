//! The command line: which chore, and what `up` and `down` are asked for. The other chores read their own words.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::Arg::{Long, Short, Value};
use lexopt::{Error, Parser, ValueExt};
use xtask::CHORES;

use crate::up::{DATA_DIR, Down, Up};

/// What is to be done.
#[derive(Debug, PartialEq)]
pub enum Call {
    Help(String),
    Up(Up),
    Down(Down),
    Bin,
    /// With the name of the chore as the first word.
    Chore(Vec<OsString>),
}

const UP: &str = "Build and start Muster with its embedded database and a small simulated fleet";
const DOWN: &str = "Stop what `up --detach` started";
const BIN: &str = "Print where the built programs are, for the PATH";
const HELP: &str = "  -h, --help  Print help\n";

const UP_HELP: &str = "\
Usage: cargo xtask up [OPTIONS]

Options:
      --listen <ADDR:PORT>  Where the hub listens [default: 127.0.0.1:8090]
      --data-dir <DIR>      Where the hub keeps its database and its log [default: ./muster-data]
      --hosts <N>           How many hosts to simulate [default: 6]
      --no-fleet            Start the hub alone, without simulated hosts
      --detach              Leave everything running in the background and return when it is ready
  -h, --help                Print help

Examples:
  cargo xtask up                      hub on http://127.0.0.1:8090 and six simulated hosts
  cargo xtask up --hosts 40           a bigger fleet
  cargo xtask up --no-fleet           the hub alone
  cargo xtask up --detach             return when the hosts are there; `cargo xtask down` stops it all
";

const DOWN_HELP: &str = "\
Usage: cargo xtask down [OPTIONS]

Options:
      --data-dir <DIR>  The data directory given to `cargo xtask up --detach` [default: ./muster-data]
  -h, --help            Print help
";

fn help() -> String {
    let own = [("up", UP), ("down", DOWN), ("bin", BIN)];
    let last = [(
        "help",
        "Print this message or the help of the given subcommand(s)",
    )];
    let all = own.iter().chain(CHORES).chain(&last);
    let lines: String = all
        .map(|(name, about)| format!("  {name:<6}  {about}\n"))
        .collect();
    format!(
        "Chores of the Muster project

Usage: cargo xtask <COMMAND>

Commands:
{lines}
Options:
{HELP}
Examples:
  cargo xtask up           Muster with a small simulated fleet, on http://127.0.0.1:8090
  cargo xtask test         all checks, as CI runs them
  cargo xtask gen          rewrite the generated documents
  cargo xtask image        the container image as an archive

Missing tools are installed by package name (apt-get, pip in a virtual environment).
Compiled code is in the clone's `target`, tools are in ${{XDG_CACHE_HOME:-~/.cache}}/muster.
"
    )
}

pub fn parse(mut words: Parser) -> Result<Call, Error> {
    match words.next()? {
        None | Some(Short('h') | Long("help")) => Ok(Call::Help(help())),
        Some(Value(name)) => chore(&name.string()?, words),
        Some(other) => Err(other.unexpected()),
    }
}

fn chore(name: &str, mut words: Parser) -> Result<Call, Error> {
    match name {
        "up" => up(words),
        "down" => down(words),
        "bin" => bin(words),
        "help" => {
            let about: Vec<OsString> = words.raw_args()?.collect();
            match about.first().and_then(|first| first.to_str()) {
                None => Ok(Call::Help(help())),
                // The words after it say which part of its help.
                Some(name) if is_chore(name) => {
                    Ok(Call::Chore(std::iter::once("help".into()).chain(about).collect()))
                }
                Some(name) => chore(name, Parser::from_args(["--help"])),
            }
        }
        name if is_chore(name) => {
            let rest = words.raw_args()?;
            Ok(Call::Chore(std::iter::once(name.into()).chain(rest).collect()))
        }
        name => Err(format!("unrecognized subcommand '{name}'").into()),
    }
}

fn is_chore(name: &str) -> bool {
    CHORES.iter().any(|(known, _)| *known == name)
}

fn up(mut words: Parser) -> Result<Call, Error> {
    let mut up = Up::default();
    while let Some(word) = words.next()? {
        match word {
            Long("listen") => up.listen = words.value()?.string()?,
            Long("data-dir") => up.data_dir = words.value()?.into(),
            Long("hosts") => up.hosts = words.value()?.parse()?,
            Long("no-fleet") => up.no_fleet = true,
            Long("detach") => up.detach = true,
            Short('h') | Long("help") => return Ok(Call::Help(format!("{UP}\n\n{UP_HELP}"))),
            Short(_) | Long(_) | Value(_) => return Err(word.unexpected()),
        }
    }
    Ok(Call::Up(up))
}

fn down(mut words: Parser) -> Result<Call, Error> {
    let mut data_dir = PathBuf::from(DATA_DIR);
    while let Some(word) = words.next()? {
        match word {
            Long("data-dir") => data_dir = words.value()?.into(),
            Short('h') | Long("help") => return Ok(Call::Help(format!("{DOWN}\n\n{DOWN_HELP}"))),
            Short(_) | Long(_) | Value(_) => return Err(word.unexpected()),
        }
    }
    Ok(Call::Down(Down { data_dir }))
}

fn bin(mut words: Parser) -> Result<Call, Error> {
    match words.next()? {
        None => Ok(Call::Bin),
        Some(Short('h') | Long("help")) => {
            let usage = format!("{BIN}\n\nUsage: cargo xtask bin\n\nOptions:\n{HELP}");
            Ok(Call::Help(usage))
        }
        Some(word) => Err(word.unexpected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Call, String> {
        parse(Parser::from_args(words.split_whitespace())).map_err(|error| error.to_string())
    }

    fn helps(words: &str) -> String {
        match read(words) {
            Ok(Call::Help(text)) => text,
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn what_up_is_asked_for_is_understood() {
        assert_eq!(read("up"), Ok(Call::Up(Up::default())));
        let wanted = Up {
            listen: "127.0.0.1:1".into(),
            data_dir: "d".into(),
            hosts: 4,
            no_fleet: true,
            detach: true,
        };
        assert_eq!(
            read("up --listen 127.0.0.1:1 --data-dir=d --hosts 4 --no-fleet --detach"),
            Ok(Call::Up(wanted))
        );
        assert_eq!(
            read("down --data-dir d"),
            Ok(Call::Down(Down { data_dir: "d".into() }))
        );
        assert_eq!(read("bin"), Ok(Call::Bin));
    }

    #[test]
    fn words_of_other_chores_are_left_to_them() {
        let words = |words: &str| words.split_whitespace().map(OsString::from).collect();
        for line in ["test --only fmt --list", "bench hub --help", "help bench hub"] {
            assert_eq!(read(line), Ok(Call::Chore(words(line))));
        }
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (line, word) in [
            ("pu", "pu"),
            ("up --host 4", "--host"),
            ("up --hosts four", "four"),
            ("up --hosts", "--hosts"),
            ("down now", "now"),
            ("bin --long", "--long"),
            ("--version", "--version"),
        ] {
            let refusal = read(line).unwrap_err();
            assert!(refusal.contains(word), "{line}: {refusal}");
        }
    }

    #[test]
    fn help_names_every_chore_and_every_flag() {
        let all = helps("--help");
        assert_eq!(all, helps(""));
        assert_eq!(all, helps("help"));
        for name in ["up", "down", "bin", "test", "gen", "image", "replay", "bench"] {
            assert!(all.contains(&format!("\n  {name} ")), "{name}: {all}");
        }
        for flag in ["--listen", "--data-dir", "--hosts", "--no-fleet", "--detach"] {
            assert!(helps("up --help").contains(flag));
        }
        assert_eq!(helps("up -h"), helps("help up"));
        assert!(helps("down --help").contains(DATA_DIR));
        assert!(helps("bin --help").contains(BIN));
    }
}
