//! Whether the host's clock can be trusted.

use super::facts::Subject;
use super::finding::Outcome;

/// A host may lag this far (seconds): certificates made by the hub are not yet valid for it beyond that.
const LAG_LIMIT: i64 = 20 * 60;
/// And run ahead this far: certificates would already have expired.
const LEAD_LIMIT: i64 = 60 * 60;

pub(super) fn ntp_synced(subject: &Subject<'_>) -> Outcome {
    let is_wanted = subject.cluster.is_some() || subject.ntp_configured;
    match &subject.reports.ntp_sources {
        Some(sources) if sources.iter().any(|source| source.source_state == "synced") => {
            Outcome::pass("The host's clock follows a time server.")
        }
        _ if !is_wanted => Outcome::Silent,
        None => Outcome::wait("for the host to tell which time servers it follows"),
        Some(_) => Outcome::fail(
            "The host follows no time server; add one it can reach to the cluster or the InfraEnv, and check UDP port 123.",
        ),
    }
}

pub(super) fn clock_agrees(subject: &Subject<'_>) -> Outcome {
    if subject.clock == 0 {
        return Outcome::wait("for the host to tell its time");
    }
    let lead = subject.clock - subject.clock_read_at.as_second();
    let minutes = lead.abs() / 60;
    match lead {
        lead if lead < -LAG_LIMIT => Outcome::fail(format!(
            "The host's clock is {minutes} minutes behind; set its clock or give it a time server."
        )),
        lead if lead > LEAD_LIMIT => Outcome::fail(format!(
            "The host's clock is {minutes} minutes ahead; set its clock or give it a time server."
        )),
        _ => Outcome::pass("The host's clock agrees with the hub's."),
    }
}
