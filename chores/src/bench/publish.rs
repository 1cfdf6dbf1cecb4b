//! Puts a table into the documentation, between the two lines that are there for it.

use std::fs;

use anyhow::{Context, Result};

use crate::project;

const PAGE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- figures of the hub: written by `cargo xtask bench hub --publish` -->\n";
const END: &str = "<!-- end of the figures of the hub -->";

/// Replaces the figures that are there.
pub fn publish(table: &str) -> Result<()> {
    let page = project::root().join(PAGE);
    let text = fs::read_to_string(&page).with_context(|| format!("reading {PAGE}"))?;
    let text = with(&text, table).with_context(|| format!("{PAGE} has no place for the figures"))?;
    fs::write(&page, text).with_context(|| format!("writing {PAGE}"))?;
    println!("wrote {PAGE}");
    Ok(())
}

fn with(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n\n{END}{after}", table.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_lines_is_replaced() {
        let page = format!("# Before\n\n{BEGIN}\nold\n\n{END}\n\n## After\n");
        let new = with(&page, "new\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(with(&new, "new").unwrap(), new);
        assert_eq!(with("# Nothing\n", "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_them() {
        let page = fs::read_to_string(project::root().join(PAGE)).unwrap();
        assert!(with(&page, "").is_some());
    }
}
