//! Several runs of one fleet: the middle of each figure beside the worst and the best, and the table for people.

use std::fmt;

use serde::Serialize;

use super::table::{Figure, Goal, Sheet, is_met, number};

/// What one fleet showed in all runs.
#[derive(Serialize)]
pub struct Spread {
    pub title: String,
    pub commit: String,
    pub runs: usize,
    pub lines: Vec<Line>,
}

/// One figure.
#[derive(Serialize)]
pub struct Line {
    pub name: String,
    pub median: f64,
    pub worst: f64,
    pub best: f64,
    pub goal: Goal,
    /// Whether the median meets the goal.
    pub met: Option<bool>,
    /// How many times the reference of the same run, and which: the median.
    pub against: Option<(f64, &'static str)>,
}

impl Spread {
    /// Of sheets with the same figures.
    pub fn of(sheets: &[Sheet], commit: &str) -> Self {
        let first = sheets.first();
        let figures = first.into_iter().flat_map(|sheet| &sheet.figures);
        Self {
            title: first.map_or_else(String::new, |sheet| sheet.title.clone()),
            commit: commit.to_owned(),
            runs: sheets.len(),
            lines: figures.filter_map(|figure| Line::of(figure, sheets)).collect(),
        }
    }
}

impl Line {
    fn of(first: &Figure, sheets: &[Sheet]) -> Option<Self> {
        let same = sheets.iter().filter_map(|sheet| sheet.figure(&first.name));
        let same: Vec<&Figure> = same.collect();
        let values: Vec<f64> = same.iter().map(|figure| figure.value).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (worst, best) = if more_is_better(&first.name) {
            (low, high)
        } else {
            (high, low)
        };
        let median = middle(values)?;
        let ratios = same.iter().filter_map(|figure| figure.against);
        let ratio = middle(ratios.map(|(ratio, _)| ratio).collect());
        Some(Self {
            name: first.name.clone(),
            median,
            worst,
            best,
            goal: first.goal,
            met: is_met(first.goal, median),
            against: ratio.zip(first.against).map(|(ratio, (_, what))| (ratio, what)),
        })
    }

    fn spread(&self) -> String {
        format!("{} – {}", number(self.worst), number(self.best))
    }
}

/// Rates end in "per second"; everything else is time, work or memory spent.
pub fn more_is_better(name: &str) -> bool {
    name.contains(" /s")
}

/// The median; of an even number the lower one of the two in the middle.
pub fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nCommit {}, {}\n", self.commit, Runs(self.runs))?;
        writeln!(
            f,
            "| {} | median | worst – best run | goal | met | against the reference |",
            self.title
        )?;
        writeln!(f, "|---|---:|---:|---:|---|---|")?;
        for line in &self.lines {
            let met = line.met.map_or("", |met| if met { "yes" } else { "NO" });
            let against = line
                .against
                .map(|(ratio, what)| format!("{ratio:.2} x {what}"))
                .unwrap_or_default();
            writeln!(
                f,
                "| {} | {} | {} | {} | {met} | {against} |",
                line.name,
                number(line.median),
                line.spread(),
                line.goal
            )?;
        }
        Ok(())
    }
}

struct Runs(usize);

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => write!(f, "one run"),
            runs => write!(f, "{runs} runs"),
        }
    }
}

/// All fleets side by side, as the documentation has them: the median, and the worst and the best run beside it.
pub fn side_by_side(fleets: &[Spread]) -> String {
    let Some(first) = fleets.first() else {
        return String::new();
    };
    let mut text = format!(
        "Measured at commit {}, {} of each column: the median, and in parentheses the worst and the best.\n\n",
        first.commit,
        Runs(first.runs)
    );
    let titles: String = fleets.iter().map(|fleet| format!(" {} |", fleet.title)).collect();
    text += &format!("| | goal |{titles}\n|---|---:|{}\n", "---:|".repeat(fleets.len()));
    for line in &first.lines {
        let cells: String = fleets.iter().map(|fleet| fleet.cell(&line.name)).collect();
        text += &format!("| {} | {} |{cells}\n", line.name, line.goal);
    }
    text
}

impl Spread {
    /// Of the table for the documentation: a goal that is missed stands out.
    fn cell(&self, name: &str) -> String {
        let Some(line) = self.lines.iter().find(|line| line.name == name) else {
            return " |".into();
        };
        let median = number(line.median);
        let median = match line.met {
            Some(false) => format!("**{median}** ({} missed)", line.goal),
            Some(true) | None => median,
        };
        match self.runs {
            1 => format!(" {median} |"),
            _ => format!(" {median} ({}) |", line.spread()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{at_least, at_most, plain};
    use super::*;

    fn runs(values: [f64; 3]) -> Vec<Sheet> {
        let sheet = |value: f64| {
            let mut sheet = Sheet::of_fleet(10, "SQLite");
            sheet.add("poll /s", value, at_least(20.0));
            sheet.against("bare poll", value / 100.0);
            sheet.add("poll p99 ms", value, at_most(20.0));
            sheet
        };
        values.map(sheet).into()
    }

    #[test]
    fn the_worst_run_is_the_slowest_whatever_is_counted() {
        let spread = Spread::of(&runs([10.0, 30.0, 20.0]), "abc");
        let [rate, time] = &spread.lines[..] else {
            panic!("two figures");
        };
        assert_eq!((rate.median, rate.worst, rate.best), (20.0, 10.0, 30.0));
        assert_eq!((time.median, time.worst, time.best), (20.0, 30.0, 10.0));
        assert_eq!((rate.met, time.met), (Some(true), Some(true)));
        assert_eq!(rate.against, Some((0.2, "bare poll")));
        let text = spread.to_string();
        assert!(text.contains("Commit abc, 3 runs"), "{text}");
        assert!(
            text.contains("| poll /s | 20.0 | 10.0 – 30.0 | ≥ 20.0 | yes | 0.20 x bare poll |"),
            "{text}"
        );
    }

    #[test]
    fn the_table_for_the_documentation_has_a_column_for_each_fleet() {
        let mut other = Sheet::of_fleet(20, "SQLite");
        other.add("poll /s", 5.0, at_least(20.0));
        other.add("never elsewhere", 1.0, plain());
        let fleets = [
            Spread::of(&runs([10.0, 30.0, 20.0]), "abc (dirty)"),
            Spread::of(&[other], "abc (dirty)"),
        ];
        let text = side_by_side(&fleets);
        assert!(text.contains("commit abc (dirty), 3 runs"), "{text}");
        assert!(
            text.contains("| | goal | 10 hosts, SQLite | 20 hosts, SQLite |\n|---|---:|---:|---:|\n"),
            "{text}"
        );
        assert!(
            text.contains("| poll /s | ≥ 20.0 | 20.0 (10.0 – 30.0) | **5.00** (≥ 20.0 missed) |"),
            "{text}"
        );
        assert!(
            text.contains("| poll p99 ms | ≤ 20.0 | 20.0 (30.0 – 10.0) | |"),
            "{text}"
        );
    }
}
