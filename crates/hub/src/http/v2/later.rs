//! Operations that the hub does not offer: it says so to clients, and tells a wrong id apart from that.

use crate::Hub;
use crate::error::Error;
use crate::http::extract::Ids;
use crate::http::problem::Problem;
use crate::http::v2::clusters::find;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use muster_contract::v2::error::{ErrorBody, InfraErrorBody};
use uuid::Uuid;

pub fn routes() -> Router<Hub> {
    let cluster = |rest: &str| format!("/clusters/{{cluster_id}}/{rest}");
    Router::new()
        .route(&cluster("downloads/files-presigned"), get(presigned_files))
        .route(
            &cluster("downloads/credentials-presigned"),
            get(presigned_credentials),
        )
        .route(&cluster("supported-platforms"), get(supported_platforms))
        .route(&cluster("ui-settings"), get(ui_settings).put(change_ui_settings))
        .route("/clusters/disconnected", post(disconnected_cluster))
        .route("/domains", get(domains))
        .route("/operators/bundles", get(bundles))
        .route("/operators/bundles/{id}", get(bundle))
        .route("/release-sources", get(release_sources))
        .route("/support-levels/features/detailed", get(detailed_features))
}

#[derive(utoipa::OpenApi)]
#[openapi(paths(
    presigned_files,
    presigned_credentials,
    supported_platforms,
    ui_settings,
    change_ui_settings
))]
pub struct Doc;

/// Operations of a cluster that are not offered; a wrong id is still told apart from that.
macro_rules! of_cluster {
    ($($name:ident $method:ident $path:literal $operation:literal $what:literal;)*) => {$(
        #[doc = concat!("Not offered: ", $what)]
        #[utoipa::path($method, path = $path, operation_id = $operation, tag = "later",
            params(("cluster_id" = Uuid, Path)),
            responses((status = 400, description = "The id is not a UUID", body = InfraErrorBody),
                (status = 404, description = "No such cluster", body = ErrorBody),
                (status = 501, description = "Not offered", body = ErrorBody)))]
        async fn $name(State(hub): State<Hub>, Ids(id): Ids<Uuid>) -> Result<Response, Problem> {
            find(&hub, id)?;
            Err(Error::NotOffered($what).into())
        }
    )*};
}

/// Operations that are not offered at all. The hub says so to clients that ask; the document does not mention them.
macro_rules! of_nothing {
    ($($name:ident $what:literal;)*) => {$(
        async fn $name() -> Problem {
            Error::NotOffered($what).into()
        }
    )*};
}

of_cluster! {
    presigned_files get "/api/assisted-install/v2/clusters/{cluster_id}/downloads/files-presigned"
        "V2GetPresignedForClusterFiles" "A signed link to a file of a cluster";
    presigned_credentials get "/api/assisted-install/v2/clusters/{cluster_id}/downloads/credentials-presigned"
        "V2GetPresignedForClusterCredentials" "A signed link to the credentials of a cluster";
    supported_platforms get "/api/assisted-install/v2/clusters/{cluster_id}/supported-platforms"
        "GetClusterSupportedPlatforms" "Listing platforms that fit a cluster's hosts";
    ui_settings get "/api/assisted-install/v2/clusters/{cluster_id}/ui-settings"
        "V2GetClusterUISettings" "Settings of a web console";
    change_ui_settings put "/api/assisted-install/v2/clusters/{cluster_id}/ui-settings"
        "V2UpdateClusterUISettings" "Changing settings of a web console";
}

of_nothing! {
    disconnected_cluster "A placeholder for a disconnected installation";
    domains "Listing managed domains";
    bundles "Listing bundles of operators";
    bundle "Showing a bundle of operators";
    release_sources "Listing sources of releases";
    detailed_features "Explaining why a feature is not supported";
}
