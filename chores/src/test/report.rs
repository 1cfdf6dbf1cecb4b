//! What the suites came to: a line after each, a table and a closing line at the end.

use std::fmt;
use std::time::Duration;

#[derive(Debug, PartialEq)]
pub enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "SKIPPED",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(reason) | Self::Skipped(reason) => Some(reason),
        }
    }
}

#[derive(Default)]
pub struct Report {
    lines: Vec<(&'static str, Duration, Outcome)>,
    /// Of which suite, and how the tests said it.
    skipped: Vec<(&'static str, String)>,
}

impl Report {
    /// Says at once how a suite ended, and remembers it.
    pub fn add(&mut self, name: &'static str, took: Duration, outcome: Outcome) {
        let seconds = took.as_secs_f64();
        match outcome.reason() {
            Some(reason) => println!("--- {name} {} after {seconds:.1} s: {reason}", outcome.word()),
            None => println!("--- {name} {} in {seconds:.1} s", outcome.word()),
        }
        self.lines.push((name, took, outcome));
    }

    /// Remembers tests that did not run in a suite that did.
    pub fn skipped(&mut self, name: &'static str, tests: Vec<String>) {
        self.skipped.extend(tests.into_iter().map(|test| (name, test)));
    }

    pub fn is_good(&self) -> bool {
        !self
            .lines
            .iter()
            .any(|(_, _, outcome)| matches!(outcome, Outcome::Failed(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self
            .lines
            .iter()
            .map(|(name, _, _)| name.len())
            .max()
            .unwrap_or(0);
        writeln!(out)?;
        for (name, took, outcome) in &self.lines {
            write!(
                out,
                "{name:<width$}  {:<7}  {:>7.1} s",
                outcome.word(),
                took.as_secs_f64()
            )?;
            match outcome.reason().and_then(|reason| reason.lines().next()) {
                Some(reason) => writeln!(out, "  {reason}")?,
                None => writeln!(out)?,
            }
        }
        let count = |word| {
            self.lines
                .iter()
                .filter(|(_, _, outcome)| outcome.word() == word)
                .count()
        };
        writeln!(out)?;
        writeln!(
            out,
            "{} passed, {} failed, {} skipped",
            count("passed"),
            count("FAILED"),
            count("SKIPPED")
        )?;
        if !self.skipped.is_empty() {
            writeln!(
                out,
                "Tests that were skipped in suites that ran: {}",
                self.skipped.len()
            )?;
        }
        for (name, test) in &self.skipped {
            writeln!(out, "  {name}: {test}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_each_suite_and_the_last_line_counts_them() {
        let mut report = Report::default();
        report.add("fmt", Duration::from_millis(1230), Outcome::Passed);
        report.add(
            "schemathesis",
            Duration::from_secs(61),
            Outcome::Skipped("no Python".into()),
        );
        assert!(report.is_good());
        report.add(
            "hub",
            Duration::from_secs(5),
            Outcome::Failed("first\nsecond".into()),
        );
        assert!(!report.is_good());
        let wanted = "
fmt           passed       1.2 s
schemathesis  SKIPPED     61.0 s  no Python
hub           FAILED       5.0 s  first

1 passed, 1 failed, 1 skipped
";
        assert_eq!(report.to_string(), wanted);
        report.skipped("image", vec!["SKIPPED mounting: no root".into()]);
        let wanted = format!(
            "{wanted}Tests that were skipped in suites that ran: 1\n  image: SKIPPED mounting: no root\n"
        );
        assert_eq!(report.to_string(), wanted);
    }
}
