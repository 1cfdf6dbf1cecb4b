//! Clusters: create, import, show, change, delete, and what surrounds them before an installation.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::http::view::cluster::{Member, Shown, full};
use crate::http::view::host::{self, Style};
use crate::usecase::cluster_create::{cluster_create, default_network_texts};
use crate::usecase::cluster_delete::cluster_delete;
use crate::usecase::cluster_import::cluster_import;
use crate::usecase::cluster_update::{cluster_add_hosts, cluster_ignore, cluster_update};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use muster_contract::v2::cluster::{ClusterDefaultsView, ClusterView};
use muster_contract::v2::cluster_request::{
    ClusterQuery, ClustersQuery, CreateCluster, ImportCluster, UpdateCluster,
};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::host::{ClusterHostsQuery, HostView};
use muster_contract::v2::network::{ClusterNetwork, ServiceNetwork};
use muster_contract::v2::requirement::{
    PreflightRequirementsView, RequirementsByRoleView, RequirementsView, RoleRequirementsView,
};
use muster_contract::v2::validation::{IgnoredValidationsView, SetIgnoredValidations};
use muster_domain::ClusterId;
use muster_domain::checks::{self, Ignored};
use muster_domain::cluster::{self, Cluster};
use muster_domain::host::{Report, Role};
use muster_domain::input::{Invalid, name};
use muster_domain::requirements::Quantities;
use muster_store::HostFilter;
use std::sync::Arc;
use uuid::Uuid;

/// Hosts of one cluster read at once; more than any cluster has.
const ALL_HOSTS: u32 = 100_000;

pub fn routes() -> Router<Hub> {
    let cluster = "/clusters/{cluster_id}";
    Router::new()
        .route("/clusters", get(list).post(create))
        .route("/clusters/import", post(import))
        .route("/clusters/default-config", get(default_config))
        .route(cluster, get(show).patch(update).delete(delete))
        .route(&format!("{cluster}/hosts"), get(hosts))
        .route(
            &format!("{cluster}/actions/allow-add-hosts"),
            post(allow_add_hosts),
        )
        .route(
            &format!("{cluster}/actions/allow-add-workers"),
            post(allow_add_workers),
        )
        .route(
            &format!("{cluster}/preflight-requirements"),
            get(preflight_requirements),
        )
        .route(
            &format!("{cluster}/ignored-validations"),
            get(ignored_validations).put(ignore_validations),
        )
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    create,
    import,
    list,
    show,
    update,
    delete,
    hosts,
    allow_add_hosts,
    allow_add_workers,
    preflight_requirements,
    ignored_validations,
    ignore_validations,
    default_config
))]
pub struct Doc;

pub fn find(hub: &Hub, id: Uuid) -> Result<Arc<Cluster>, Error> {
    hub.index
        .cluster(ClusterId(id))
        .ok_or_else(|| Error::missing("cluster", id))
}

/// The hosts of a cluster with everything stored about them.
pub async fn members(hub: &Hub, id: ClusterId) -> Result<Vec<Member>, Error> {
    if !hub.shares_database() && hub.index.count_of_cluster(id) == 0 {
        return Ok(Vec::new());
    }
    let filter = HostFilter {
        cluster: Some(id),
        ..HostFilter::default()
    };
    hub.hosts_page(&filter, None, ALL_HOSTS, &Report::ALL).await
}

/// Create a cluster
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters", operation_id = "v2RegisterCluster", tag = "cluster",
    request_body = CreateCluster,
    responses((status = 201, description = "The new cluster", body = ClusterView),
        (status = 400, description = "Something in the request is wrong", body = ErrorBody)))]
async fn create(
    State(hub): State<Hub>,
    opctx: OpContext,
    Json(wish): Json<CreateCluster>,
) -> Result<Response, Problem> {
    let cluster = cluster_create(&hub, &wish, &opctx).await?;
    Ok(json(
        StatusCode::CREATED,
        &full(&hub, &cluster, Shown::Whole(&[])),
    ))
}

/// Import a cluster
///
/// Records a cluster that was installed elsewhere, so that it can take on hosts.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/import", operation_id = "v2ImportCluster", tag = "cluster",
    request_body = ImportCluster,
    responses((status = 201, description = "The imported cluster", body = ClusterView),
        (status = 400, description = "Something in the request is wrong", body = ErrorBody)))]
async fn import(
    State(hub): State<Hub>,
    opctx: OpContext,
    Json(wish): Json<ImportCluster>,
) -> Result<Response, Problem> {
    let cluster = cluster_import(&hub, &wish, &opctx).await?;
    Ok(json(StatusCode::CREATED, &full(&hub, &cluster, Shown::Imported)))
}

/// List clusters
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters", operation_id = "v2ListClusters", tag = "cluster",
    params(ClustersQuery,
        ("get_unregistered_clusters" = Option<bool>, Header, description = "Deleted clusters are gone: has no effect")),
    responses((status = 200, description = "Ordered by creation", body = Vec<ClusterView>),
        (status = 400, description = "The query is wrong", body = InfraErrorBody)))]
async fn list(State(hub): State<Hub>, Args(query): Args<ClustersQuery>) -> Result<Response, Problem> {
    let wanted = |cluster: &Arc<Cluster>| {
        query.openshift_cluster_id.is_none_or(|id| cluster.openshift_cluster_id == Some(id))
            && query.owner.as_ref().is_none_or(|owner| *owner == cluster.user)
            // Subscriptions belong to a service this hub is not part of, so no cluster has one.
            && query.ams_subscription_ids.as_ref().is_none_or(|ids| ids.0.is_empty())
    };
    let mut views = Vec::new();
    for cluster in hub.index.clusters().into_iter().filter(wanted) {
        let members = if query.with_hosts == Some(true) {
            members(&hub, cluster.id).await?
        } else {
            Vec::new()
        };
        views.push(full(&hub, &cluster, Shown::Listed(&members)));
    }
    Ok(json(StatusCode::OK, &views))
}

/// Show a cluster
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}", operation_id = "v2GetCluster", tag = "cluster",
    params(("cluster_id" = Uuid, Path), ClusterQuery),
    responses((status = 200, description = "The cluster", body = ClusterView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn show(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<ClusterQuery>,
) -> Result<Response, Problem> {
    let cluster = hub.newest(ClusterId(id)).await?;
    if query.exclude_hosts == Some(true) {
        return Ok(json(StatusCode::OK, &full(&hub, &cluster, Shown::WithoutHosts)));
    }
    let members = members(&hub, cluster.id).await?;
    Ok(json(
        StatusCode::OK,
        &full(&hub, &cluster, Shown::Whole(&members)),
    ))
}

/// Change a cluster
///
/// Fields that are absent or null stay as they are.
#[utoipa::path(patch, path = "/api/assisted-install/v2/clusters/{cluster_id}", operation_id = "V2UpdateCluster", tag = "cluster",
    params(("cluster_id" = Uuid, Path)), request_body = UpdateCluster,
    responses((status = 201, description = "The changed cluster, its hosts judged anew", body = ClusterView),
        (status = 400, description = "Something in the request is wrong", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It cannot be changed now", body = ErrorBody)))]
async fn update(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(wish): Json<UpdateCluster>,
) -> Result<Response, Problem> {
    let cluster = cluster_update(&hub, ClusterId(id), &wish, &opctx).await?;
    let members = members(&hub, cluster.id).await?;
    Ok(json(
        StatusCode::CREATED,
        &full(&hub, &cluster, Shown::Changed(&members)),
    ))
}

/// Delete a cluster
///
/// Hosts it borrowed go back to their InfraEnvs; the hub deletes hosts booted from its own image with it.
#[utoipa::path(delete, path = "/api/assisted-install/v2/clusters/{cluster_id}", operation_id = "v2DeregisterCluster",
    tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 204, description = "It is gone"),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It is being installed", body = ErrorBody)))]
async fn delete(State(hub): State<Hub>, Ids(id): Ids<Uuid>, opctx: OpContext) -> Result<StatusCode, Problem> {
    cluster_delete(&hub, ClusterId(id), &opctx).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the hosts of a cluster
///
/// Inventory and connectivity only if asked for. An unknown cluster has no hosts.
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/hosts", operation_id = "ListClusterHosts",
    tag = "cluster", params(("cluster_id" = Uuid, Path), ClusterHostsQuery),
    responses((status = 200, description = "The hosts", body = Vec<HostView>),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody)))]
async fn hosts(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<ClusterHostsQuery>,
) -> Result<Response, Problem> {
    let mut views = Vec::new();
    for (row, mut stored) in members(&hub, ClusterId(id)).await? {
        let fits = |wanted: &Option<String>, word: &str| wanted.as_ref().is_none_or(|wanted| wanted == word);
        if !fits(&query.role, row.role.word()) || !fits(&query.status, row.status().word()) {
            continue;
        }
        if query.with_inventory != Some(true) {
            stored.remove(&Report::Inventory);
        }
        if query.with_connectivity != Some(true) {
            stored.remove(&Report::Connectivity);
        }
        views.push(host::full(&hub, &row, stored, Style::Raw));
    }
    Ok(json(StatusCode::OK, &views))
}

/// Let an installed cluster take on more hosts
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/allow-add-hosts",
    operation_id = "TransformClusterToAddingHosts", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 202, description = "It takes on hosts now", body = ClusterView),
        (status = 400, description = "It is not installed", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn allow_add_hosts(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
) -> Result<Response, Problem> {
    let cluster = cluster_add_hosts(&hub, ClusterId(id), &opctx).await?;
    let members = members(&hub, cluster.id).await?;
    let mut view = full(&hub, &cluster, Shown::Whole(&members));
    view.operator_bundles = None;
    Ok(json(StatusCode::ACCEPTED, &view))
}

/// Let an installed cluster take on more hosts
///
/// The older name of `allow-add-hosts`.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/actions/allow-add-workers",
    operation_id = "TransformClusterToDay2", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 202, description = "It takes on hosts now", body = ClusterView),
        (status = 400, description = "It is not installed", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn allow_add_workers(state: State<Hub>, ids: Ids<Uuid>, opctx: OpContext) -> Result<Response, Problem> {
    allow_add_hosts(state, ids, opctx).await
}

/// Show what hosts of a cluster need
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/preflight-requirements",
    operation_id = "v2GetPreflightRequirements", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 200, description = "Requirements by role", body = PreflightRequirementsView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn preflight_requirements(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let release = Some(cluster.openshift_version.as_str()).filter(|release| !release.is_empty());
    let of = |role| {
        let needs = hub
            .settings
            .requirements
            .lookup(release, role, cluster.single_node(), false);
        Some(RoleRequirementsView {
            quantitative: Some(quantities(needs)),
            qualitative: None,
        })
    };
    let ocp = RequirementsByRoleView {
        master: of(Role::Master),
        worker: of(Role::Worker),
    };
    Ok(json(
        StatusCode::OK,
        &PreflightRequirementsView {
            ocp: Some(ocp),
            operators: Some(Vec::new()),
        },
    ))
}

fn quantities(needs: &Quantities) -> RequirementsView {
    RequirementsView {
        cpu_cores: needs.cpu_cores,
        ram_mib: needs.ram_mib,
        disk_size_gb: needs.disk_size_gb,
        installation_disk_speed_threshold_ms: needs.installation_disk_speed_threshold_ms,
        network_latency_threshold_ms: needs.network_latency_threshold_ms,
        packet_loss_percentage: needs.packet_loss_percentage,
        tpm_enabled_in_bios: false,
    }
}

/// Show which checks do not block a cluster
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/ignored-validations",
    operation_id = "v2GetIgnoredValidations", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    responses((status = 200, description = "Ids as JSON lists in texts", body = IgnoredValidationsView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn ignored_validations(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    Ok(json(StatusCode::OK, &ignored(&*find(&hub, id)?)))
}

/// Choose which checks do not block a cluster
#[utoipa::path(put, path = "/api/assisted-install/v2/clusters/{cluster_id}/ignored-validations",
    operation_id = "v2SetIgnoredValidations", tag = "cluster", params(("cluster_id" = Uuid, Path)),
    request_body = SetIgnoredValidations,
    responses((status = 201, description = "What is ignored now", body = IgnoredValidationsView),
        (status = 400, description = "An id is unknown or cannot be ignored", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn ignore_validations(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(wish): Json<SetIgnoredValidations>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let SetIgnoredValidations {
        cluster_validation_ids,
        host_validation_ids,
    } = wish;
    judge(
        "cluster-validation-ids",
        cluster_validation_ids.as_deref(),
        |id| cluster::checks::CheckId::parse(id).is_some_and(cluster::checks::CheckId::is_ignorable),
    )?;
    judge("host-validation-ids", host_validation_ids.as_deref(), |id| {
        checks::CheckId::parse(id).is_some_and(checks::CheckId::is_ignorable)
    })?;
    if !cluster.accepts_hosts() {
        let problem = "cannot change while the cluster is installed";
        return Err(Invalid::rule("cluster-validation-ids", problem, "wait, or reset the cluster").into());
    }
    let cluster = cluster_ignore(
        &hub,
        cluster.id,
        cluster_validation_ids,
        host_validation_ids,
        &opctx,
    )
    .await?;
    Ok(json(StatusCode::CREATED, &ignored(&cluster)))
}

fn ignored(cluster: &Cluster) -> IgnoredValidationsView {
    IgnoredValidationsView {
        cluster_validation_ids: cluster.ignored_cluster_validations.clone(),
        host_validation_ids: cluster.ignored_host_validations.clone(),
    }
}

fn judge(field: &str, text: Option<&str>, known: impl Fn(&str) -> bool) -> Result<(), Invalid> {
    let fix = "give a JSON list of check ids, or [\"all\"]";
    let list = Ignored::parse(text.unwrap_or_default())
        .map_err(|problem| Invalid::rule(field, format!("cannot be read ({problem})"), fix))?;
    match list.ids.iter().find(|id| *id != "all" && !known(id)) {
        None => Ok(()),
        Some(id) => {
            let id: String = id.chars().take(80).collect();
            Err(Invalid::rule(
                field,
                format!("names {id:?}, which is no check that can be ignored"),
                fix,
            ))
        }
    }
}

/// Show the defaults of a new cluster
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/default-config", operation_id = "V2GetClusterDefaultConfig",
    tag = "cluster", responses((status = 200, description = "The defaults", body = ClusterDefaultsView)))]
async fn default_config(State(hub): State<Hub>) -> Response {
    let pods = |dual| {
        let one = |(cidr, prefix): (&str, i64)| ClusterNetwork {
            cluster_id: None,
            cidr: Some(cidr.into()),
            host_prefix: Some(prefix),
        };
        default_network_texts(dual)
            .0
            .into_iter()
            .map(one)
            .collect::<Vec<_>>()
    };
    let services = |dual| {
        let one = |cidr: &str| ServiceNetwork {
            cluster_id: None,
            cidr: Some(cidr.into()),
        };
        default_network_texts(dual)
            .1
            .into_iter()
            .map(one)
            .collect::<Vec<_>>()
    };
    let (v4_pods, v4_services) = default_network_texts(false);
    let view = ClusterDefaultsView {
        cluster_network_cidr: v4_pods[0].0.into(),
        cluster_network_host_prefix: v4_pods[0].1,
        service_network_cidr: v4_services[0].into(),
        ntp_source: hub.settings.default_ntp.clone(),
        inactive_deletion_hours: 0,
        cluster_networks_ipv4: Some(pods(false)),
        cluster_networks_dualstack: Some(pods(true)),
        service_networks_ipv4: Some(services(false)),
        service_networks_dualstack: Some(services(true)),
        forbidden_hostnames: Some(name::FORBIDDEN_HOSTNAMES.map(String::from).to_vec()),
    };
    json(StatusCode::OK, &view)
}
