//! A pass over many things: what fails keeps nobody else waiting, rests longer each time, and is told.

use crate::error::Error;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Nothing rests longer than this.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);
/// When so many failed and none worked, it is not their fault: the database is away, and the rest need not wait for it.
const HOPELESS: usize = 3;

/// What failed, and when it is tried again: after 1, 2, 4 … seconds.
#[derive(Debug)]
pub struct Rests<K>(Mutex<BTreeMap<K, Rest>>);

#[derive(Debug, Clone, Copy)]
struct Rest {
    failures: u32,
    until: Timestamp,
}

impl Rest {
    /// A clock that was set back makes nobody rest longer.
    fn left(&self, now: Timestamp) -> Option<SignedDuration> {
        let left = self.until.duration_since(now);
        (left.is_positive() && left <= LONGEST).then_some(left)
    }
}

impl<K> Default for Rests<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord> Rests<K> {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<K, Rest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It rests; says until when.
    pub fn failed(&self, key: K, now: Timestamp) -> Timestamp {
        let mut all = self.lock();
        let failures = all.get(&key).map_or(0, |rest| rest.failures);
        let pause = SignedDuration::from_secs(1 << failures.min(9)).min(LONGEST);
        let until = now.checked_add(pause).unwrap_or(now);
        let failures = failures.saturating_add(1);
        all.insert(key, Rest { failures, until });
        until
    }

    pub fn worked(&self, key: &K) {
        self.lock().remove(key);
    }

    pub fn is_resting(&self, key: &K, now: Timestamp) -> bool {
        self.lock().get(key).is_some_and(|rest| rest.left(now).is_some())
    }

    pub fn all(&self) -> Vec<K>
    where
        K: Clone,
    {
        self.lock().keys().cloned().collect()
    }

    /// Who has rested enough.
    pub fn over(&self, now: Timestamp) -> Vec<K>
    where
        K: Clone,
    {
        let all = self.lock();
        let over = all.iter().filter(|(_, rest)| rest.left(now).is_none());
        over.map(|(key, _)| key.clone()).collect()
    }

    /// How long until the next one has.
    pub fn next(&self, now: Timestamp) -> Option<Duration> {
        let all = self.lock();
        let left = all
            .values()
            .map(|rest| rest.left(now).unwrap_or_default())
            .min()?;
        Some(left.unsigned_abs())
    }
}

/// How a pass goes.
#[derive(Debug, Default)]
pub struct Pass {
    done: usize,
    failed: Option<Failed>,
}

impl Pass {
    /// `Ok(true)` is work that was done, `Ok(false)` that there was none.
    pub fn note(&mut self, what: impl fmt::Display, result: Result<bool, Error>) {
        match (result, &mut self.failed) {
            (Ok(did), _) => self.done += usize::from(did),
            (Err(error), None) => {
                let what = what.to_string();
                let others = 0;
                self.failed = Some(Failed { what, others, error });
            }
            (Err(error), Some(failed)) => {
                tracing::warn!(%what, %error, "a worker failed here as well");
                failed.others += 1;
            }
        }
    }

    /// Going on would only mean to wait for the same again.
    pub fn is_hopeless(&self) -> bool {
        self.done == 0
            && self
                .failed
                .as_ref()
                .is_some_and(|failed| failed.others + 1 >= HOPELESS)
    }

    /// How much was done, or what of it failed.
    pub fn end(self) -> Result<usize, Failed> {
        self.failed.map_or(Ok(self.done), Err)
    }
}

/// The first thing that failed in a pass; everything else was tried.
#[derive(Debug)]
pub struct Failed {
    what: String,
    others: usize,
    error: Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)?;
        let mut cause = std::error::Error::source(&self.error);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        match self.others {
            0 => Ok(()),
            others => write!(f, " (and {others} more)"),
        }
    }
}

impl std::error::Error for Failed {}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn broken() -> Result<bool, Error> {
        Err(Error::BadReport("it is broken".into()))
    }

    #[test]
    fn who_fails_rests_longer_each_time_and_not_for_ever() {
        let rests = Rests::default();
        let pauses = (0..12).map(|_| rests.failed("a", noon()).duration_since(noon()).as_secs());
        let pauses: Vec<_> = pauses.collect();
        assert_eq!(pauses[..5], [1, 2, 4, 8, 16]);
        assert_eq!(pauses[9..], [300, 300, 300]);
        assert!(rests.is_resting(&"a", noon()) && !rests.is_resting(&"b", noon()));
        assert_eq!(rests.next(noon()), Some(Duration::from_secs(300)));
        assert_eq!(rests.over(noon() + LONGEST), ["a"]);
        rests.worked(&"a");
        assert_eq!(rests.failed("a", noon()).duration_since(noon()).as_secs(), 1);
    }

    #[test]
    fn a_clock_that_is_set_back_makes_nobody_rest_longer() {
        let rests = Rests::default();
        rests.failed("a", noon());
        assert!(!rests.is_resting(&"a", noon() - SignedDuration::from_hours(2)));
    }

    #[test]
    fn a_pass_goes_on_after_a_failure_and_names_the_first() {
        let mut pass = Pass::default();
        pass.note("one", broken());
        pass.note("two", Ok(true));
        for _ in 0..9 {
            pass.note("three", broken());
        }
        assert!(!pass.is_hopeless(), "one worked");
        assert_eq!(
            pass.end().unwrap_err().to_string(),
            "one: it is broken (and 9 more)"
        );
    }

    #[test]
    fn a_pass_in_which_everything_fails_is_given_up() {
        let mut pass = Pass::default();
        pass.note("nothing", Ok(false));
        pass.note("one", broken());
        pass.note("two", broken());
        assert!(!pass.is_hopeless());
        pass.note("three", broken());
        assert!(pass.is_hopeless());
    }
}
