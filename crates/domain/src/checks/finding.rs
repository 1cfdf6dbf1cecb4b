//! What a check can say, how findings are written on the wire, and what changed since the last time.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub use muster_vocabulary::CheckStatus as Status;

/// What one check says about one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Pass(String),
    Fail(String),
    Wait(String),
    Broken(String),
    /// It does not apply: it passes and is not shown.
    Silent,
}

impl Outcome {
    pub fn pass(text: impl Into<String>) -> Self {
        Self::Pass(text.into())
    }

    pub fn fail(text: impl Into<String>) -> Self {
        Self::Fail(text.into())
    }

    /// `what` completes the sentence "Waiting ….": whoever reads it knows that nobody need act yet, and for what.
    pub fn wait(what: impl std::fmt::Display) -> Self {
        Self::Wait(format!("{WAITING}{what}."))
    }

    pub fn broken(text: impl Into<String>) -> Self {
        Self::Broken(text.into())
    }

    pub fn judge(fine: bool, good: impl Into<String>, bad: impl Into<String>) -> Self {
        if fine { Self::pass(good) } else { Self::fail(bad) }
    }

    pub(crate) fn finding(self, is_disabled: bool) -> Option<(Status, String)> {
        let (status, message) = match self {
            Self::Pass(message) => (Status::Success, message),
            Self::Fail(message) => (Status::Failure, message),
            Self::Wait(message) => (Status::Pending, message),
            Self::Broken(message) => (Status::Error, message),
            Self::Silent => return None,
        };
        if is_disabled {
            return Some((Status::Disabled, "Switched off, not evaluated.".into()));
        }
        Some((status, message))
    }
}

/// One entry of `validations_info`.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    pub id: &'a str,
    pub status: Status,
    pub message: &'a str,
}

/// The string clients parse: categories by name, entries in the order they were evaluated.
pub(crate) fn to_json<'a>(lines: impl Iterator<Item = (&'static str, Line<'a>)>) -> String {
    let mut by_category: BTreeMap<&str, Vec<Line<'a>>> = BTreeMap::new();
    for (category, line) in lines {
        by_category.entry(category).or_default().push(line);
    }
    serde_json::to_string(&by_category).expect("strings and lists always serialise")
}

/// Statuses by id, as they were stored; unreadable text counts as nothing stored.
pub fn stored(json: &str) -> BTreeMap<String, Status> {
    #[derive(Deserialize)]
    struct Stored {
        id: String,
        status: Status,
    }
    let categories: BTreeMap<String, Vec<Stored>> = serde_json::from_str(json).unwrap_or_default();
    categories
        .into_values()
        .flatten()
        .map(|entry| (entry.id, entry.status))
        .collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Was fine and is not any more.
    Broke,
    /// Fails now; before, it could not be evaluated.
    Failed,
    /// Failed and is fine now.
    Fixed,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub id: &'static str,
    pub news: News,
    pub message: String,
}

/// What became different. An id seen for the first time is no news.
pub(crate) fn compare<'a>(
    old: &BTreeMap<String, Status>,
    new: impl Iterator<Item = (&'static str, Status, &'a str)>,
) -> Vec<Change> {
    new.filter_map(|(id, now, message)| {
        let before = *old.get(id)?;
        let news = match (before, now) {
            (before, now) if before == now => return None,
            (Status::Success, Status::Failure) => News::Broke,
            (Status::Pending | Status::Error | Status::Disabled, Status::Failure) => News::Failed,
            (Status::Failure, Status::Success) => News::Fixed,
            (
                Status::Success | Status::Failure | Status::Pending | Status::Error | Status::Disabled,
                Status::Success | Status::Pending | Status::Error | Status::Disabled,
            )
            | (Status::Failure, Status::Failure) => News::Other,
        };
        Some(Change {
            id,
            news,
            message: message.to_owned(),
        })
    })
    .collect()
}

/// Longest text kept as a state's explanation.
const STATUS_INFO_LIMIT: usize = 2040;

const WAITING: &str = "Waiting ";

/// A finding as it is shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summarized<'a> {
    pub id: &'a str,
    pub status: Status,
    /// The object cannot go on before this check passes.
    pub blocks: bool,
    pub message: &'a str,
}

/// What keeps an object back, as one line: what fails, then what is waited for, by name, then what fails and is in
/// nobody's way. Sorted, so that the same findings always make the same text.
pub fn summary<'a>(findings: impl Iterator<Item = Summarized<'a>>) -> String {
    let (mut failing, mut besides) = (BTreeSet::new(), BTreeSet::new());
    let mut waiting: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for finding in findings {
        // Each is a sentence; the separator takes the place of its full stop.
        let message = finding.message.trim_end_matches('.');
        match (finding.status, finding.blocks) {
            (Status::Failure | Status::Error, true) => drop(failing.insert(message)),
            (Status::Failure | Status::Error, false) => drop(besides.insert(message)),
            (Status::Pending, true) => {
                let what = message.strip_prefix(WAITING).unwrap_or(message);
                waiting.entry(what).or_default().insert(finding.id);
            }
            (Status::Pending, false) | (Status::Success | Status::Disabled, _) => {}
        }
    }
    let waiting = waiting.iter().map(|(what, ids)| awaited(what, ids));
    let besides = besides.iter().map(|message| format!("Not blocking: {message}"));
    let all = failing.iter().map(|message| (*message).to_owned());
    let all: Vec<String> = all.chain(waiting).chain(besides).collect();
    let mut text = all.join(" ; ");
    crate::journal::cut(&mut text, STATUS_INFO_LIMIT);
    text
}

fn awaited(what: &str, ids: &BTreeSet<&str>) -> String {
    let checks = if ids.len() == 1 { "check" } else { "checks" };
    let ids: Vec<&str> = ids.iter().copied().collect();
    format!("{WAITING}for the {checks} {} ({what})", ids.join(", "))
}

/// Checks a site or an owner does not want evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ignored {
    pub all: bool,
    pub ids: Vec<String>,
}

impl Ignored {
    /// Reads a JSON list in a string, such as `["mtu-valid"]` or `["all"]`; empty text is an empty list.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let ids: Vec<String> =
            serde_json::from_str(text).map_err(|_| "is not a JSON list of check ids".to_owned())?;
        Ok(Self {
            all: ids.iter().any(|id| id == "all"),
            ids,
        })
    }

    pub fn is_empty(&self) -> bool {
        !self.all && self.ids.is_empty()
    }

    pub fn names(&self, id: &str) -> bool {
        self.ids.iter().any(|named| named == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_evaluation_is_silent_and_later_ones_tell_what_changed() {
        let old = stored(
            r#"{"network":[{"id":"a","status":"success","message":""},{"id":"b","status":"pending","message":""},
                {"id":"c","status":"failure","message":""},{"id":"d","status":"failure","message":""}]}"#,
        );
        let new = [
            ("a", Status::Failure, "x"),
            ("b", Status::Failure, "x"),
            ("c", Status::Success, "x"),
            ("d", Status::Pending, "x"),
            ("e", Status::Failure, "x"),
        ];
        let news: Vec<_> = compare(&old, new.into_iter())
            .into_iter()
            .map(|change| (change.id, change.news))
            .collect();
        assert_eq!(
            news,
            [
                ("a", News::Broke),
                ("b", News::Failed),
                ("c", News::Fixed),
                ("d", News::Other)
            ]
        );
        assert!(compare(&BTreeMap::new(), new.into_iter()).is_empty());
        assert!(stored("nonsense").is_empty());
    }

    #[test]
    fn what_blocks_comes_first_what_is_waited_for_has_a_name_and_the_rest_is_not_in_the_way() {
        let said = |id, status, blocks, message| Summarized {
            id,
            status,
            blocks,
            message,
        };
        let findings = [
            said("route", Status::Failure, true, "No route."),
            said("cpu", Status::Error, true, "No CPU."),
            said("again", Status::Failure, true, "No CPU."),
            said("ntp", Status::Failure, false, "No time."),
            said("b", Status::Pending, true, "Waiting for godot."),
            said("a", Status::Pending, true, "Waiting for godot."),
            said("c", Status::Pending, true, "Waiting until noon."),
            said("mtu", Status::Pending, false, "Waiting for nobody."),
            said("fine", Status::Success, true, "Fine."),
            said("off", Status::Disabled, true, "Off."),
        ];
        assert_eq!(
            summary(findings.into_iter()),
            "No CPU ; No route ; Waiting for the checks a, b (for godot) ; Waiting for the check c (until noon) ; \
             Not blocking: No time"
        );
        assert_eq!(summary([].into_iter()), "");
        let long = "ä".repeat(2000);
        let text = summary([said("x", Status::Failure, true, long.as_str())].into_iter());
        assert_eq!(text.len(), 2040, "cut on a character");
    }

    #[test]
    fn whoever_waits_says_so() {
        assert_eq!(
            Outcome::wait("for godot").finding(false),
            Some((Status::Pending, "Waiting for godot.".into()))
        );
    }

    #[test]
    fn ignored_lists_are_read() {
        assert!(Ignored::parse("").unwrap().is_empty());
        assert!(Ignored::parse(r#"["all"]"#).unwrap().all);
        assert!(Ignored::parse(r#"["mtu-valid"]"#).unwrap().names("mtu-valid"));
        assert!(Ignored::parse("mtu-valid").is_err());
    }
}
