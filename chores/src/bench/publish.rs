//! Puts a table into the documentation, between the two lines that are there for it.

use std::fs;

use anyhow::{Context, Result, bail};

use crate::project;

const PAGE: &str = "docs/benchmarks.md";
/// One run shows a figure, two show that it varies, and only of three one is in the middle.
const RUNS: u32 = 3;

/// The bench whose figures they are, as its command is called.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    Hub,
    Operator,
}

impl Of {
    #[cfg(test)]
    const ALL: [Self; 2] = [Self::Hub, Self::Operator];

    fn word(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Operator => "operator",
        }
    }

    fn begin(self) -> String {
        let word = self.word();
        format!("<!-- figures of the {word}: written by `cargo xtask bench {word} --publish` -->\n")
    }

    fn end(self) -> String {
        format!("<!-- end of the figures of the {} -->", self.word())
    }
}

/// Said before an hour of measuring, not after it.
pub fn is_enough(rounds: u32) -> Result<()> {
    if rounds < RUNS {
        bail!("--publish: {rounds} runs are too few, it takes {RUNS}");
    }
    Ok(())
}

/// Replaces the figures that are there.
pub fn publish(of: Of, table: &str) -> Result<()> {
    let page = project::root().join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("reading {PAGE}"))?;
    let text = with(&text, of, table).with_context(|| format!("{PAGE} has no place for the figures"))?;
    fs::write(&page, text).with_context(|| format!("writing {PAGE}"))?;
    println!("wrote {PAGE}");
    Ok(())
}

fn with(page: &str, of: Of, table: &str) -> Option<String> {
    let (begin, end) = (of.begin(), of.end());
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n\n{end}{after}", table.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_lines_is_replaced() {
        let place = |of: Of, text: &str| format!("{}\n{text}\n\n{}\n\n", of.begin(), of.end());
        let (hub, operator) = (place(Of::Hub, "old"), place(Of::Operator, "old"));
        let page = format!("# Before\n\n{hub}{operator}## After\n");
        let new = with(&page, Of::Operator, "new\n").unwrap();
        let wanted = format!("# Before\n\n{hub}{}## After\n", place(Of::Operator, "new"));
        assert_eq!(new, wanted);
        assert_eq!(with(&new, Of::Operator, "new").unwrap(), new);
        assert_eq!(with("# Nothing\n", Of::Hub, "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_them() {
        let page = fs::read_to_string(project::root().join(PAGE)).unwrap();
        for of in Of::ALL {
            assert!(with(&page, of, "").is_some(), "{of:?}");
        }
    }
}
