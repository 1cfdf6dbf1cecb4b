//! The document describes what the door really offers.

use crate::door::Door;
use axum::http::{Method, StatusCode};
use muster_hub::http::openapi;
use serde_json::{Value, json};
use uuid::Uuid;

/// Every operation clients cannot do without.
const NEEDED: &[&str] = &[
    "v2RegisterCluster",
    "v2ListClusters",
    "v2GetCluster",
    "v2DeregisterCluster",
    "V2UpdateCluster",
    "ListClusterHosts",
    "RegisterInfraEnv",
    "ListInfraEnvs",
    "GetInfraEnv",
    "UpdateInfraEnv",
    "DeregisterInfraEnv",
    "GetInfraEnvDownloadURL",
    "v2DownloadInfraEnvFiles",
    "DownloadMinimalInitrd",
    "v2RegisterHost",
    "v2ListHosts",
    "v2GetHost",
    "v2UpdateHost",
    "v2DeregisterHost",
    "v2GetNextSteps",
    "v2PostStepReply",
    "v2UpdateHostInstallProgress",
    "BindHost",
    "UnbindHost",
    "v2UpdateHostInstallerArgs",
    "v2UpdateHostIgnition",
    "v2UpdateHostLogsProgress",
    "TransformClusterToDay2",
    "TransformClusterToAddingHosts",
    "v2GetPreflightRequirements",
    "V2ListSupportedOperators",
    "v2ListComponentVersions",
    "v2ListSupportedOpenshiftVersions",
    "v2ListEvents",
    "v2TriggerEvent",
    "v2ImportCluster",
    "v2GetIgnoredValidations",
    "v2SetIgnoredValidations",
    "v2GetClusterInstallConfig",
    "v2UpdateClusterInstallConfig",
    "v2UpdateClusterFinalizingProgress",
    "v2ResetHost",
    "v2InstallHost",
    "V2DownloadClusterFiles",
    "V2DownloadClusterCredentials",
    "V2GetCredentials",
    "v2InstallCluster",
    "V2CancelInstallation",
    "v2ResetCluster",
    "v2UploadClusterIngressCert",
    "v2CompleteInstallation",
    "v2UpdateClusterLogsProgress",
    "V2ListClusterManifests",
    "V2CreateClusterManifest",
    "V2UpdateClusterManifest",
    "V2DeleteClusterManifest",
    "v2DownloadClusterManifest",
    "V2DownloadClusterLogs",
    "V2UploadLogs",
    "V2ListOfClusterOperators",
    "v2ReportMonitoredOperatorStatus",
    "v2DownloadHostIgnition",
    "v2GetHostIgnition",
    "v2ResetHostValidation",
    "uploadIgnition",
];

fn operations() -> impl Iterator<Item = (&'static str, Method, &'static Value)> {
    let paths = openapi::document()["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| {
            (path.as_str(), method.to_uppercase().parse().unwrap(), operation)
        })
    })
}

#[test]
fn every_needed_operation_is_described_once() {
    let ids: Vec<_> = operations()
        .map(|(_, _, operation)| operation["operationId"].as_str().unwrap())
        .collect();
    let missing: Vec<_> = NEEDED.iter().filter(|id| !ids.contains(id)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut unique = ids.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), ids.len());
}

#[tokio::test]
async fn every_described_operation_is_there() {
    let door = Door::open().await;
    for (path, method, _) in operations() {
        let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        for part in parts.iter_mut().filter(|part| part.starts_with('{')) {
            *part = Uuid::new_v4().to_string();
        }
        let body = (method != Method::GET && method != Method::DELETE).then(|| json!({}));
        let answer = door.ask(method.clone(), &parts.join("/"), body.as_ref()).await;
        assert_ne!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {path}");
        assert!(
            !answer.text.contains("there is no path"),
            "{method} {path}: {}",
            answer.text
        );
        assert!(
            answer.status.as_u16() < 500
                || answer.status == StatusCode::NOT_IMPLEMENTED
                // Who polls for an InfraEnv that is not there is asked to come again.
                || answer.text.contains("There is no InfraEnv"),
            "{method} {path}: {}",
            answer.text
        );
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| walk(value, found));
            }
            Value::Array(list) => list.iter().for_each(|value| walk(value, found)),
            _ => {}
        }
    }
    let document = openapi::document();
    let mut found = Vec::new();
    walk(document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn the_document_is_served_where_clients_look_for_it() {
    let door = Door::open().await;
    for path in [
        "/openapi.json",
        "/api/assisted-install/openapi",
        "/api/assisted-install/v2/openapi",
    ] {
        let answer = door.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert_eq!(&answer.body, openapi::document(), "{path}");
    }
}
