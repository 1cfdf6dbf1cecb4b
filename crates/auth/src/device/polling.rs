//! When to ask the issuer whether somebody logged in, and when to give up: a state machine that knows the time only from
//! its caller.

use super::message::{BadAnswer, DeviceAnswer, TokenAnswer, Tokens};
use crate::told::Told;
use jiff::{SignedDuration, Timestamp};

/// RFC 8628: how much more time the issuer wants when it says `slow_down`.
const SLOWER: SignedDuration = SignedDuration::from_secs(5);
/// An issuer that does not answer is asked half as often each time, down to this.
const SLOWEST: SignedDuration = SignedDuration::from_mins(5);

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    Wait(Timestamp),
    Ask,
    GiveUp(GivenUp),
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nobody logged in yet; see [`Polling::turn`].
    Pending,
    Done(Box<Tokens>),
    GiveUp(GivenUp),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GivenUp {
    #[error("nobody logged in before the code expired; log in again")]
    Expired,
    #[error("the login was refused")]
    Denied,
    #[error("the issuer refused the login: {0}")]
    Refused(Told),
    #[error(transparent)]
    Answer(BadAnswer),
}

#[derive(Debug, Clone)]
pub struct Polling {
    interval: SignedDuration,
    next: Timestamp,
    end: Timestamp,
}

fn after(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

impl Polling {
    /// `now`: when the device answer came.
    pub fn new(answer: &DeviceAnswer, now: Timestamp) -> Self {
        Self {
            interval: answer.interval,
            next: after(now, answer.interval),
            end: after(now, answer.expires_in),
        }
    }

    pub fn turn(&self, now: Timestamp) -> Turn {
        if self.end <= now {
            return Turn::GiveUp(GivenUp::Expired);
        }
        match now < self.next {
            true => Turn::Wait(self.next.min(self.end)),
            false => Turn::Ask,
        }
    }

    /// The body that the issuer answered with, whatever its status.
    pub fn answered(&mut self, body: &[u8], now: Timestamp) -> Outcome {
        let word = match TokenAnswer::read(body) {
            Ok(TokenAnswer::Tokens(tokens)) => return Outcome::Done(tokens),
            Ok(TokenAnswer::Error(word)) => word,
            Err(error) => return Outcome::GiveUp(GivenUp::Answer(error)),
        };
        match word.as_str() {
            "authorization_pending" => {}
            "slow_down" => self.interval = self.interval.saturating_add(SLOWER),
            "access_denied" => return Outcome::GiveUp(GivenUp::Denied),
            "expired_token" => return Outcome::GiveUp(GivenUp::Expired),
            other => return Outcome::GiveUp(GivenUp::Refused(Told::new(other))),
        }
        self.next = after(now, self.interval);
        Outcome::Pending
    }

    /// The issuer did not answer, or answered that it is overloaded.
    pub fn unanswered(&mut self, now: Timestamp) {
        let doubled = self.interval.saturating_add(self.interval);
        self.interval = doubled.min(SLOWEST.max(self.interval));
        self.next = after(now, self.interval);
    }
}
