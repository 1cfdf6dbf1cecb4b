//! What a trial expects, and whether it came true: all of it is told, not only the first that did not.

use std::time::{Duration, Instant};

/// Long enough to tell "late" from "never".
const NEVER: Duration = Duration::from_secs(20);
/// Between two looks at something that others bring about.
const PACE: Duration = Duration::from_millis(20);

pub struct Claims {
    start: Instant,
    broken: Vec<String>,
    done: bool,
}

impl Claims {
    pub fn new(seed: u64) -> Self {
        println!("seed {seed}; MUSTER_CHAOS_SEED={seed} repeats it");
        Self {
            start: Instant::now(),
            broken: Vec::new(),
            done: false,
        }
    }

    /// What happens, for whoever reads why a trial failed.
    pub fn tell(&self, what: impl std::fmt::Display) {
        println!("{:7.3} {what}", self.start.elapsed().as_secs_f64());
    }

    pub fn at(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.start).as_secs_f64()
    }

    pub fn hold(&mut self, holds: bool, what: impl std::fmt::Display) {
        if !holds {
            self.tell(format_args!("NOT TRUE: {what}"));
            self.broken.push(what.to_string());
        }
    }

    /// Comes true within `limit` after `since`.
    pub async fn soon(
        &mut self,
        since: Instant,
        limit: Duration,
        what: &str,
        look: impl AsyncFnMut() -> bool,
    ) {
        let came = came_true(since, limit.max(NEVER), look).await;
        let text = match came {
            Some(took) => format!("{what}: after {:.1} s", took.as_secs_f64()),
            None => format!("{what}: not within {} s", limit.max(NEVER).as_secs()),
        };
        self.tell(&text);
        let in_time = came.is_some_and(|took| took <= limit);
        self.hold(in_time, format_args!("{text}, of {} s", limit.as_secs()));
    }

    pub fn end(mut self) {
        self.done = true;
        assert!(self.broken.is_empty(), "{}", self.summary());
    }

    fn summary(&self) -> String {
        format!(
            "{} claims did not hold:\n  {}",
            self.broken.len(),
            self.broken.join("\n  ")
        )
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        if !self.done && !self.broken.is_empty() {
            println!("{}", self.summary());
        }
    }
}

/// How long after `since` it came true; `None` if it did not in time.
pub async fn came_true(
    since: Instant,
    limit: Duration,
    mut look: impl AsyncFnMut() -> bool,
) -> Option<Duration> {
    let mut pace = tokio::time::interval(PACE);
    loop {
        pace.tick().await;
        if look().await {
            return Some(since.elapsed());
        }
        if since.elapsed() > limit {
            return None;
        }
    }
}

/// Lets so much time pass with the trouble going on.
pub async fn lasts(time: Duration) {
    came_true(Instant::now(), time, async || false).await;
}
