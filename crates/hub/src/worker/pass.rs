//! A pass over many things: what fails keeps nobody else waiting, rests longer each time, and is reported.

use crate::error::Error;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Nothing rests longer than this.
const LONGEST: SignedDuration = SignedDuration::from_mins(5);
/// When the database was not there for so many in a row, the rest need not wait for it as well.
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

    /// It rests; says until when. A database that does not answer is not its fault: it is tried again as soon as that
    /// may be over.
    pub fn failed(&self, key: K, now: Timestamp, error: &Error) -> Timestamp {
        self.rest(key, now, !error.is_unavailable())
    }

    /// The same for work that ended without an error to tell.
    pub fn broke(&self, key: K, now: Timestamp) -> Timestamp {
        self.rest(key, now, true)
    }

    fn rest(&self, key: K, now: Timestamp, counts: bool) -> Timestamp {
        let mut all = self.lock();
        let failures = all.get(&key).map_or(0, |rest| rest.failures);
        let doublings = if counts { failures.min(9) } else { 0 };
        let pause = SignedDuration::from_secs(1 << doublings).min(LONGEST);
        let until = now.checked_add(pause).unwrap_or(now);
        let failures = failures.saturating_add(u32::from(counts));
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
    /// For how many in a row the database was not there.
    in_vain: usize,
}

impl Pass {
    /// `Ok(true)` is work that was done, `Ok(false)` that there was none.
    pub fn note(&mut self, what: impl fmt::Display, result: Result<bool, Error>) {
        match &result {
            Err(error) if error.is_unavailable() => self.in_vain += 1,
            // It says nothing about the database: nobody had to ask it.
            Ok(false) => {}
            Ok(true) | Err(_) => self.in_vain = 0,
        }
        match (result, &mut self.failed) {
            (Ok(did), _) => self.done += usize::from(did),
            // It stays undone until the row is mended, and is reported where such rows are.
            (Err(error), _) if error.is_set_aside() => {}
            (Err(error), None) => {
                let what = what.to_string();
                let others = 0;
                self.failed = Some(Failed { what, others, error });
            }
            (Err(mut error), Some(failed)) => {
                failed.others += 1;
                let mut what = what.to_string();
                // That the database does not answer is what whoever asked must know first.
                if error.is_unavailable() && !failed.error.is_unavailable() {
                    std::mem::swap(&mut error, &mut failed.error);
                    std::mem::swap(&mut what, &mut failed.what);
                }
                tracing::warn!(%what, %error, "a worker failed here, too");
            }
        }
    }

    /// Going on would only mean to wait for the same again.
    pub fn is_hopeless(&self) -> bool {
        self.in_vain >= HOPELESS
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
    use muster_store::StoreError;

    fn noon() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn broken() -> Error {
        Error::BadReport("it is broken".into())
    }

    fn away() -> Error {
        StoreError::closed().into()
    }

    #[test]
    fn who_fails_rests_longer_each_time_and_not_for_ever() {
        let rests = Rests::default();
        let fail = || {
            rests
                .failed("a", noon(), &broken())
                .duration_since(noon())
                .as_secs()
        };
        let pauses: Vec<_> = (0..12).map(|_| fail()).collect();
        assert_eq!(pauses[..5], [1, 2, 4, 8, 16]);
        assert_eq!(pauses[9..], [300, 300, 300]);
        assert!(rests.is_resting(&"a", noon()) && !rests.is_resting(&"b", noon()));
        assert_eq!(rests.next(noon()), Some(Duration::from_secs(300)));
        assert_eq!(rests.over(noon() + LONGEST), ["a"]);
        rests.worked(&"a");
        assert_eq!(fail(), 1);
    }

    #[test]
    fn a_database_that_is_away_makes_nobody_rest_longer() {
        let rests = Rests::default();
        let fail = |error| rests.failed("a", noon(), &error).duration_since(noon()).as_secs();
        assert_eq!([fail(broken()), fail(broken())], [1, 2]);
        assert_eq!([fail(away()), fail(away()), fail(away())], [1, 1, 1]);
        assert_eq!(fail(broken()), 4, "what it failed at by itself is not forgotten");
    }

    #[test]
    fn a_clock_that_is_set_back_makes_nobody_rest_longer() {
        let rests = Rests::default();
        rests.broke("a", noon());
        assert!(!rests.is_resting(&"a", noon() - SignedDuration::from_hours(2)));
    }

    #[test]
    fn a_pass_goes_on_after_failures_however_many_and_names_the_first() {
        let mut pass = Pass::default();
        for what in ["one", "two", "three", "four"] {
            pass.note(what, Err(broken()));
            assert!(!pass.is_hopeless(), "{what}");
        }
        assert_eq!(
            pass.end().unwrap_err().to_string(),
            "one: it is broken (and 3 more)"
        );
    }

    #[test]
    fn a_pass_is_given_up_when_the_database_goes_away_in_the_middle_of_it() {
        let mut pass = Pass::default();
        pass.note("one", Ok(true));
        pass.note("two", Err(away()));
        pass.note("three", Err(away()));
        pass.note("four", Err(broken()));
        pass.note("five", Err(away()));
        pass.note("six", Err(away()));
        assert!(!pass.is_hopeless(), "it answered in between");
        pass.note("nothing to do", Ok(false));
        pass.note("seven", Err(away()));
        assert!(pass.is_hopeless());
        assert!(Error::from(pass.end().unwrap_err()).is_unavailable());
    }

    #[test]
    fn a_database_that_is_away_is_told_before_what_is_broken() {
        let mut pass = Pass::default();
        pass.note("one", Err(broken()));
        pass.note("two", Err(away()));
        let failed = pass.end().unwrap_err();
        assert!(failed.to_string().starts_with("two: "), "{failed}");
        assert!(Error::from(failed).is_unavailable());
    }
}
