//! Shows what a verb would do, and what stands in its way.

use crate::exit::{Failure, Kind, Outcome};
use crate::output::{self, Format};
use muster_contract::client::{ClientError, HubClient};
use muster_contract::v1::plan::{PlanRequest, PlanView};
use std::fmt::Write;

/// For verbs that can be tried without doing anything.
#[derive(Debug, Clone, clap::Args)]
pub struct DryRunArgs {
    /// Show what would happen and what blocks it, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Prints the plan; fails like the verb itself would when it is not allowed.
pub async fn show(hub: &HubClient, request: &PlanRequest, format: Format) -> Outcome {
    let plan = hub.plan(request).await?;
    match format {
        Format::Table | Format::Wide => output::print(&text(&plan))?,
        Format::Json | Format::Yaml => output::data(format, &plan)?,
        Format::Name => output::print(&subjects(&plan))?,
    }
    if plan.allowed { Ok(()) } else { Err(refusal(&plan)) }
}

/// Adds the next action to a refusal whose wire has no place for it, by asking for the plan of the same verb.
pub async fn with_next_action(hub: &HubClient, request: &PlanRequest, error: ClientError) -> Failure {
    let conflict = matches!(
        &error,
        ClientError::Refused {
            next_action: None,
            ..
        }
    );
    let mut failure = Failure::from(error);
    if conflict
        && let Ok(plan) = hub.plan(request).await
        && !plan.allowed
    {
        failure.next = refusal(&plan).next;
        // REST v2 has one field for both; said twice it only confuses.
        if let Some(next) = &failure.next
            && let Some(cause) = failure.cause.strip_suffix(next.as_str())
        {
            failure.cause = cause.trim_end().to_owned();
        }
    }
    failure
}

pub fn text(plan: &PlanView) -> String {
    let mut text = format!(
        "{}: {}\n",
        plan.verb,
        if plan.allowed { "allowed" } else { "refused" }
    );
    for step in &plan.steps {
        let arrow = match (&step.from, &step.to) {
            (Some(from), Some(to)) => format!("  {from} -> {to}"),
            (None, Some(to)) => format!("  -> {to}"),
            (Some(from), None) => format!("  from {from}"),
            (None, None) => String::new(),
        };
        let _ = writeln!(text, "  {}. {}: {}{arrow}", step.order, step.subject, step.action);
        if let Some(note) = &step.note {
            let _ = writeln!(text, "     {note}");
        }
        for lost in &step.destroys {
            let _ = writeln!(text, "     lost for good: {lost}");
        }
    }
    for blocker in &plan.blockers {
        let _ = writeln!(
            text,
            "  blocked by {}: {} [{}]",
            blocker.subject, blocker.reason, blocker.code
        );
        if !blocker.next_action.is_empty() {
            let _ = writeln!(text, "     next: {}", blocker.next_action);
        }
    }
    for warning in &plan.warnings {
        let _ = writeln!(text, "  warning: {warning}");
    }
    text
}

fn refusal(plan: &PlanView) -> Failure {
    match plan.blockers.first() {
        Some(blocker) => Failure::new(Kind::Refused, format!("{}: {}", blocker.subject, blocker.reason))
            .next(&blocker.next_action),
        None => Failure::new(Kind::Refused, format!("{} is not allowed now", plan.verb)),
    }
}

fn subjects(plan: &PlanView) -> String {
    plan.steps
        .iter()
        .map(|step| step.subject.clone() + "\n")
        .collect()
}
