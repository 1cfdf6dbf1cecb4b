//! The list of intended differences: where Muster answers otherwise on purpose, and why.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::recording::Request;
use super::report::{Difference, What};

const LIST: &str = include_str!("intended.toml");

/// One entry; what it does not name it does not restrict. `*` stands for anything in `file`, `key` and values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub method: Option<String>,
    /// Below the API's base, `{}` for an id, a trailing `*` for the rest.
    pub path: Option<String>,
    pub file: Option<String>,
    /// The number of one exchange, or `from-to`.
    pub exchange: Option<String>,
    /// The kind of difference; absent only for requests that are withheld.
    pub what: Option<String>,
    pub key: Option<String>,
    pub theirs: Option<String>,
    pub ours: Option<String>,
    /// The request is not sent: ours would accept it and the rest of the recording would not fit any more.
    #[serde(default)]
    pub withhold: bool,
    /// Whether it shows depends on how fast the machine is, so that nobody wonders when it does not.
    #[serde(default)]
    pub sometimes: bool,
    pub reason: String,
}

#[derive(Debug, Deserialize)]
pub struct Intended {
    #[serde(rename = "difference")]
    pub entries: Vec<Entry>,
}

impl Intended {
    pub fn load() -> Result<Self> {
        Self::parse(LIST)
    }

    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("the list of intended differences")
    }

    pub fn reason(&self, entry: usize) -> &str {
        &self.entries[entry].reason
    }

    /// The first entry that allows a difference.
    pub fn allows(&self, file: &str, index: usize, request: &Request, found: &Difference) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| !entry.withhold && entry.is_about(file, index, request) && entry.covers(found))
    }

    /// The entry that keeps a request back.
    pub fn withholds(&self, file: &str, index: usize, request: &Request) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| entry.withhold && entry.is_about(file, index, request))
    }

    /// Entries that never matched, described by what they were about.
    pub fn stale(&self, hits: &BTreeMap<usize, usize>) -> Vec<String> {
        let unused = self
            .entries
            .iter()
            .enumerate()
            .filter(|(at, entry)| !entry.sometimes && !hits.contains_key(at));
        unused.map(|(_, entry)| entry.describe()).collect()
    }
}

impl Entry {
    fn is_about(&self, file: &str, index: usize, request: &Request) -> bool {
        let operation = request.operation();
        let (method, route) = operation.split_once(' ').unwrap_or_default();
        fits(self.method.as_deref(), method)
            && fits(self.path.as_deref(), route)
            && fits(self.file.as_deref(), file)
            && self.exchange.as_deref().is_none_or(|range| holds(range, index))
    }

    fn covers(&self, found: &Difference) -> bool {
        let Difference {
            what,
            key,
            theirs,
            ours,
        } = found;
        self.what.as_deref() == Some(what.word())
            && fits(self.key.as_deref(), key)
            && fits(self.theirs.as_deref(), theirs)
            && fits(self.ours.as_deref(), ours)
            // A seed that failed says nothing about the hub's answers.
            && *what != What::Seed
    }

    fn describe(&self) -> String {
        let part = |name: &str, value: &Option<String>| {
            value
                .as_ref()
                .map_or(String::new(), |value| format!("{name} {value}, "))
        };
        format!(
            "{}{}{}{}{}{}{}",
            part("method", &self.method),
            part("path", &self.path),
            part("file", &self.file),
            part("exchange", &self.exchange),
            part("what", &self.what),
            part("key", &self.key),
            self.reason
        )
    }
}

fn fits(pattern: Option<&str>, text: &str) -> bool {
    pattern.is_none_or(|pattern| glob(pattern, text))
}

/// Whether the text is made of the pattern's pieces in order, with anything at each `*`.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(head) else {
        return false;
    };
    rest.is_empty() || (0..=text.len()).any(|at| text.is_char_boundary(at) && glob(rest, &text[at..]))
}

fn holds(range: &str, index: usize) -> bool {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let number = |text: &str| text.trim().parse::<usize>().ok();
    number(from).is_some_and(|from| from <= index) && number(to).is_some_and(|to| index <= to)
}
