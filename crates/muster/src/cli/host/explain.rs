//! `muster host explain` and `verdicts`: why a host is in its state, and what it is good for.

use super::Named;
use crate::age::since;
use crate::exit::Outcome;
use crate::output::{self, Column, Format, col};
use crate::{plan, resolve};
use clap::Args;
use jiff::Timestamp;
use muster_contract::client::HubClient;
use muster_contract::v1::explain::{ExplainView, RoleVerdict};
use muster_contract::v1::host::HostsQuery;
use muster_contract::v1::plan::{PlanView, Verb};
use serde_json::json;
use std::fmt::Write;

/// Show why a host is in its state, what blocks it, and what to do next
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host explain worker-0
  muster host explain worker-0 --cluster demo   and whether it can be lent to demo")]
pub struct ExplainArgs {
    #[command(flatten)]
    host: Named,
    /// Also show what binding or moving it to this cluster would do
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
}

/// Show for which roles hosts are good enough
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  muster host verdicts                 all free hosts
  muster host verdicts --cluster demo  the hosts that demo has
  muster host verdicts worker-0")]
pub struct VerdictsArgs {
    /// Only this host
    #[arg(value_name = "HOST")]
    host: Option<String>,
    /// Only of this InfraEnv
    #[arg(long, value_name = "INFRA-ENV")]
    infra_env: Option<String>,
    /// Hosts of this cluster instead of free ones
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
}

pub async fn explain(hub: &HubClient, args: ExplainArgs, format: Format) -> Outcome {
    let host = resolve::host(hub, &args.host.host).await?;
    let Some(cluster) = &args.cluster else {
        let told = hub.explain_host(host.infra_env_id, host.id).await?;
        return show(&told, &[], format);
    };
    let cluster = resolve::cluster(hub, cluster).await?;
    let told = hub
        .explain_host_for(host.infra_env_id, host.id, cluster.id)
        .await?;
    // Whether it is bound or moved depends on where it is; the hub knows best.
    let there = told
        .verbs
        .iter()
        .filter(|plan| plan.verb == Verb::Bind || plan.verb == Verb::Move);
    show(&told, &there.cloned().collect::<Vec<_>>(), format)
}

/// Prints an explanation, and plans that were asked for with it.
pub fn show(told: &ExplainView, plans: &[PlanView], format: Format) -> Outcome {
    match format {
        Format::Table | Format::Wide => {
            let plans = plans.iter().map(|plan| format!("\n{}", plan::text(plan)));
            output::print(
                &(text(told, format == Format::Wide, Timestamp::now()) + &plans.collect::<String>()),
            )
        }
        Format::Json | Format::Yaml if plans.is_empty() => output::data(format, told),
        Format::Json | Format::Yaml => output::data(format, &json!({"explanation": told, "plans": plans})),
        Format::Name => output::print(&format!("{}\n", told.subject)),
    }
}

fn text(told: &ExplainView, wide: bool, now: Timestamp) -> String {
    let mut text = format!("{} is {}", told.subject, told.status);
    if told.since.is_some() {
        let _ = write!(text, " for {}", since(told.since, now));
    }
    let _ = write!(text, "\n  {}\n", told.status_info);
    // The reason often begins with the text of the state, which is there already.
    let why = told
        .why
        .strip_prefix(&told.status_info)
        .unwrap_or(&told.why)
        .trim();
    for (title, line) in [("why", why), ("next", &told.next_action)] {
        if !line.is_empty() {
            let _ = writeln!(text, "{title}: {line}");
        }
    }
    if let Some(deadline) = &told.deadline {
        let left = crate::age::span(deadline.at.duration_since(now).as_secs());
        let _ = writeln!(text, "in {left} at the latest: {}", deadline.then);
    }
    for blocker in &told.blockers {
        let _ = writeln!(
            text,
            "blocked by {}: {} [{}]",
            blocker.subject, blocker.reason, blocker.code
        );
        if !blocker.next_action.is_empty() {
            let _ = writeln!(text, "  next: {}", blocker.next_action);
        }
    }
    for verdict in &told.verdicts {
        let _ = writeln!(text, "{}", sentence(verdict));
    }
    for verb in &told.verbs {
        if wide {
            text.push_str(&plan::text(verb));
        } else {
            let because = verb
                .blockers
                .first()
                .map(|blocker| format!(": {}", blocker.reason))
                .unwrap_or_default();
            let answer = if verb.allowed { "yes" } else { "no" };
            let _ = writeln!(text, "can {}: {answer}{because}", verb.verb);
        }
    }
    text
}

fn sentence(verdict: &RoleVerdict) -> String {
    match verdict.fits {
        true => format!("fits {}", verdict.role),
        false => format!("does not fit {}: {}", verdict.role, verdict.reasons.join("; ")),
    }
}

const VERDICTS: [Column; 4] = [col("HOST"), col("ROLE"), col("FITS"), col("REASONS")];

pub async fn verdicts(hub: &HubClient, args: VerdictsArgs, format: Format) -> Outcome {
    let hosts = match &args.host {
        Some(host) => vec![resolve::host(hub, host).await?],
        None => {
            let mut query = HostsQuery::default();
            match &args.cluster {
                Some(cluster) => query.cluster_id = Some(resolve::cluster(hub, cluster).await?.id),
                None => query.free = Some(true),
            }
            if let Some(infra_env) = &args.infra_env {
                query.infra_env_id = Some(resolve::infra_env(hub, infra_env).await?.id);
            }
            resolve::hosts(hub, query).await?
        }
    };
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for host in &hosts {
        let told = hub.explain_host(host.infra_env_id, host.id).await?;
        for verdict in &told.verdicts {
            let fits = if verdict.fits { "yes" } else { "no" };
            rows.push(vec![
                host.name.clone(),
                verdict.role.to_string(),
                fits.into(),
                verdict.reasons.join("; "),
            ]);
        }
        values.push(json!({"host_id": host.id, "name": host.name, "verdicts": told.verdicts}));
    }
    match format {
        Format::Table | Format::Wide => output::print(&output::table(&VERDICTS, rows, true)),
        Format::Json | Format::Yaml => output::data(format, &values),
        Format::Name => output::print(
            &hosts
                .iter()
                .map(|host| format!("{}\n", host.id))
                .collect::<String>(),
        ),
    }
}
