//! How hosts know that they speak with this hub.

use crate::Hub;
use crate::http::problem::json;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use muster_contract::v1::trust::TrustView;

#[derive(utoipa::OpenApi)]
#[openapi(paths(trust))]
pub struct Doc;

pub fn routes() -> Router<Hub> {
    Router::new().route("/trust", get(trust))
}

/// Show how hosts verify this hub
///
/// The certificates of `--service-ca`, as discovery images carry them; nothing secret. For whoever starts an agent on a
/// machine in another way.
#[utoipa::path(get, path = "/api/muster/v1/trust", operation_id = "trust", tag = "muster",
    responses((status = 200, description = "What hosts trust", body = TrustView)))]
async fn trust(State(hub): State<Hub>) -> Response {
    let trust = &hub.settings.trust;
    let view = TrustView {
        service_ca: trust.service_ca.clone(),
        insecure: trust.insecure,
    };
    json(StatusCode::OK, &view)
}
