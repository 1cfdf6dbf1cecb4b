//! The feed of changes: read at once, waited for, or followed as a stream.

use super::input::{V1, problem};
use crate::Hub;
use crate::error::Error;
use crate::http::problem::{ProblemV1, json};
use crate::http::query::Args;
use crate::worker::feed;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream::{self, Stream, StreamExt};
use muster_contract::v1::change::{Change, ChangeKind, ChangeOp, ChangesPage, ChangesQuery};
use muster_contract::v1::problem::Problem;
use muster_contract::v1::row_status::RowStatus;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;

const PAGE: u32 = 1000;
const LARGEST_PAGE: u32 = 10_000;
/// Proxies in between cut off much longer questions.
const LONGEST_WAIT: u32 = 30;
/// Often enough that no proxy takes the stream for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(utoipa::OpenApi)]
#[openapi(paths(changes), components(schemas(Change)))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route("/changes", get(changes))
}

/// Follow changes
///
/// Every committed change in order. Ask again with `after` set to `next`, waiting up to 30 seconds for news; or ask
/// with `Accept: text/event-stream` for a stream whose events carry their number as `id`, resumed with
/// `Last-Event-ID` or `after`. Without `after`, or after 0, the feed starts with the oldest change still kept.
#[utoipa::path(get, path = "/api/muster/v1/changes", operation_id = "listChanges", tag = "muster",
    params(ChangesQuery, ("Last-Event-ID" = Option<i64>, Header, description = "Where a stream was cut off")),
    responses((status = 200, description = "Changes, and where to go on", content(
            (ChangesPage = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "Something in the query is wrong", body = Problem),
        (status = 410, description = "The feed no longer reaches back so far: read everything anew", body = Problem)))]
async fn changes(
    State(hub): State<Hub>,
    headers: HeaderMap,
    V1(Args(query)): V1<Args<ChangesQuery>>,
) -> Result<Response, ProblemV1> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let streams = text(header::ACCEPT).is_some_and(|accept| accept.contains("text/event-stream"));
    // A stream that was cut off knows better where it was than the address it was opened with.
    let resumed =
        text(header::HeaderName::from_static("last-event-id")).and_then(|id| id.trim().parse().ok());
    let after = resumed.filter(|_| streams).or(query.after).unwrap_or(0);
    let after = place(&hub, after).await?;
    if streams {
        let keep_alive = KeepAlive::new().interval(HEARTBEAT);
        return Ok(Sse::new(events(hub, after))
            .keep_alive(keep_alive)
            .into_response());
    }
    let limit = query.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let wait = query.wait_seconds.unwrap_or(0).min(LONGEST_WAIT);
    let changes = wait_for(&hub, after, limit, Duration::from_secs(wait.into())).await?;
    let next = changes.last().map_or(after, |change| change.seq);
    Ok(json(StatusCode::OK, &ChangesPage { changes, next }))
}

/// Where to read on, if the feed still reaches there.
async fn place(hub: &Hub, after: i64) -> Result<i64, ProblemV1> {
    let range = hub.store.changes_range().await?;
    let lost = |detail| {
        let next = "List the objects anew, then follow the feed without `after`.";
        problem(StatusCode::GONE, "feed-pruned", detail, next)
    };
    match after {
        after if after <= 0 => Ok(range.pruned),
        after if after < range.pruned => Err(lost(format!(
            "The hub no longer keeps the changes up to {}, so some after {after} are lost.",
            range.pruned
        ))),
        after if after > range.last => Err(lost(format!(
            "The newest change is {}; {after} belongs to another database.",
            range.last
        ))),
        after => Ok(after),
    }
}

async fn wait_for(hub: &Hub, after: i64, limit: u32, wait: Duration) -> Result<Vec<Change>, Error> {
    // Subscribed before the read, so that no change falls between the two.
    let mut newest = hub.newest_change.subscribe();
    let found = read(hub, after, limit).await?;
    if !found.is_empty() || wait.is_zero() {
        return Ok(found);
    }
    let has_news = tokio::time::timeout(wait, newest.wait_for(|seq| *seq > after))
        .await
        .is_ok();
    if has_news {
        read(hub, after, limit).await
    } else {
        Ok(Vec::new())
    }
}

/// Nobody hears of a change that this hub could not show.
async fn read(hub: &Hub, after: i64, limit: u32) -> Result<Vec<Change>, Error> {
    let rows = hub.store.changes_after(after, limit).await?;
    feed::have(hub, &rows).await?;
    Ok(rows.into_iter().map(view).collect())
}

fn view(row: muster_store::Change) -> Change {
    let kind = match row.kind {
        muster_store::ChangeKind::Host => ChangeKind::Host,
        muster_store::ChangeKind::Cluster => ChangeKind::Cluster,
        muster_store::ChangeKind::InfraEnv => ChangeKind::InfraEnv,
    };
    Change {
        seq: row.seq,
        kind: kind.into(),
        id: row.id,
        infra_env_id: row.infra_env.map(|id| id.0),
        cluster_id: row.cluster.map(|id| id.0),
        op: match row.op {
            muster_store::ChangeOp::Put => ChangeOp::Put,
            muster_store::ChangeOp::Delete => ChangeOp::Delete,
        },
        revision: row.revision,
        status: Some(row.status)
            .filter(|status| !status.is_empty())
            .map(|status| RowStatus::read(Some(kind), &status)),
        at: row.at,
    }
}

struct Follower {
    hub: Hub,
    after: i64,
    newest: watch::Receiver<i64>,
}

/// Ends when the database cannot be read or the hub goes away; the client resumes with the last id it has.
fn events(hub: Hub, after: i64) -> impl Stream<Item = Result<Event, Infallible>> {
    let newest = hub.newest_change.subscribe();
    stream::unfold(Follower { hub, after, newest }, Follower::next).flat_map(stream::iter)
}

impl Follower {
    async fn next(mut self) -> Option<(Vec<Result<Event, Infallible>>, Self)> {
        loop {
            let changes = match read(&self.hub, self.after, PAGE).await {
                Ok(changes) => changes,
                Err(error) => {
                    tracing::warn!(%error, "cutting off a follower of the feed");
                    return None;
                }
            };
            if let Some(last) = changes.last() {
                self.after = last.seq;
                return Some((changes.iter().map(|change| Ok(event(change))).collect(), self));
            }
            let after = self.after;
            self.newest.wait_for(|seq| *seq > after).await.map(drop).ok()?;
        }
    }
}

fn event(change: &Change) -> Event {
    let event = Event::default().id(change.seq.to_string()).event("change");
    event.json_data(change).unwrap_or_default()
}
