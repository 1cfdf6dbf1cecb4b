//! News that agents repeat every minute, and that history tells once an hour.
//!
//! Kept in memory only: a hub that restarts tells them once more.

use jiff::{SignedDuration, Timestamp};
use std::sync::{Mutex, PoisonError};

const PAUSE: SignedDuration = SignedDuration::from_hours(1);

/// Nearly always empty, and then without an allocation.
#[derive(Debug, Default)]
pub struct Hourly(Mutex<Vec<(&'static str, Timestamp)>>);

impl Hourly {
    /// Whether the news may be reported now; if so it counts as reported.
    pub fn may_tell(&self, name: &'static str, now: Timestamp) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|(_, at)| now.duration_since(*at) < PAUSE);
        if told.iter().any(|(other, _)| *other == name) {
            return false;
        }
        told.push((name, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_news_is_told_once_an_hour() {
        let (hourly, noon) = (Hourly::default(), Timestamp::UNIX_EPOCH);
        assert!(hourly.may_tell("started", noon));
        assert!(hourly.may_tell("failed", noon), "other news have their own hour");
        assert!(!hourly.may_tell("started", noon + SignedDuration::from_mins(59)));
        assert!(hourly.may_tell("started", noon + SignedDuration::from_mins(60)));
    }
}
