//! Manifests that people add to a cluster.

use crate::Hub;
use crate::change::OpContext;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::http::v2::clusters::find;
use crate::http::v2::files::file;
use crate::usecase::manifest_create::manifest_create;
use crate::usecase::manifest_delete::manifest_delete;
use crate::usecase::manifest_list::{Manifest, Source, manifest_content, manifest_list};
use crate::usecase::manifest_update::{Change, manifest_update};
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::manifest::{
    CreateManifest, ManifestFolder, ManifestQuery, ManifestView, ManifestsQuery, UpdateManifest,
};
use muster_domain::ClusterId;
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    let manifests = "/clusters/{cluster_id}/manifests";
    Router::new()
        .route(manifests, get(list).post(create).patch(update).delete(delete))
        .route(&format!("{manifests}/files"), get(download))
}

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(list, create, update, delete, download),
    components(schemas(ManifestFolder))
)]
pub struct Doc;

fn view(manifest: Manifest) -> ManifestView {
    let Manifest {
        folder,
        file_name,
        source,
    } = manifest;
    ManifestView {
        folder: folder.into(),
        file_name,
        manifest_source: match source {
            Source::User => "user",
            Source::System => "system-generated",
        }
        .into(),
    }
}

/// List manifests
///
/// Those that people added; with `include_system_generated` also those that the hub made for the installation.
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/manifests",
    operation_id = "V2ListClusterManifests", tag = "manifest", params(("cluster_id" = Uuid, Path), ManifestsQuery),
    responses((status = 200, description = "Without their content", body = Vec<ManifestView>),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn list(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<ManifestsQuery>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let list = manifest_list(&hub, cluster.id, query.include_system_generated == Some(true)).await?;
    let views: Vec<_> = list.into_iter().map(view).collect();
    Ok(json(StatusCode::OK, &views))
}

/// Add a manifest
///
/// At most 1 MiB. It replaces one of the same name in the same folder; the other folder must have none.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/manifests",
    operation_id = "V2CreateClusterManifest", tag = "manifest", params(("cluster_id" = Uuid, Path)),
    request_body = CreateManifest,
    responses((status = 201, description = "The hub stored it", body = ManifestView),
        (status = 400, description = "Something in the request is wrong", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "There is one of this name, or the installation has begun", body = ErrorBody)))]
async fn create(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(wish): Json<CreateManifest>,
) -> Result<Response, Problem> {
    let folder = wish.folder.unwrap_or_default().word();
    let made = manifest_create(
        &hub,
        ClusterId(id),
        folder,
        &wish.file_name,
        &wish.content,
        &opctx,
    )
    .await?;
    Ok(json(StatusCode::CREATED, &view(made)))
}

/// Change a manifest
///
/// Its content, its name, its folder, or all at once.
#[utoipa::path(patch, path = "/api/assisted-install/v2/clusters/{cluster_id}/manifests",
    operation_id = "V2UpdateClusterManifest", tag = "manifest", params(("cluster_id" = Uuid, Path)),
    request_body = UpdateManifest,
    responses((status = 200, description = "As it is now", body = ManifestView),
        (status = 400, description = "Something in the request is wrong", body = ErrorBody),
        (status = 404, description = "No such cluster or manifest", body = ErrorBody),
        (status = 409, description = "There is one of this name, or the installation has begun", body = ErrorBody)))]
async fn update(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(wish): Json<UpdateManifest>,
) -> Result<Response, Problem> {
    let change = Change {
        folder: wish.updated_folder.map(ManifestFolder::word),
        file_name: wish.updated_file_name.as_deref(),
        content: wish.updated_content.as_deref(),
    };
    let folder = wish.folder.word();
    let changed = manifest_update(&hub, ClusterId(id), folder, &wish.file_name, &change, &opctx).await?;
    Ok(json(StatusCode::OK, &view(changed)))
}

/// Delete a manifest
#[utoipa::path(delete, path = "/api/assisted-install/v2/clusters/{cluster_id}/manifests",
    operation_id = "V2DeleteClusterManifest", tag = "manifest", params(("cluster_id" = Uuid, Path), ManifestQuery),
    responses((status = 200, description = "It is gone"),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster or manifest", body = ErrorBody),
        (status = 409, description = "The installation has begun", body = ErrorBody)))]
async fn delete(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<ManifestQuery>,
    opctx: OpContext,
) -> Result<StatusCode, Problem> {
    let folder = query.folder.unwrap_or_default().word();
    manifest_delete(&hub, ClusterId(id), folder, &query.file_name, &opctx).await?;
    Ok(StatusCode::OK)
}

/// Download a manifest
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/manifests/files",
    operation_id = "v2DownloadClusterManifest", tag = "manifest", params(("cluster_id" = Uuid, Path), ManifestQuery),
    responses((status = 200, description = "The manifest", body = [u8], content_type = "application/octet-stream"),
        (status = 400, description = "Something in the request is wrong", body = InfraErrorBody),
        (status = 404, description = "No such cluster or manifest", body = ErrorBody)))]
async fn download(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<ManifestQuery>,
) -> Result<Response, Problem> {
    let cluster = find(&hub, id)?;
    let folder = query.folder.unwrap_or_default().word();
    let content = manifest_content(&hub, cluster.id, folder, &query.file_name).await?;
    Ok(file(&query.file_name, content))
}
