//! Two builds measured in turns, so that whatever the machine does in a minute meets both.

use std::fmt;

use serde::Serialize;

use super::spread::{middle, more_is_better};
use super::table::{Sheet, number};

/// Below this a change is a loss, and not the unrest of a shared machine.
const LOSS: f64 = 0.95;

/// What one fleet showed of both builds, a pair of sheets for every round.
#[derive(Serialize)]
pub struct Turns {
    pub title: String,
    /// Of our build.
    pub commit: String,
    /// What the other build says it is.
    pub other: String,
    pub lines: Vec<Line>,
}

/// One figure of both.
#[derive(Serialize)]
pub struct Line {
    pub name: String,
    pub ours: f64,
    pub theirs: f64,
    /// How many times as good as the other build: the middle of the rounds, the worst and the best.
    pub gain: f64,
    pub worst: f64,
    pub best: f64,
}

impl Turns {
    /// Of rounds, each with a sheet of our build and one of the other.
    pub fn of(commit: &str, other: &str, rounds: &[(Sheet, Sheet)]) -> Self {
        let title = rounds
            .first()
            .map_or_else(String::new, |(ours, _)| ours.title.clone());
        let names = rounds.first().into_iter().flat_map(|(ours, _)| &ours.figures);
        let lines = names
            .filter(|figure| !figure.name.starts_with("reference:"))
            .filter_map(|figure| Line::of(&figure.name, rounds))
            .collect();
        Self {
            title,
            commit: commit.to_owned(),
            other: other.to_owned(),
            lines,
        }
    }
}

impl Line {
    fn of(name: &str, rounds: &[(Sheet, Sheet)]) -> Option<Self> {
        let find = |sheet: &Sheet| Some(sheet.figure(name)?.value);
        let pairs: Vec<(f64, f64)> = rounds
            .iter()
            .filter_map(|(ours, theirs)| Some((find(ours)?, find(theirs)?)))
            .collect();
        let gains: Vec<f64> = pairs
            .iter()
            .filter(|(ours, theirs)| *ours > 0.0 && *theirs > 0.0)
            .map(|(ours, theirs)| {
                if more_is_better(name) {
                    ours / theirs
                } else {
                    theirs / ours
                }
            })
            .collect();
        Some(Self {
            name: name.to_owned(),
            ours: middle(pairs.iter().map(|pair| pair.0).collect())?,
            theirs: middle(pairs.iter().map(|pair| pair.1).collect())?,
            gain: middle(gains.clone())?,
            worst: gains.iter().copied().fold(f64::INFINITY, f64::min),
            best: gains.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nThis build: commit {}; the other: {}\n",
            self.commit, self.other
        )?;
        writeln!(
            f,
            "| {} | this build | the other | as good as the other | worst – best round | |",
            self.title
        )?;
        writeln!(f, "|---|---:|---:|---:|---:|---|")?;
        for line in &self.lines {
            let verdict = if line.gain < LOSS { "LOSS" } else { "" };
            writeln!(
                f,
                "| {} | {} | {} | {:.2} | {:.2} – {:.2} | {verdict} |",
                line.name,
                number(line.ours),
                number(line.theirs),
                line.gain,
                line.worst,
                line.best
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::plain;
    use super::*;

    fn sheet(figures: &[(&str, f64)]) -> Sheet {
        let mut sheet = Sheet::new("10 hosts");
        for (name, value) in figures {
            sheet.add(name, *value, plain());
        }
        sheet
    }

    #[test]
    fn a_rate_gains_when_it_grows_and_time_when_it_shrinks() {
        let ours = sheet(&[
            ("bind /s", 200.0),
            ("list, ms", 20.0),
            ("reference: bare GET /s", 9.0),
        ]);
        let theirs = sheet(&[
            ("bind /s", 100.0),
            ("list, ms", 10.0),
            ("reference: bare GET /s", 8.0),
        ]);
        let turns = Turns::of("abc", "muster 0.1.0", &[(ours, theirs)]);
        let gains: Vec<(&str, f64)> = turns
            .lines
            .iter()
            .map(|line| (line.name.as_str(), line.gain))
            .collect();
        assert_eq!(gains, [("bind /s", 2.0), ("list, ms", 0.5)]);
        let text = turns.to_string();
        assert!(text.contains("commit abc; the other: muster 0.1.0"), "{text}");
        assert!(
            text.contains("| list, ms | 20.0 | 10.0 | 0.50 | 0.50 – 0.50 | LOSS |"),
            "{text}"
        );
    }

    #[test]
    fn one_uneven_round_is_shown_and_does_not_decide() {
        let round = |ours, theirs| (sheet(&[("poll /s", ours)]), sheet(&[("poll /s", theirs)]));
        let turns = Turns::of(
            "abc",
            "muster 0.1.0",
            &[round(50.0, 100.0), round(100.0, 100.0), round(99.0, 100.0)],
        );
        let line = &turns.lines[0];
        assert_eq!((line.gain, line.worst, line.best), (0.99, 0.5, 1.0));
    }

    #[test]
    fn what_one_build_does_not_measure_is_left_out() {
        let turns = Turns::of(
            "abc",
            "muster 0.1.0",
            &[(sheet(&[("new /s", 1.0)]), sheet(&[("old /s", 1.0)]))],
        );
        assert!(turns.lines.is_empty());
    }
}
