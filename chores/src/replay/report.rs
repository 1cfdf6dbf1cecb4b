//! What a replay found, for people: one line per difference and a summary at the end.

use std::collections::BTreeMap;
use std::fmt;

use super::intended::Intended;

/// The kind of a difference; the list of intended differences names it by its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Another HTTP status.
    Status,
    /// A key or element that ours lacks.
    Missing,
    /// A key or element that only ours has.
    Extra,
    /// Another JSON type.
    Type,
    /// Another word where programs compare words.
    Word,
    /// Another number of elements.
    Length,
    /// An empty text.
    Text,
    /// Another class of date.
    Date,
    /// A host or cluster in a state the recording does not reach next.
    State,
    /// Findings of now where the recording shows those of its last tick.
    Stale,
    /// A header that clients rely on.
    Header,
    /// Steps that do not fit the host's state.
    Steps,
    /// A body that is not of any legal form.
    Body,
    /// The hub could not be brought into the state the recording starts from.
    Seed,
}

impl What {
    pub fn word(self) -> &'static str {
        match self {
            What::Status => "status",
            What::Missing => "missing",
            What::Extra => "extra",
            What::Type => "type",
            What::Word => "word",
            What::Length => "length",
            What::Text => "text",
            What::Date => "date",
            What::State => "state",
            What::Stale => "stale",
            What::Header => "header",
            What::Steps => "steps",
            What::Body => "body",
            What::Seed => "seed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub what: What,
    /// Where in the answer: `$` is the body, `:` enters JSON kept in a string.
    pub key: String,
    pub theirs: String,
    pub ours: String,
}

impl Difference {
    pub fn new(what: What, key: &str, theirs: &str, ours: &str) -> Self {
        Self {
            what,
            key: key.to_owned(),
            theirs: theirs.to_owned(),
            ours: ours.to_owned(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            key,
            theirs,
            ours,
        } = self;
        write!(f, "{} {key}: recorded {theirs}, ours {ours}", what.word())
    }
}

/// One difference at one exchange, and the entry that allows it, if any.
#[derive(Debug, Clone)]
pub struct Finding {
    pub index: usize,
    pub operation: String,
    pub difference: Difference,
    pub intended: Option<usize>,
}

#[derive(Debug, Default)]
pub struct FileReport {
    pub name: String,
    pub compared: usize,
    pub findings: Vec<Finding>,
    /// Requests not sent on purpose, with the entry that says why.
    pub withheld: Vec<(usize, usize)>,
}

impl FileReport {
    pub fn unexpected(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.intended.is_none())
    }

    pub fn print(&self, intended: &Intended, verbose: bool) {
        let unexpected = self.unexpected().count();
        println!(
            "{}: {} compared, {unexpected} unexpected",
            self.name, self.compared
        );
        for Finding {
            index,
            operation,
            difference,
            intended: entry,
        } in &self.findings
        {
            match entry {
                None => println!("  [{index}] {operation}: {difference}"),
                Some(entry) if verbose => {
                    println!(
                        "  [{index}] {operation}: {difference} (intended: {})",
                        intended.reason(*entry)
                    );
                }
                Some(_) => {}
            }
        }
        for (index, entry) in self.withheld.iter().filter(|_| verbose) {
            println!("  [{index}] not sent: {}", intended.reason(*entry));
        }
    }
}

/// A whole run.
#[derive(Debug, Default)]
pub struct Summary {
    pub files: usize,
    pub compared: usize,
    pub unexpected: usize,
    pub intended: usize,
    pub withheld: usize,
    /// How often each entry of the list matched.
    pub hits: BTreeMap<usize, usize>,
    /// Entries that matched nothing although every recording of the project was replayed.
    pub stale: Vec<String>,
}

impl Summary {
    pub fn add(&mut self, report: FileReport) {
        self.files += 1;
        self.compared += report.compared;
        self.unexpected += report.unexpected().count();
        self.withheld += report.withheld.len();
        for entry in report.findings.iter().filter_map(|finding| finding.intended) {
            self.intended += 1;
            *self.hits.entry(entry).or_default() += 1;
        }
        for (_, entry) in report.withheld {
            *self.hits.entry(entry).or_default() += 1;
        }
    }

    pub fn failed(&self, strict: bool) -> bool {
        self.unexpected > 0 || strict && !self.stale.is_empty()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} files, {} exchanges compared: {} unexpected differences, {} intended, {} requests withheld",
            self.files, self.compared, self.unexpected, self.intended, self.withheld
        )?;
        for entry in &self.stale {
            writeln!(f, "stale: {entry}")?;
        }
        Ok(())
    }
}
