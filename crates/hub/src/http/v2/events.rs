//! History, as people and clients read it, and as controllers add to it.

use crate::Hub;
use crate::change::OpContext;
use crate::http::body::AgentJson;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::event::{EventOrder, EventView, EventsQuery, TriggerEvent};
use muster_domain::{ClusterId, Entry, HostId, InfraEnvId, Severity};
use muster_store::{Commit, Event, EventQuery, EventsPage};

const EVENT_COUNT: HeaderName = HeaderName::from_static("event-count");

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, trigger), components(schemas(ErrorBody, InfraErrorBody)))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route("/events", get(list).post(trigger))
}

/// List events
///
/// The history of a cluster, of hosts, of an InfraEnv, or of everything. Counts travel as headers: `Event-Count` after
/// all filters and before paging, `Severity-Count-…` before the filter on severities. An answer has 5000 events at most,
/// whatever `limit` says; `offset` reads on.
#[utoipa::path(get, path = "/api/assisted-install/v2/events", operation_id = "v2ListEvents", tag = "events",
    params(EventsQuery),
    responses((status = 200, description = "Events in order of time", body = Vec<EventView>, headers(
            ("Event-Count" = i64, description = "All that match, whatever the page"),
            ("Severity-Count-Info" = i64, description = "0 without a cluster"),
            ("Severity-Count-Warning" = i64, description = "0 without a cluster"),
            ("Severity-Count-Error" = i64, description = "0 without a cluster"),
            ("Severity-Count-Critical" = i64, description = "0 without a cluster"))),
        (status = 400, description = "The query is wrong", body = InfraErrorBody)))]
async fn list(State(hub): State<Hub>, Args(query): Args<EventsQuery>) -> Result<Response, Problem> {
    let page = hub.store.events_list(&wanted(query)).await?;
    Ok(reply(page))
}

fn wanted(query: EventsQuery) -> EventQuery {
    let EventsQuery {
        cluster_id,
        host_id,
        host_ids,
        infra_env_id,
        limit,
        offset,
        order,
        severities,
        categories,
        message,
        deleted_hosts,
        cluster_level,
    } = query;
    let mut hosts: Vec<_> = host_ids
        .into_iter()
        .flat_map(|list| list.0)
        .chain(host_id)
        .map(HostId)
        .collect();
    hosts.sort();
    hosts.dedup();
    EventQuery {
        cluster: cluster_id.map(ClusterId),
        hosts,
        infra_env: infra_env_id.map(InfraEnvId),
        deleted_hosts: deleted_hosts.unwrap_or(false),
        cluster_level: cluster_level.unwrap_or(false),
        severities: severities.into_iter().flat_map(|list| list.0).collect(),
        categories: categories.into_iter().flat_map(|list| list.0).collect(),
        message: message.filter(|part| !part.is_empty()),
        // Below zero means as many as there are in a page; `Event-Count` tells whether there are more.
        limit: limit.and_then(|limit| u64::try_from(limit).ok()),
        offset: u64::try_from(offset.unwrap_or(0)).unwrap_or(0),
        desc: order == Some(EventOrder::Desc),
    }
}

fn reply(page: EventsPage) -> Response {
    let counts = Severity::ALL
        .iter()
        .map(|severity| (header_of(*severity), page.severities.of(*severity)));
    let views: Vec<_> = page.events.into_iter().map(view).collect();
    let mut response = json(StatusCode::OK, &views);
    for (name, count) in counts.chain([(EVENT_COUNT, page.total)]) {
        response.headers_mut().insert(name, HeaderValue::from(count));
    }
    response
}

fn header_of(severity: Severity) -> HeaderName {
    HeaderName::from_static(match severity {
        Severity::Info => "severity-count-info",
        Severity::Warning => "severity-count-warning",
        Severity::Error => "severity-count-error",
        Severity::Critical => "severity-count-critical",
    })
}

pub fn view(event: Event) -> EventView {
    let Entry {
        name,
        severity,
        category: _,
        message,
        host,
        infra_env,
        cluster,
        props,
    } = event.entry;
    EventView {
        name: name.into(),
        cluster_id: cluster.map(|id| id.0),
        host_id: host.map(|id| id.0),
        infra_env_id: infra_env.map(|id| id.0),
        severity: severity.into(),
        message,
        event_time: event.at.into(),
        props,
    }
}

/// Add an event
///
/// The controller inside a cluster calls this during the installation.
#[utoipa::path(post, path = "/api/assisted-install/v2/events", operation_id = "v2TriggerEvent", tag = "events",
    request_body = TriggerEvent,
    responses((status = 201, description = "Written down"),
        (status = 400, description = "The event cannot be read", body = InfraErrorBody)))]
async fn trigger(
    State(hub): State<Hub>,
    opctx: OpContext,
    AgentJson(body): AgentJson<TriggerEvent>,
) -> Result<StatusCode, Problem> {
    let mut entry = Entry::new(
        body.name.as_deref().unwrap_or_default(),
        body.severity,
        body.message,
    );
    entry.category = body.category.unwrap_or_default();
    entry.cluster = body.cluster_id.map(ClusterId);
    entry.host = body.host_id.map(HostId);
    entry.infra_env = body.infra_env_id.map(InfraEnvId);
    entry.props = body.props.unwrap_or_default();
    let commit = Commit {
        request_id: body.request_id.or(opctx.request_id),
        journal: vec![entry],
        ..Commit::new(body.event_time.0.unwrap_or_else(|| hub.now()))
    };
    hub.commit(commit, true).await?;
    Ok(StatusCode::CREATED)
}
