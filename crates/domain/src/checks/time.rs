//! Whether the host's clock can be trusted.

use super::facts::Subject;
use super::finding::Outcome;
use jiff::Timestamp;
use muster_vocabulary::NtpSourceState;

/// A host may lag this far (seconds): certificates made by the hub are not yet valid for it beyond that.
const LAG_LIMIT: i64 = 20 * 60;
/// And run ahead this far: certificates would already have expired.
const LEAD_LIMIT: i64 = 60 * 60;

pub(super) fn ntp_synced(subject: &Subject<'_>) -> Outcome {
    let is_wanted = subject.cluster.is_some() || subject.ntp_configured;
    match &subject.reports.ntp_sources {
        Some(sources)
            if sources
                .iter()
                .any(|source| source.source_state == NtpSourceState::Synced) =>
        {
            Outcome::pass("The host's clock follows a time server.")
        }
        _ if !is_wanted => Outcome::Silent,
        None => Outcome::wait("for the host to tell which time servers it follows"),
        Some(_) => Outcome::fail(
            "The host follows no time server; add one it can reach to the cluster or the InfraEnv, and check UDP port 123.",
        ),
    }
}

/// How a host's clock agrees with the hub's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    /// The host has not reported its time.
    Unknown,
    Right,
    Behind,
    Ahead,
}

/// What the host's clock said (seconds since 1970, 0 for nothing) when it was that time here.
pub fn skew(clock: i64, read_at: Timestamp) -> Skew {
    match clock - read_at.as_second() {
        _ if clock == 0 => Skew::Unknown,
        lead if lead < -LAG_LIMIT => Skew::Behind,
        lead if lead > LEAD_LIMIT => Skew::Ahead,
        _ => Skew::Right,
    }
}

pub(super) fn clock_agrees(subject: &Subject<'_>) -> Outcome {
    let lead = subject.clock - subject.clock_read_at.as_second();
    let minutes = lead.abs() / 60;
    match skew(subject.clock, subject.clock_read_at) {
        Skew::Unknown => Outcome::wait("for the host to tell its time"),
        Skew::Behind => Outcome::fail(format!(
            "The host's clock is {minutes} minutes behind; set its clock or give it a time server."
        )),
        Skew::Ahead => Outcome::fail(format!(
            "The host's clock is {minutes} minutes ahead; set its clock or give it a time server."
        )),
        Skew::Right => Outcome::pass("The host's clock agrees with the hub's."),
    }
}
