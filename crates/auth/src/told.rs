//! Text that somebody else chose, in a message: short, and without characters that a terminal or a log would obey.

use std::fmt;

/// Longer texts are cut.
const LONGEST: usize = 48;

#[derive(Clone, PartialEq, Eq)]
pub struct Told(Box<str>);

impl Told {
    pub fn new(text: &str) -> Self {
        let mut kept: String = text.chars().take(LONGEST).collect();
        if kept.len() < text.len() {
            kept.push('…');
        }
        Self(kept.into())
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0.escape_debug())
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_short_and_obeyed_by_nobody() {
        assert_eq!(Told::new("\u{1b}[2Jx\n").to_string(), r"`\u{1b}[2Jx\n`");
        let long = Told::new(&"ä".repeat(1000)).to_string();
        assert_eq!(long.chars().count(), LONGEST + 3);
    }
}
