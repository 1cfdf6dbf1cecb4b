//! Which code was measured: figures without it cannot be compared with later ones.

use std::process::Command;

use anyhow::Result;

use crate::{process, project};

/// Enough of its name to be found for years.
const LETTERS: &str = "--short=12";

/// The commit that the clone is at, as a table tells it. `is_built`: whether this run compiles what it measures.
pub fn measured(is_built: bool) -> String {
    match (at(), is_built) {
        (Ok(commit), true) => commit,
        (Ok(commit), false) => format!("{commit}, with programs compiled earlier"),
        (Err(_), _) => "no known commit".to_owned(),
    }
}

fn at() -> Result<String> {
    let name = git(&["rev-parse", LETTERS, "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Ok(told(&name, &changes))
}

fn told(name: &str, changes: &str) -> String {
    let dirty = if changes.trim().is_empty() { "" } else { " (dirty)" };
    format!("{}{dirty}", name.trim())
}

fn git(words: &[&str]) -> Result<String> {
    let text = process::output(Command::new("git").args(words).current_dir(project::root()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_that_nobody_committed_are_told() {
        assert_eq!(told("abc\n", ""), "abc");
        assert_eq!(told("abc\n", " M README.md\n"), "abc (dirty)");
    }
}
