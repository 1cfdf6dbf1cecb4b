//! Which keys of an issuer are trusted now, and when they are fetched again: a state machine that knows the time only from
//! its caller.

use super::jwks::{Jwks, PublicKey};
use crate::jws::Algorithm;
use jiff::{SignedDuration, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Tokens with keys that do not exist cause no more fetches than this; nor does an issuer that does not answer.
    pub at_most_every: SignedDuration,
    /// Keys are fetched now and then also if nobody misses any.
    pub refresh_every: SignedDuration,
    /// Tokens signed just before the issuer removed the key are still accepted.
    pub keep_removed_for: SignedDuration,
    /// If the issuer does not answer, its keys are trusted no longer than this.
    pub trust_for: SignedDuration,
}

impl Default for Rotation {
    fn default() -> Self {
        Self {
            at_most_every: SignedDuration::from_secs(30),
            refresh_every: SignedDuration::from_mins(60),
            keep_removed_for: SignedDuration::from_mins(10),
            trust_for: SignedDuration::from_hours(24),
        }
    }
}

/// Whether the caller shall fetch the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetch {
    /// Call [`Keys::begin`], fetch, then tell what came of it.
    Now,
    NotBefore(Timestamp),
}

#[derive(Debug)]
struct Kept {
    key: PublicKey,
    /// Since when the issuer does not show it any more.
    gone_since: Option<Timestamp>,
}

#[derive(Debug)]
pub struct Keys {
    rotation: Rotation,
    kept: Vec<Kept>,
    fetched_at: Option<Timestamp>,
    /// When a fetch began the last time, whatever came of it.
    asked_at: Option<Timestamp>,
}

/// `None`: so far away that it does not come.
fn after(at: Timestamp, by: SignedDuration) -> Option<Timestamp> {
    at.checked_add(by).ok()
}

impl Keys {
    pub fn new(rotation: Rotation) -> Self {
        Self {
            rotation,
            kept: Vec::new(),
            fetched_at: None,
            asked_at: None,
        }
    }

    /// Asked by a clock: when the keys are fetched next if nobody misses any.
    pub fn due(&self, now: Timestamp) -> Fetch {
        let due = self
            .fetched_at
            .map(|at| after(at, self.rotation.refresh_every).unwrap_or(Timestamp::MAX));
        match due {
            Some(due) if now < due => Fetch::NotBefore(due),
            Some(_) | None => self.missed(now),
        }
    }

    /// Asked when a token names a key that is not known: perhaps the issuer has a new one.
    pub fn missed(&self, now: Timestamp) -> Fetch {
        let again = self
            .asked_at
            .map(|at| after(at, self.rotation.at_most_every).unwrap_or(Timestamp::MAX));
        match again {
            Some(again) if now < again => Fetch::NotBefore(again),
            Some(_) | None => Fetch::Now,
        }
    }

    /// A fetch begins. Until the next is allowed nobody else is told to fetch, so one is enough for many tokens at once;
    /// one that never ends holds up nothing after that.
    pub fn begin(&mut self, now: Timestamp) {
        self.asked_at = Some(now);
    }

    /// What the issuer shows now. Keys that it does not show any more are kept for the grace.
    pub fn arrived(&mut self, jwks: Jwks, now: Timestamp) {
        self.fetched_at = Some(now);
        for kept in &mut self.kept {
            let shown = jwks.keys.contains(&kept.key);
            kept.gone_since = match shown {
                true => None,
                false => kept.gone_since.or(Some(now)),
            };
        }
        for key in jwks.keys {
            if !self.kept.iter().any(|kept| kept.key == key) {
                self.kept.push(Kept {
                    key,
                    gone_since: None,
                });
            }
        }
        let grace = self.rotation.keep_removed_for;
        self.kept
            .retain(|kept| kept.gone_since.is_none_or(|since| in_grace(since, grace, now)));
    }

    /// Whether the issuer answered recently enough.
    pub fn are_trusted(&self, now: Timestamp) -> bool {
        let until = self
            .fetched_at
            .map(|at| after(at, self.rotation.trust_for).unwrap_or(Timestamp::MAX));
        until.is_some_and(|until| now < until)
    }

    /// The keys with this name and algorithm; those with this algorithm if no name is told.
    pub(super) fn candidates(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        now: Timestamp,
    ) -> Vec<&PublicKey> {
        let grace = self.rotation.keep_removed_for;
        let usable = |kept: &&Kept| kept.gone_since.is_none_or(|since| in_grace(since, grace, now));
        let fits = |key: &&PublicKey| {
            key.algorithm() == algorithm && kid.is_none_or(|kid| key.kid.as_deref() == Some(kid))
        };
        self.kept
            .iter()
            .filter(usable)
            .map(|kept| &kept.key)
            .filter(fits)
            .collect()
    }
}

fn in_grace(since: Timestamp, grace: SignedDuration, now: Timestamp) -> bool {
    after(since, grace).is_none_or(|until| now < until)
}
