//! Waits for something to come true, woken by the hub's feed of changes.

use crate::age::{parse_span, span};
use crate::exit::{Failure, Kind, Outcome};
use muster_contract::client::{ClientError, HubClient};
use muster_contract::v1::change::Change;
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
    let start = Instant::now();
    let mut feed = hub.follow(from);
    let mut told = String::new();
    loop {
        match look().await {
            Ok(Seen::Done(result)) => return Ok(result),
            Ok(Seen::NotYet(text)) if text != told => {
                eprintln!("{:>5}  {text}", span(start.elapsed().as_secs() as i64));
                told = text;
            }
            Ok(Seen::NotYet(_)) => {}
            // The hub may be restarting; what was promised is still true afterwards.
            Err(failure) if failure.kind == Kind::Unreachable => tokio::time::sleep(RETRY).await,
            Err(failure) => return Err(failure),
        }
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(timed_out(timeout, &told));
            }
            // Rounded up, so that the last question is never one that does not wait.
            let seconds = (left.as_secs() + 1).min(LONGEST_POLL_SECONDS);
            match tokio::time::timeout(left, feed.next(seconds as u32)).await {
                Err(_) => return Err(timed_out(timeout, &told)),
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

fn timed_out(timeout: Duration, told: &str) -> Failure {
    let after = span(timeout.as_secs() as i64);
    Failure::new(
        Kind::TimedOut,
        format!("not done after {after}; last seen: {told}"),
    )
    .next("it goes on without you; wait longer with --timeout, or ask why with `explain`")
}
