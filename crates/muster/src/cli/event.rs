//! `muster event`: what happened, in words people read.

use crate::exit::Outcome;
use crate::input::{comma_list, word_parser};
use crate::names::Names;
use crate::output::{self, Column, Format, OutputArgs, Shown, col, wide};
use crate::{resolve, wait};
use muster_contract::client::HubClient;
use muster_contract::rules::CommaList;
use muster_contract::v2::event::{EventOrder, EventSeverity, EventView, EventsQuery};
use std::collections::HashSet;

/// Waited for in one question. An event without a change in the feed is seen this much later at worst.
const POLL_SECONDS: u32 = 10;
/// More events than this between two reads are a flood nobody reads.
const BURST: i64 = 1000;

/// Show what happened to hosts, clusters and InfraEnvs
#[derive(Debug, clap::Args)]
pub struct EventArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: EventVerb,
}

#[derive(Debug, clap::Subcommand)]
enum EventVerb {
    List(ListEvents),
}

/// List events, oldest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  muster event list
  muster event list --cluster demo --severity warning,error
  muster event list --host worker-0 --follow")]
struct ListEvents {
    /// Only of this cluster
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,
    /// Only of this host
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only of this InfraEnv
    #[arg(long, value_name = "INFRA-ENV")]
    infra_env: Option<String>,
    /// Only of these severities
    #[arg(long, value_delimiter = ',', value_name = "SEVERITY", value_parser = word_parser!(EventSeverity))]
    severity: Vec<EventSeverity>,
    /// How many of the newest to show, 5000 at most
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(..=5000))]
    limit: u32,
    /// Go on and print events as they come
    #[arg(long, short)]
    follow: bool,
}

impl Shown for EventView {
    const COLUMNS: &'static [Column] = &[
        col("AGE"),
        wide("TIME"),
        col("SEVERITY"),
        wide("CLUSTER"),
        wide("INFRA-ENV"),
        wide("NAME"),
        col("MESSAGE"),
    ];

    fn cells(&self, names: &Names) -> Vec<String> {
        vec![
            crate::age::since(self.event_time.0, names.now),
            self.event_time.0.map(|at| format!("{at:.0}")).unwrap_or_default(),
            self.severity.to_string(),
            names.of_some(self.cluster_id),
            names.of_some(self.infra_env_id),
            self.name.to_string(),
            self.message.clone(),
        ]
    }

    fn handle(&self) -> String {
        self.name.to_string()
    }
}

pub async fn run(hub: &HubClient, args: EventArgs) -> Outcome {
    let format = args.output.output;
    match args.verb {
        EventVerb::List(list) => events(hub, list, format).await,
    }
}

async fn events(hub: &HubClient, args: ListEvents, format: Format) -> Outcome {
    let severities: Vec<String> = args.severity.iter().map(ToString::to_string).collect();
    let mut query = EventsQuery {
        order: Some(EventOrder::Desc),
        limit: Some(i64::from(args.limit)),
        severities: comma_list(&severities).map(|_| CommaList(args.severity.clone())),
        ..EventsQuery::default()
    };
    if let Some(cluster) = &args.cluster {
        query.cluster_id = Some(resolve::cluster(hub, cluster).await?.id);
    }
    if let Some(infra_env) = &args.infra_env {
        query.infra_env_id = Some(resolve::infra_env(hub, infra_env).await?.id);
    }
    if let Some(host) = &args.host {
        let host = resolve::host(hub, host).await?;
        query.host_id = Some(host.id);
        query.infra_env_id.get_or_insert(host.infra_env_id);
    }
    let place = if args.follow { wait::head(hub).await? } else { 0 };
    let mut events = hub.events(&query).await?;
    events.reverse();
    if !args.follow {
        return output::list(format, &events, &Names::load(hub).await?);
    }
    let seen = events.iter().map(key).collect();
    events
        .iter()
        .try_for_each(|event| output::print(&line(format, event)))?;
    follow(hub, query, place, seen, format).await
}

/// The feed wakes, the list says what is new.
async fn follow(
    hub: &HubClient,
    mut query: EventsQuery,
    place: i64,
    mut seen: HashSet<Key>,
    format: Format,
) -> Outcome {
    let mut feed = hub.follow(place);
    query.limit = Some(BURST);
    loop {
        feed.next(POLL_SECONDS).await?;
        let mut events = hub.events(&query).await?;
        events.reverse();
        for event in events.iter().filter(|event| !seen.contains(&key(event))) {
            output::print(&line(format, event))?;
        }
        // What fell out of the list cannot come back as new: only the newest are asked for.
        seen = seen.into_iter().chain(events.iter().map(key)).collect();
        let oldest = events.first().and_then(|event| event.event_time.0);
        seen.retain(|(at, ..)| *at >= oldest);
    }
}

/// Events have no id on this wire; this is enough to tell them apart.
type Key = (Option<jiff::Timestamp>, String, Option<uuid::Uuid>, String);

fn key(event: &EventView) -> Key {
    (
        event.event_time.0,
        event.name.to_string(),
        event.host_id,
        event.message.clone(),
    )
}

fn line(format: Format, event: &EventView) -> String {
    match format {
        Format::Table | Format::Wide => {
            let at = event
                .event_time
                .0
                .map(|at| format!("{at:.0}"))
                .unwrap_or_default();
            format!(
                "{at}  {:<8}  {}\n",
                event.severity,
                event.message.replace('\n', " ")
            )
        }
        Format::Json => serde_json::to_string(event).unwrap_or_default() + "\n",
        Format::Yaml => format!("---\n{}", serde_norway::to_string(event).unwrap_or_default()),
        Format::Name => format!("{}\n", event.name),
    }
}
