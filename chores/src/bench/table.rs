//! The figures of one fleet, each beside its goal and beside what the machine allows.

use std::fmt;

use serde::Serialize;

use super::reference::Reference;

#[derive(Serialize)]
pub struct Sheet {
    pub title: String,
    /// What was measured.
    pub commit: Option<String>,
    /// By how much goals are loosened.
    #[serde(skip)]
    slack: f64,
    pub figures: Vec<Figure>,
}

#[derive(Serialize)]
pub struct Figure {
    pub name: String,
    pub value: f64,
    pub goal: Goal,
    pub met: Option<bool>,
    /// How many times the reference, and which.
    pub against: Option<(f64, &'static str)>,
}

#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    None,
    AtMost(f64),
    AtLeast(f64),
}

pub fn plain() -> Goal {
    Goal::None
}

pub fn at_most(limit: f64) -> Goal {
    Goal::AtMost(limit)
}

pub fn at_least(limit: f64) -> Goal {
    Goal::AtLeast(limit)
}

impl Sheet {
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            commit: None,
            slack: 1.0,
            figures: Vec::new(),
        }
    }

    pub fn of_fleet(hosts: u32, database: &'static str) -> Self {
        Self {
            // PostgreSQL is another process to talk to: half of it is enough.
            slack: if database == "SQLite" { 1.0 } else { 2.0 },
            ..Self::new(format!("{hosts} hosts, {database}"))
        }
    }

    /// The same, of this commit.
    pub fn at(self, commit: String) -> Self {
        Self {
            commit: Some(commit),
            ..self
        }
    }

    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    pub fn reference(&mut self, reference: &Reference) {
        self.add("reference: bare GET /s", reference.gets_per_second, plain());
        self.add("reference: bare poll /s", reference.polls_per_second, plain());
        self.add(
            "reference: CPU ms per bare poll",
            reference.cpu_ms_per_poll,
            plain(),
        );
        self.add(
            "reference: bare SQLite inserts /s",
            reference.inserts_per_second,
            plain(),
        );
    }

    pub fn add(&mut self, name: &str, value: f64, goal: Goal) {
        let goal = match goal {
            Goal::None => Goal::None,
            Goal::AtMost(limit) => Goal::AtMost(limit * self.slack),
            Goal::AtLeast(limit) => Goal::AtLeast(limit / self.slack),
        };
        self.figures.push(Figure {
            name: name.to_owned(),
            value,
            goal,
            met: is_met(goal, value),
            against: None,
        });
    }

    /// Puts the last figure beside a reference.
    pub fn against(&mut self, what: &'static str, ratio: f64) {
        if let Some(last) = self.figures.last_mut() {
            last.against = Some((ratio, what));
        }
    }
}

pub fn is_met(goal: Goal, value: f64) -> Option<bool> {
    match goal {
        Goal::None => None,
        Goal::AtMost(limit) => Some(value <= limit),
        Goal::AtLeast(limit) => Some(value >= limit),
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::AtMost(limit) => write!(f, "≤ {}", number(*limit)),
            Self::AtLeast(limit) => write!(f, "≥ {}", number(*limit)),
        }
    }
}

impl fmt::Display for Sheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(commit) = &self.commit {
            writeln!(f, "\nCommit {commit}")?;
        }
        writeln!(
            f,
            "\n| {} | measured | goal | met | against the reference |",
            self.title
        )?;
        writeln!(f, "|---|---:|---:|---|---|")?;
        for figure in &self.figures {
            let met = figure.met.map_or("", |met| if met { "yes" } else { "NO" });
            let against = figure
                .against
                .map(|(ratio, what)| format!("{ratio:.2} x {what}"))
                .unwrap_or_default();
            writeln!(
                f,
                "| {} | {} | {} | {met} | {against} |",
                figure.name,
                number(figure.value),
                figure.goal
            )?;
        }
        Ok(())
    }
}

/// Three digits are as many as a shared machine can promise.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_goal_is_said_aloud() {
        let mut sheet = Sheet::of_fleet(10, "SQLite");
        sheet.add("poll /s", 7_999.0, at_least(8_000.0));
        sheet.add("CPU ms", 0.1, at_most(0.15));
        let text = sheet.to_string();
        assert!(text.contains("| poll /s | 7999 | ≥ 8000 | NO |"), "{text}");
        assert!(text.contains("| CPU ms | 0.100 | ≤ 0.150 | yes |"), "{text}");
    }

    #[test]
    fn postgresql_may_take_twice_as_much() {
        let mut sheet = Sheet::of_fleet(10, "PostgreSQL");
        sheet.add("poll /s", 4_000.0, at_least(8_000.0));
        assert_eq!(sheet.figures[0].met, Some(true));
    }
}
