//! The one place that knows the time; a test moves it by hand.

use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

#[derive(Debug, Clone, Default)]
pub enum Clock {
    #[default]
    System,
    /// Microseconds since 1970, moved only by whoever holds it.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    pub fn manual(start: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(start.as_microsecond())))
    }

    pub fn now(&self) -> Timestamp {
        match self {
            // Microseconds are what the database keeps; finer digits would not survive a restart.
            Self::System => from_micros(Timestamp::now().as_microsecond()),
            Self::Manual(micros) => from_micros(micros.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock; the system's cannot be moved.
    pub fn advance(&self, by: SignedDuration) {
        if let Self::Manual(micros) = self {
            micros.fetch_add(
                i64::try_from(by.as_micros()).unwrap_or(i64::MAX),
                Ordering::SeqCst,
            );
        }
    }
}

pub(crate) fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}
