//! Waiting for a condition with a deadline: the only place of this tool that pauses.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::process;

/// Short enough that nobody notices it, long enough to cost no CPU.
const PAUSE: Duration = Duration::from_millis(25);

/// Asks `probe` again and again until it has an answer, fails, or `limit` has passed.
pub fn until<T>(what: &str, limit: Duration, probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    until_every(PAUSE, what, limit, probe)
}

/// The same with another pause, for probes that cost something.
pub fn until_every<T>(
    every: Duration,
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(answer) = probe()? {
            return Ok(answer);
        }
        if process::interrupted() {
            bail!("interrupted while waiting for {what}");
        }
        if started.elapsed() > limit {
            bail!("waited {} s for {what}, but it did not happen", limit.as_secs());
        }
        pause(every);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the pause between two looks at a condition with a deadline"
)]
pub fn pause(how_long: Duration) {
    std::thread::sleep(how_long);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_the_wait() {
        let mut looks = 0;
        let answer = until("three looks", Duration::from_secs(5), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        });
        assert_eq!(answer.unwrap(), 3);
    }

    #[test]
    fn a_deadline_ends_the_wait_and_says_for_what_it_waited() {
        let answer = until::<()>("a train", Duration::ZERO, || Ok(None));
        assert!(answer.unwrap_err().to_string().contains("a train"));
    }
}
