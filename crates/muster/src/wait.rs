//! Waits for something to come true, woken by the hub's feed of changes.

use crate::age::{parse_span, span};
use crate::exit::{Failure, Kind, Outcome};
use muster_contract::client::{ClientError, HubClient};
use muster_contract::v1::change::Change;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tokio::time::Instant;

/// One question to the feed lasts at most this long, so that proxies in between do not cut it off.
const LONGEST_POLL_SECONDS: u64 = 25;
/// A hub that restarts is asked again this often.
const RETRY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, clap::Args)]
pub struct WaitArgs {
    /// Wait until it is done, with progress on stderr
    #[arg(long)]
    pub wait: bool,
    /// How long to wait at most
    #[arg(long, value_name = "SPAN", default_value = "10m", value_parser = parse_span)]
    pub timeout: Duration,
}

/// The same for installations, which take longer than anything else.
#[derive(Debug, Clone, clap::Args)]
pub struct InstallWaitArgs {
    /// Wait until it is done, with progress on stderr
    #[arg(long)]
    pub wait: bool,
    /// How long to wait at most
    #[arg(long, value_name = "SPAN", default_value = "3h", value_parser = parse_span)]
    pub timeout: Duration,
}

impl From<InstallWaitArgs> for WaitArgs {
    fn from(args: InstallWaitArgs) -> Self {
        let InstallWaitArgs { wait, timeout } = args;
        Self { wait, timeout }
    }
}

/// What a look at the world showed.
pub enum Seen<T> {
    Done(T),
    /// Not yet; the text says how far it is.
    NotYet(String),
}

/// The newest place in the feed; what is committed later comes after it.
pub async fn head(hub: &HubClient) -> Outcome<i64> {
    Ok(hub.hub_status().await?.newest_change)
}

/// Looks again after every change that concerns it, until it is done or the time is over.
///
/// `from` is a place in the feed from before the first look, so that no change falls in between.
pub async fn until<T>(
    hub: &HubClient,
    from: i64,
    timeout: Duration,
    concerns: impl Fn(&Change) -> bool,
    mut look: impl AsyncFnMut() -> Outcome<Seen<T>>,
) -> Outcome<T> {
    let mut teller = Teller::new();
    let start = teller.start;
    let mut feed = hub.follow(from);
    loop {
        match look().await {
            Ok(Seen::Done(result)) => return Ok(result),
            Ok(Seen::NotYet(text)) => teller.tell(text),
            // The hub may be restarting; what was promised is still true afterwards.
            Err(failure) if failure.kind == Kind::Unreachable => tokio::time::sleep(RETRY).await,
            Err(failure) => return Err(failure),
        }
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(timed_out(timeout, &teller.told));
            }
            // Rounded up, so that the last question is never one that does not wait.
            let seconds = (left.as_secs() + 1).min(LONGEST_POLL_SECONDS);
            match tokio::time::timeout(left, feed.next(seconds as u32)).await {
                Err(_) => return Err(timed_out(timeout, &teller.told)),
                Ok(Ok(page)) if page.changes.iter().any(&concerns) => break,
                Ok(Ok(_)) => {}
                Ok(Err(ClientError::Unreachable(_) | ClientError::Server(_))) => {
                    tokio::time::sleep(RETRY).await;
                    break;
                }
                Ok(Err(error)) => return Err(error.into()),
            }
        }
    }
}

/// Tells progress: one line that changes on a terminal, a line for each news elsewhere.
struct Teller {
    start: Instant,
    told: String,
    in_place: bool,
}

impl Teller {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            told: String::new(),
            in_place: std::io::stderr().is_terminal(),
        }
    }

    fn tell(&mut self, text: String) {
        // A log does not need a line for every percent.
        let is_news = match self.in_place {
            true => text != self.told,
            false => without_percentages(&text) != without_percentages(&self.told),
        };
        if is_news {
            let line = line(self.in_place, span(self.start.elapsed().as_secs() as i64), &text);
            // Whoever does not read it misses nothing but progress.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        self.told = text;
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if self.in_place && !self.told.is_empty() {
            eprintln!();
        }
    }
}

/// In place, the old line is erased, and a longer one than the terminal is cut off instead of wrapped.
fn line(in_place: bool, after: String, text: &str) -> String {
    match in_place {
        true => format!("\r\x1b[2K\x1b[?7l{after:>5}  {text}\x1b[?7h"),
        false => format!("{after:>5}  {text}\n"),
    }
}

fn without_percentages(text: &str) -> String {
    let words = text.split(' ');
    let kept = words.filter(|word| !word.trim_matches(['(', ')', ':', ',']).ends_with('%'));
    kept.collect::<Vec<_>>().join(" ")
}

fn timed_out(timeout: Duration, told: &str) -> Failure {
    let after = span(timeout.as_secs() as i64);
    Failure::new(
        Kind::TimedOut,
        format!("not done after {after}; last seen: {told}"),
    )
    .next("it goes on without you; wait longer with --timeout, or ask why with `explain`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_tells_stages_and_not_every_percent() {
        let plain = |text| without_percentages(text);
        assert_eq!(
            plain("demo installing 10%: a Rebooting"),
            plain("demo installing 12%: a Rebooting")
        );
        assert_eq!(plain("a is installing (20%)"), plain("a is installing (60%)"));
        assert_ne!(
            plain("demo installing 10%: a Joined"),
            plain("demo installing 10%: a Rebooting")
        );
    }

    #[test]
    fn a_terminal_shows_one_line_and_a_log_one_for_each_news() {
        assert_eq!(line(false, "3s".into(), "half"), "   3s  half\n");
        let shown = line(true, "3s".into(), "half");
        assert!(
            shown.starts_with("\r\x1b[2K") && !shown.contains('\n'),
            "{shown:?}"
        );
    }
}
