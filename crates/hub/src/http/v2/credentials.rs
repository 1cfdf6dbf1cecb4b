//! How to get into an installed cluster, and the certificate that makes it complete.

use crate::Hub;
use crate::change::OpContext;
use crate::http::body::Json;
use crate::http::extract::Ids;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use crate::http::v2::files::file;
use crate::usecase::cluster_credentials::{credential_file, credentials};
use crate::usecase::ingress_cert::ingress_cert;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use muster_contract::v2::cluster::CredentialsView;
use muster_contract::v2::cluster_request::{CredentialFile, CredentialFilesQuery};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use muster_contract::v2::install::IngressCert;
use muster_domain::ClusterId;
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    let cluster = "/clusters/{cluster_id}";
    Router::new()
        .route(&format!("{cluster}/downloads/credentials"), get(download))
        .route(&format!("{cluster}/credentials"), get(show))
        .route(
            &format!("{cluster}/uploads/ingress-cert"),
            post(upload_ingress_cert),
        )
}

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(download, show, upload_ingress_cert),
    components(schemas(CredentialFile))
)]
pub struct Doc;

/// Download credentials
///
/// Until the cluster sends its ingress's certificate, `kubeconfig` is the one without it.
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/downloads/credentials",
    operation_id = "V2DownloadClusterCredentials", tag = "installation",
    params(("cluster_id" = Uuid, Path), CredentialFilesQuery),
    responses((status = 200, description = "The file", body = [u8], content_type = "application/octet-stream"),
        (status = 400, description = "No such file name", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "The hub has not made them yet", body = ErrorBody)))]
async fn download(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    Args(query): Args<CredentialFilesQuery>,
) -> Result<Response, Problem> {
    let (name, content) = credential_file(&hub, ClusterId(id), query.file_name.word()).await?;
    Ok(file(&name, content))
}

/// Show how to log in to an installed cluster
#[utoipa::path(get, path = "/api/assisted-install/v2/clusters/{cluster_id}/credentials",
    operation_id = "V2GetCredentials", tag = "installation", params(("cluster_id" = Uuid, Path)),
    responses((status = 200, description = "User, password and address of the console", body = CredentialsView),
        (status = 400, description = "The id is not a UUID", body = InfraErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody),
        (status = 409, description = "It has no console yet", body = ErrorBody)))]
async fn show(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
    let found = credentials(&hub, ClusterId(id)).await?;
    let view = CredentialsView {
        username: found.username.into(),
        password: found.password,
        console_url: found.console_url,
    };
    Ok(json(StatusCode::OK, &view))
}

/// Upload the ingress certificate of a cluster
///
/// The controller in the cluster calls this; it may repeat it.
#[utoipa::path(post, path = "/api/assisted-install/v2/clusters/{cluster_id}/uploads/ingress-cert",
    operation_id = "v2UploadClusterIngressCert", tag = "installation", params(("cluster_id" = Uuid, Path)),
    request_body = IngressCert,
    responses((status = 201, description = "The kubeconfig is complete"),
        (status = 400, description = "It is not a certificate, or the cluster is not installed", body = ErrorBody),
        (status = 404, description = "No such cluster", body = ErrorBody)))]
async fn upload_ingress_cert(
    State(hub): State<Hub>,
    Ids(id): Ids<Uuid>,
    opctx: OpContext,
    Json(cert): Json<IngressCert>,
) -> Result<StatusCode, Problem> {
    ingress_cert(&hub, ClusterId(id), &cert.0, &opctx).await?;
    Ok(StatusCode::CREATED)
}
