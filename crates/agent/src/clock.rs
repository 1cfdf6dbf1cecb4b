//! Time: the agent asks for it and waits on it here, so that tests can move it.

use std::fmt::Debug;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub trait Clock: Debug + Send + Sync {
    /// Since 1970.
    fn now(&self) -> Duration;
    fn sleep(&self, time: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub struct Real;

impl Clock for Real {
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where real time is waited for"
    )]
    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// A clock that only moves when somebody sleeps, and remembers how long each slept.
#[derive(Debug, Default)]
pub struct Manual {
    state: Mutex<(Duration, Vec<Duration>)>,
}

impl Manual {
    pub fn slept(&self) -> Vec<Duration> {
        self.state.lock().map(|state| state.1.clone()).unwrap_or_default()
    }
}

impl Clock for Manual {
    fn now(&self) -> Duration {
        self.state.lock().map(|state| state.0).unwrap_or_default()
    }

    fn sleep(&self, time: Duration) {
        if let Ok(mut state) = self.state.lock() {
            state.0 += time;
            state.1.push(time);
        }
    }
}

/// Pauses that grow, with some chance in them so that many machines do not come back at the same moment.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    pub fn new(first: Duration, most: Duration) -> Self {
        Self { next: first, most }
    }

    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (self.next * 3 / 2).min(self.most);
        // Between 80 % and 120 %.
        pause.mul_f64(0.8 + 0.4 * chance())
    }
}

/// A number between 0 and 1 that differs between machines and moments.
pub fn chance() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    let bits = RandomState::new().hash_one(std::thread::current().id());
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_most() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
        let pauses: Vec<f64> = (0..20).map(|_| backoff.next_pause().as_secs_f64()).collect();
        assert!((0.8..=1.2).contains(&pauses[0]), "{pauses:?}");
        assert!((48.0..=72.0).contains(&pauses[19]), "{pauses:?}");
    }
}
