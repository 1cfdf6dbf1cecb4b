//! Extra arguments for coreos-installer: a short list of flags, and values without surprises for a shell.
//!
//! What stands by itself would be the disk to install to, which the hub chooses, or a second one: refused.

use super::error::{Checked, Invalid, quoted};

const FIELD: &str = "args";
/// The flags, and whether a value belongs to each.
const FLAGS: [(&str, bool); 9] = [
    ("--append-karg", true),
    ("--delete-karg", true),
    ("-n", false),
    ("--copy-network", false),
    ("--network-dir", true),
    ("--save-partlabel", true),
    ("--save-partindex", true),
    ("--image-url", true),
    ("--image-file", true),
];

pub fn installer_args(args: &[String]) -> Checked {
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        // `--flag=value` is as good as `--flag value`.
        let (word, joined) = match argument.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (argument, None),
        };
        match (takes_value(argument, word)?, joined) {
            (true, Some(given)) => value(word, Some(given))?,
            (true, None) => value(word, rest.next().filter(|next| !next.starts_with('-')))?,
            (false, None) => {}
            (false, Some(_)) => {
                return Err(refused(
                    format!("has a value for {word}"),
                    format!("give {word} alone"),
                ));
            }
        }
    }
    Ok(())
}

fn takes_value(argument: &str, word: &str) -> Checked<bool> {
    let names = || FLAGS.map(|(name, _)| name).join(" ");
    if !argument.starts_with('-') {
        return Err(refused(
            format!("has {} without a flag before it", quoted(argument)),
            format!(
                "use only {}; the disk is chosen with disks_selected_config",
                names()
            ),
        ));
    }
    let known = FLAGS.iter().find(|(flag, _)| *flag == word);
    known.map(|(_, takes_value)| *takes_value).ok_or_else(|| {
        refused(
            format!("has the flag {}", quoted(word)),
            format!("use only {}", names()),
        )
    })
}

fn value(flag: &str, given: Option<&str>) -> Checked {
    match given {
        Some(text) if is_value(text) => Ok(()),
        Some(text) => Err(refused(
            format!("has the value {}", quoted(text)),
            "use printable ASCII without blanks or any of & ` | ? ~ ^ \\",
        )),
        None => Err(refused(
            format!("has no value for {flag}"),
            format!("give it as the next argument, or as {flag}=value"),
        )),
    }
}

fn refused(problem: String, fix: impl Into<String>) -> Invalid {
    Invalid::rule(FIELD, problem, fix)
}

/// What the reference lets through. Its pattern has a range from '+' to '=', which also takes in '<' and ';'.
fn is_value(text: &str) -> bool {
    let allowed = |b: u8| {
        b.is_ascii_alphanumeric() || (b'+'..=b'=').contains(&b) || b"@!#$%*()_\"':;{}[],./".contains(&b)
    };
    !text.is_empty() && text.bytes().all(allowed)
}
