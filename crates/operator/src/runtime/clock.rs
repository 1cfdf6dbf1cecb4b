//! The time, in whole seconds as Kubernetes writes it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Fractions are lost on the way through the API; a time with one would never equal what comes back.
pub fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

pub fn time(at: Timestamp) -> Time {
    Time(seconds(at))
}

/// What an operator takes for the time: that of the system, or a later one to which a test has moved it.
#[derive(Debug, Clone, Default)]
pub struct Clock {
    ahead_seconds: Arc<AtomicI64>,
}

impl Clock {
    pub fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.ahead_seconds.load(Ordering::Relaxed));
        seconds(Timestamp::now() + ahead)
    }

    /// For all clones of it.
    pub fn advance(&self, by: Duration) {
        self.ahead_seconds
            .fetch_add(by.as_secs() as i64, Ordering::Relaxed);
    }
}
