//! Hosts by the thousand, page by page; moving one of them, and fetching one back from a running cluster.

use super::input::V1;
use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::http::body::Json;
use crate::http::extract::HostPath;
use crate::http::problem::{ProblemV1, json};
use crate::http::query::Args;
use crate::usecase::host_bind::host_move;
use crate::usecase::host_install::host_reclaim;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use muster_contract::v1::host::{HostPage, HostSummary, HostsQuery, MoveHost, MoveView};
use muster_contract::v1::problem::Problem;
use muster_domain::host::{Host, Phase, Status};
use muster_domain::input::Invalid;
use muster_domain::{ClusterId, HostId, HostKey, InfraEnvId};
use muster_store::HostFilter;
use uuid::Uuid;

const PAGE: u32 = 500;
const LARGEST_PAGE: u32 = 5000;

#[derive(utoipa::OpenApi)]
#[openapi(paths(list, start_move, show_move, reclaim))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/hosts", get(list))
        .route(
            "/infra-envs/{infra_env_id}/hosts/{host_id}/move",
            post(start_move).get(show_move),
        )
        .route(
            "/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reclaim",
            post(reclaim),
        )
}

/// List hosts of all InfraEnvs
///
/// Ordered by id, one page at a time, so that a list of any length costs little.
#[utoipa::path(get, path = "/api/muster/v1/hosts", operation_id = "listHosts", tag = "muster", params(HostsQuery),
    responses((status = 200, description = "A page of hosts", body = HostPage),
        (status = 400, description = "Something in the query is wrong", body = Problem)))]
async fn list(State(hub): State<Hub>, V1(Args(query)): V1<Args<HostsQuery>>) -> Result<Response, ProblemV1> {
    let statuses = statuses(&query)?;
    let limit = query.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let mut after = query.after.as_deref().map(parse_cursor).transpose()?;
    let filter = HostFilter {
        infra_env: query.infra_env_id.map(InfraEnvId),
        cluster: query.cluster_id.map(ClusterId),
        // One status is an index lookup; several are picked out of the pages.
        status: if let [status] = statuses[..] {
            Some(status)
        } else {
            None
        },
        free: query.free,
    };
    let wanted = |host: &Host| statuses.is_empty() || statuses.contains(&host.status());
    let mut page = HostPage::default();
    if let Some(name) = &query.named {
        let fits = |host: &Host| {
            wanted(host)
                && filter.infra_env.is_none_or(|id| host.infra_env == id)
                && filter.cluster.is_none_or(|id| host.cluster == Some(id))
                && filter.free.is_none_or(|free| host.is_free() == free)
        };
        let found = hub
            .index
            .named(name)
            .into_iter()
            .filter(fits)
            .take(limit as usize);
        page.hosts = found.map(|host| summary(&hub, host)).collect();
        return Ok(json(StatusCode::OK, &page));
    }
    loop {
        let rows = hub.hosts_page(&filter, after, limit, &[]).await?;
        let is_last = rows.len() < limit as usize;
        for (host, _) in rows {
            after = Some(host.key());
            if wanted(&host) {
                page.hosts.push(summary(&hub, host));
            }
            if page.hosts.len() == limit as usize {
                page.next = after.map(cursor);
                return Ok(json(StatusCode::OK, &page));
            }
        }
        if is_last {
            return Ok(json(StatusCode::OK, &page));
        }
    }
}

fn statuses(query: &HostsQuery) -> Result<Vec<Status>, Error> {
    let words = query.status.iter().flat_map(|list| &list.0);
    words
        .map(|word| {
            let fix = "use a status word of a host, such as known-unbound";
            Status::from_word(word).ok_or_else(|| Invalid::schema("status", "names no status", fix).into())
        })
        .collect()
}

fn cursor(key: HostKey) -> String {
    format!("{}{}", key.infra_env.0.simple(), key.host.0.simple())
}

fn parse_cursor(text: &str) -> Result<HostKey, Error> {
    let parse = |part: Option<&str>| part.and_then(|part| Uuid::try_parse(part).ok());
    match (parse(text.get(..32)), parse(text.get(32..))) {
        (Some(infra_env), Some(host)) => Ok(HostKey {
            infra_env: InfraEnvId(infra_env),
            host: HostId(host),
        }),
        _ => Err(Invalid::schema(
            "after",
            "is no place in the list",
            "use the `next` of the page before",
        )
        .into()),
    }
}

fn summary(hub: &Hub, host: Host) -> HostSummary {
    let polled = hub.index.slot(host.key()).map(|slot| slot.live.last_poll());
    HostSummary {
        id: host.id.0,
        infra_env_id: host.infra_env.0,
        cluster_id: host.cluster.map(|id| id.0),
        name: host.name(),
        status: host.status().into(),
        role: host.role.into(),
        cpus: host.digest.cpus,
        memory_mib: host.digest.memory_mib,
        disk_gb: host.digest.disk_gb,
        checked_in_at: Some(polled.map_or(host.checked_in_at, |polled| polled.max(host.checked_in_at))),
        revision: host.revision,
        status_info: host.status_info.into(),
    }
}

/// Move a host to another cluster
///
/// One request that survives restarts: the host is handed over at once if its disk is untouched, or returns to its
/// pool first and is bound again when it is free and ready.
#[utoipa::path(post, path = "/api/muster/v1/infra-envs/{infra_env_id}/hosts/{host_id}/move", operation_id = "moveHost",
    tag = "muster", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)), request_body = MoveHost,
    responses((status = 202, description = "On its way", body = MoveView),
        (status = 400, description = "Something in the request is wrong", body = Problem),
        (status = 404, description = "No such host", body = Problem),
        (status = 409, description = "Not possible now", body = Problem)))]
async fn start_move(
    State(hub): State<Hub>,
    opctx: OpContext,
    V1(HostPath(key)): V1<HostPath>,
    V1(Json(body)): V1<Json<MoveHost>>,
) -> Result<Response, ProblemV1> {
    let from = hub.index.host(key).and_then(|host| host.cluster);
    let to = ClusterId(body.cluster_id);
    hub.load_if_missing(to).await?;
    let host = host_move(&hub, key, to, &opctx).await?;
    Ok(json(StatusCode::ACCEPTED, &view(&host, from, to)))
}

/// Show how far a move is
#[utoipa::path(get, path = "/api/muster/v1/infra-envs/{infra_env_id}/hosts/{host_id}/move", operation_id = "showMove",
    tag = "muster", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 200, description = "The move, or where the host is bound", body = MoveView),
        (status = 400, description = "An id is not a UUID", body = Problem),
        (status = 404, description = "No such host, or it is free and stays so", body = Problem)))]
async fn show_move(State(hub): State<Hub>, V1(HostPath(key)): V1<HostPath>) -> Result<Response, ProblemV1> {
    let host = hub
        .index
        .host(key)
        .ok_or_else(|| Error::missing("host", key.host))?;
    let view = match (host.moving_to, host.cluster) {
        (Some(to), from) => view(&host, from, to),
        (None, Some(to)) => view(&host, None, to),
        (None, None) => return Err(Error::missing("move of a host", key.host).into()),
    };
    Ok(json(StatusCode::OK, &view))
}

/// Fetch an installed host back without a BMC
///
/// The agent on the running node downloads the discovery image and boots it. Whatever goes wrong ends, within an hour, in
/// `unbinding-pending-user-action`: then somebody must boot the discovery image. A host that was not installed yet
/// is simply unbound.
#[utoipa::path(post, path = "/api/muster/v1/infra-envs/{infra_env_id}/hosts/{host_id}/actions/reclaim",
    operation_id = "reclaimHost", tag = "muster", params(("infra_env_id" = Uuid, Path), ("host_id" = Uuid, Path)),
    responses((status = 202, description = "On its way back", body = HostSummary),
        (status = 400, description = "An id is not a UUID", body = Problem),
        (status = 404, description = "No such host", body = Problem),
        (status = 409, description = "Not possible now", body = Problem)))]
async fn reclaim(
    State(hub): State<Hub>,
    opctx: OpContext,
    V1(HostPath(key)): V1<HostPath>,
) -> Result<Response, ProblemV1> {
    let host = host_reclaim(&hub, key, &opctx).await?;
    Ok(json(StatusCode::ACCEPTED, &summary(&hub, Host::clone(&host))))
}

fn view(host: &Host, from: Option<ClusterId>, to: ClusterId) -> MoveView {
    MoveView {
        infra_env_id: host.infra_env.0,
        host_id: host.id.0,
        from: from.map(|id| id.0),
        to: to.0,
        status: host.status().into(),
        done: host.cluster == Some(to) && host.phase != Phase::Binding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_list_reads_back() {
        let key = HostKey {
            infra_env: InfraEnvId(Uuid::from_u128(7)),
            host: HostId(Uuid::from_u128(9)),
        };
        assert_eq!(parse_cursor(&cursor(key)).unwrap(), key);
        for bad in ["", "7", "zz", "ä".repeat(32).as_str()] {
            assert!(parse_cursor(bad).is_err(), "{bad}");
        }
    }
}
