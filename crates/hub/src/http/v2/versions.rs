//! What this hub is made of and what it offers: versions, features, operators.

use crate::Hub;
use crate::http::problem::{Problem, json};
use crate::http::query::Args;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use muster_contract::v2::cluster_setting::{PlatformType, ReleaseArchitecture};
use muster_contract::v2::error::InfraErrorBody;
use muster_contract::v2::operator::OperatorPropertyView;
use muster_contract::v2::version::{
    ComponentVersionsView, OpenshiftVersionsQuery, OpenshiftVersionsView, SupportQuery,
    SupportedArchitecturesView, SupportedFeaturesView,
};
use muster_domain::catalog::{self, OPERATORS, VersionFilter};
use muster_domain::input::schema;
use serde_json::json;

pub fn routes() -> Router<Hub> {
    Router::new()
        .route("/component-versions", get(component_versions))
        .route("/openshift-versions", get(openshift_versions))
        .route("/supported-operators", get(supported_operators))
        .route("/supported-operators/{operator_name}", get(operator_properties))
        .route("/support-levels/features", get(features))
        .route("/support-levels/architectures", get(architectures))
}

#[derive(utoipa::OpenApi)]
#[openapi(
    paths(
        component_versions,
        openshift_versions,
        supported_operators,
        operator_properties,
        features,
        architectures
    ),
    components(schemas(PlatformType, ReleaseArchitecture))
)]
pub struct Doc;

/// Show the versions of this hub's parts
#[utoipa::path(get, path = "/api/assisted-install/v2/component-versions", operation_id = "v2ListComponentVersions",
    tag = "version", responses((status = 200, description = "Versions by part", body = ComponentVersionsView)))]
async fn component_versions(State(hub): State<Hub>) -> Response {
    let versions = hub.settings.images.component_versions(env!("CARGO_PKG_VERSION"));
    json(StatusCode::OK, &json!({ "versions": versions }))
}

/// List the OpenShift versions that can be installed
#[utoipa::path(get, path = "/api/assisted-install/v2/openshift-versions", operation_id = "v2ListSupportedOpenshiftVersions",
    tag = "version", params(OpenshiftVersionsQuery),
    responses((status = 200, description = "By version", body = OpenshiftVersionsView),
        (status = 400, description = "The query is wrong", body = InfraErrorBody)))]
async fn openshift_versions(State(hub): State<Hub>, Args(query): Args<OpenshiftVersionsQuery>) -> Response {
    let filter = VersionFilter {
        version: query.version.filter(|version| !version.is_empty()),
        only_latest: query.only_latest == Some(true),
    };
    json(StatusCode::OK, &hub.settings.catalog.openshift_versions(&filter))
}

/// List the operators that a cluster can install
#[utoipa::path(get, path = "/api/assisted-install/v2/supported-operators", operation_id = "V2ListSupportedOperators",
    tag = "operator", responses((status = 200, description = "Names", body = Vec<String>)))]
async fn supported_operators() -> Response {
    json(StatusCode::OK, &OPERATORS.as_slice())
}

/// List the settings of an operator
#[utoipa::path(get, path = "/api/assisted-install/v2/supported-operators/{operator_name}",
    operation_id = "V2ListOperatorProperties", tag = "operator", params(("operator_name" = String, Path)),
    responses((status = 200, description = "Its settings", body = Vec<OperatorPropertyView>),
        (status = 404, description = "No such operator; the body is empty")))]
async fn operator_properties(Path(name): Path<String>) -> Response {
    if OPERATORS.contains(&name.as_str()) {
        return json(StatusCode::OK, &Vec::<OperatorPropertyView>::new());
    }
    let json_type = HeaderValue::from_static("application/json");
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, json_type)]).into_response()
}

/// Show how well features are supported
#[utoipa::path(get, path = "/api/assisted-install/v2/support-levels/features", operation_id = "GetSupportedFeatures",
    tag = "version", params(SupportQuery),
    responses((status = 200, description = "Levels by feature", body = SupportedFeaturesView),
        (status = 400, description = "The version is missing", body = InfraErrorBody)))]
async fn features(Args(query): Args<SupportQuery>) -> Result<Response, Problem> {
    let version = schema::required("openshift_version", query.openshift_version.as_deref())?;
    let features = catalog::features(version, query.cpu_architecture.map(ReleaseArchitecture::word));
    Ok(json(StatusCode::OK, &json!({ "features": features })))
}

/// Show how well architectures are supported
#[utoipa::path(get, path = "/api/assisted-install/v2/support-levels/architectures",
    operation_id = "GetSupportedArchitectures", tag = "version", params(SupportQuery),
    responses((status = 200, description = "Levels by architecture", body = SupportedArchitecturesView),
        (status = 400, description = "The version is missing", body = InfraErrorBody)))]
async fn architectures(State(hub): State<Hub>, Args(query): Args<SupportQuery>) -> Result<Response, Problem> {
    let version = schema::required("openshift_version", query.openshift_version.as_deref())?;
    let architectures = catalog::architectures(&hub.settings.catalog, version);
    Ok(json(StatusCode::OK, &json!({ "architectures": architectures })))
}
