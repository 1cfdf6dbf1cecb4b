//! `muster changes`: the feed of everything that was committed.

use crate::exit::Outcome;
use crate::output::{self, Format, OutputArgs};
use crate::wait;
use muster_contract::client::HubClient;
use muster_contract::v1::change::{Change, ChangesQuery};
use muster_contract::v1::row_status::RowStatus;

/// Waited for in one question; proxies in between cut off much longer ones.
const POLL_SECONDS: u32 = 25;

/// Show what changes, as it happens
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster changes                      everything still in the feed
  muster changes --follow             what changes from now on
  muster changes --follow --after 0   all of it, and then what comes
  muster changes --follow -o json     one JSON object per line")]
pub struct ChangesArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Go on and print changes as they come
    #[arg(long, short)]
    follow: bool,
    /// Begin after this number
    #[arg(long, value_name = "NUMBER")]
    after: Option<i64>,
}

pub async fn run(hub: &HubClient, args: ChangesArgs) -> Outcome {
    let mut after = match args.after {
        Some(after) => after,
        None if args.follow => wait::head(hub).await?,
        None => 0,
    };
    loop {
        let wait_seconds = args.follow.then_some(POLL_SECONDS);
        let page = hub
            .changes(&ChangesQuery {
                after: Some(after),
                limit: None,
                wait_seconds,
            })
            .await?;
        for change in &page.changes {
            output::print(&line(args.output.output, change))?;
        }
        if page.changes.is_empty() && !args.follow {
            return Ok(());
        }
        after = page.next;
    }
}

/// A stream has no head and no end, so each change is one line (or one YAML document).
fn line(format: Format, change: &Change) -> String {
    match format {
        Format::Table | Format::Wide => format!(
            "{:>8}  {:.0}  {:<9}  {}  {:<6}  {}\n",
            change.seq,
            change.at,
            change.kind,
            change.id,
            change.op,
            change.status.as_ref().map_or("-", RowStatus::as_str)
        ),
        Format::Json => serde_json::to_string(change).unwrap_or_default() + "\n",
        Format::Yaml => format!("---\n{}", serde_norway::to_string(change).unwrap_or_default()),
        Format::Name => format!("{}/{}\n", change.kind, change.id),
    }
}
