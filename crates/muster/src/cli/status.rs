//! `muster status`: how the hub itself is.

use crate::age::{since, span};
use crate::exit::Outcome;
use crate::output::{self, Column, Format, OutputArgs, col};
use jiff::Timestamp;
use muster_contract::client::HubClient;
use muster_contract::v1::status::{HubStatus, TlsStatus};

/// Show the state of the hub and of its workers
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster status
  muster status --hub http://hub.example.com:8090 -o json")]
pub struct StatusArgs {
    #[command(flatten)]
    output: OutputArgs,
}

const WORKERS: [Column; 5] = [
    col("WORKER"),
    col("RUNS"),
    col("FAILURES"),
    col("LAST RUN"),
    col("LAST ERROR"),
];

pub async fn run(hub: &HubClient, args: StatusArgs) -> Outcome {
    let status = hub.hub_status().await?;
    match args.output.output {
        Format::Table | Format::Wide => output::print(&text(hub.base(), &status, Timestamp::now())),
        Format::Json | Format::Yaml => output::data(args.output.output, &status),
        Format::Name => output::print(&format!("{}\n", hub.base())),
    }
}

const SET_ASIDE: [Column; 3] = [col("SET ASIDE"), col("ID"), col("WHY")];

/// Rows that the hub cannot read; nothing when there are none.
fn set_aside(status: &HubStatus) -> String {
    if status.set_aside.is_empty() {
        return String::new();
    }
    let rows = status.set_aside.iter();
    let rows = rows.map(|row| vec![row.kind.to_string(), row.id.clone(), row.reason.clone()]);
    let table = output::table(&SET_ASIDE, rows.collect(), false);
    match status.set_aside_count.saturating_sub(status.set_aside.len()) {
        0 => format!("\n{table}"),
        more => format!("\n{table}and {more} more\n"),
    }
}

/// What the hub shows of itself, and what it does not take.
fn certificate(tls: &TlsStatus, now: Timestamp) -> impl Iterator<Item = (&'static str, String)> {
    let left = tls.expires_at.duration_since(now).as_secs();
    let until = if left > 0 {
        format!("expires in {}", span(left))
    } else {
        format!("expired {} ago", span(-left))
    };
    let whose = if tls.self_signed { "own authority, " } else { "" };
    let shown = format!("{whose}{until}, SHA-256 {}", tls.fingerprint);
    let trouble = tls.trouble.clone().map(|trouble| ("TLS TROUBLE", trouble));
    std::iter::once(("TLS", shown)).chain(trouble)
}

fn text(url: &str, status: &HubStatus, now: Timestamp) -> String {
    let head = output::details(
        [
            ("HUB", url.to_owned()),
            ("VERSION", status.version.to_string()),
            ("DATABASE", status.database.to_string()),
            (
                "UPTIME",
                span(i64::try_from(status.uptime_seconds).unwrap_or(i64::MAX)),
            ),
            ("INFRA-ENVS", status.infra_envs.to_string()),
            ("HOSTS", status.hosts.to_string()),
            ("CLUSTERS", status.clusters.to_string()),
        ]
        .into_iter()
        .chain(status.tls.iter().flat_map(|tls| certificate(tls, now)))
        .chain(status.trouble.clone().map(|trouble| ("TROUBLE", trouble))),
    );
    let head = format!("{head}{}", set_aside(status));
    if status.workers.is_empty() {
        return head;
    }
    let rows = status.workers.iter().map(|worker| {
        vec![
            worker.name.to_string(),
            worker.runs.to_string(),
            worker.failures.to_string(),
            since(worker.last_run_at, now),
            worker.last_error.clone().unwrap_or_default(),
        ]
    });
    format!("{head}\n{}", output::table(&WORKERS, rows.collect(), false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_contract::v1::status::SetAside;

    #[test]
    fn a_certificate_that_is_not_taken_is_told_beside_the_one_that_is_shown() {
        let now = Timestamp::UNIX_EPOCH;
        let mut status = HubStatus::default();
        assert!(!text("https://hub", &status, now).contains("TLS"));
        status.tls = Some(TlsStatus {
            fingerprint: "AB:CD".into(),
            expires_at: now + jiff::SignedDuration::from_hours(72),
            self_signed: true,
            trouble: Some("--tls-key: it does not belong to the certificate".into()),
            ..TlsStatus::default()
        });
        let told = text("https://hub", &status, now);
        for part in [
            "own authority, expires in 3d, SHA-256 AB:CD",
            "TLS TROUBLE",
            "--tls-key: ",
        ] {
            assert!(told.contains(part), "{part} is not in\n{told}");
        }
    }

    #[test]
    fn rows_that_are_set_aside_are_named_with_the_reason() {
        let mut status = HubStatus::default();
        let shown = |status: &HubStatus| text("http://hub", status, Timestamp::UNIX_EPOCH);
        assert!(!shown(&status).contains("SET ASIDE"));
        status.set_aside = vec![SetAside {
            kind: "host".into(),
            id: "a/b".into(),
            reason: "its document is no JSON".into(),
        }];
        status.set_aside_count = 7;
        let told = shown(&status);
        for part in [
            "SET ASIDE",
            "host",
            "a/b",
            "its document is no JSON",
            "and 6 more",
        ] {
            assert!(told.contains(part), "{part} is not in\n{told}");
        }
    }
}
