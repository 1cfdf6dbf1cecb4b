//! Extra arguments for coreos-installer: a short list of flags, and values without surprises for a shell.

use super::error::{Checked, Invalid, quoted};

const FIELD: &str = "args";
const FLAGS: [&str; 9] = [
    "--append-karg",
    "--delete-karg",
    "-n",
    "--copy-network",
    "--network-dir",
    "--save-partlabel",
    "--save-partindex",
    "--image-url",
    "--image-file",
];

pub fn installer_args(args: &[String]) -> Checked {
    for argument in args {
        // `--flag=value` is as good as `--flag value`.
        let (word, value) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => (flag, value),
            Some(_) | None => (argument.as_str(), argument.as_str()),
        };
        if word.starts_with('-') && !FLAGS.contains(&word) {
            return Err(Invalid::rule(
                FIELD,
                format!("has the flag {}", quoted(word)),
                format!("use only {}", FLAGS.join(" ")),
            ));
        }
        if !is_value(value) {
            return Err(Invalid::rule(
                FIELD,
                format!("has the value {}", quoted(value)),
                "use printable ASCII without blanks or any of & ` | ? ~ ^ \\",
            ));
        }
    }
    Ok(())
}

/// What the reference lets through. Its pattern has a range from '+' to '=', which also takes in '<' and ';'.
fn is_value(text: &str) -> bool {
    let allowed = |b: u8| {
        b.is_ascii_alphanumeric() || (b'+'..=b'=').contains(&b) || b"@!#$%*()_\"':;{}[],./".contains(&b)
    };
    !text.is_empty() && text.bytes().all(allowed)
}
