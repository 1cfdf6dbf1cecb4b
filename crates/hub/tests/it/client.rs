//! The client's calls around an installation, over a real connection.

use crate::door::Door;
use crate::fake_installer::{Program, WORKS, alter};
use muster_contract::client::{ClientError, HubClient};
use muster_contract::v2::install::{
    CompleteInstallation, IngressCert, InstallConfigOverrides, LogsQuery, LogsState, LogsType,
    ReportClusterProgress, ReportLogsProgress,
};
use muster_contract::v2::manifest::{CreateManifest, ManifestQuery, ManifestsQuery, UpdateManifest};
use muster_contract::v2::operator::{OperatorStatus, OperatorsQuery, ReportOperator};
use muster_domain::ClusterId;
use muster_domain::cluster::Phase;
use muster_hub::http;
use muster_hub::usecase::cluster_files::files_make;
use muster_vocabulary::InstallRole;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A hub that listens until this is dropped.
struct Served {
    client: HubClient,
    _stop: oneshot::Sender<()>,
}

async fn served(door: &Door) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = HubClient::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = door.router.clone();
    tokio::spawn(async move {
        let until = async { drop(stopped.await) };
        http::server::serve(listener, router, until).await.unwrap();
    });
    Served { client, _stop: stop }
}

#[tokio::test]
async fn what_surrounds_an_installation_can_be_asked_for() {
    let program = Program::new(WORKS);
    let door = program.door().await;
    let id = door.cluster("prod").await;
    let served = served(&door).await;
    let hub = &served.client;

    let wish = CreateManifest {
        file_name: "a.yaml".into(),
        content: "YTogMQo=".into(),
        ..CreateManifest::default()
    };
    hub.create_manifest(id, &wish).await.unwrap();
    let change = UpdateManifest {
        file_name: "a.yaml".into(),
        updated_file_name: Some("b.yaml".into()),
        ..UpdateManifest::default()
    };
    assert_eq!(
        hub.update_manifest(id, &change).await.unwrap().file_name,
        "b.yaml"
    );
    assert_eq!(
        hub.manifests(id, &ManifestsQuery::default()).await.unwrap().len(),
        1
    );
    let query = ManifestQuery {
        folder: None,
        file_name: "b.yaml".into(),
    };
    assert_eq!(hub.manifest_file(id, &query).await.unwrap(), b"a: 1\n");
    hub.delete_manifest(id, &query).await.unwrap();
    let gone = hub.manifest_file(id, &query).await.unwrap_err();
    assert!(matches!(gone, ClientError::NotFound(_)), "{gone}");

    let overrides = InstallConfigOverrides(r#"{"fips":true}"#.into());
    hub.override_install_config(id, &overrides).await.unwrap();
    assert!(hub.install_config(id).await.unwrap().contains("fips: true"));

    let config = br#"{"ignition":{"version":"3.4.0"}}"#;
    let kept = hub
        .upload_ignition(id, InstallRole::Worker, config.to_vec())
        .await
        .unwrap();
    assert_eq!(
        (kept.role.as_str(), kept.size_bytes),
        ("worker", config.len() as u64)
    );
    assert_eq!(
        hub.uploaded_ignition(id, InstallRole::Worker).await.unwrap(),
        config
    );
    hub.remove_ignition(id, InstallRole::Worker).await.unwrap();

    alter(&door.hub, id, |cluster| {
        cluster.phase = Phase::Preparing;
        cluster.install.attempt = 1;
    })
    .await;
    files_make(&door.hub, ClusterId(id), 1).await.unwrap();
    alter(&door.hub, id, |cluster| cluster.phase = Phase::Finalizing).await;
    let stage = ReportClusterProgress {
        finalizing_stage: Some("Adding router ca".parse().unwrap()),
    };
    hub.report_cluster_progress(id, &stage).await.unwrap();
    let report = ReportOperator {
        name: Some("console".into()),
        status: Some(OperatorStatus::Available),
        ..ReportOperator::default()
    };
    hub.report_operator(id, &report).await.unwrap();
    let operators = hub
        .monitored_operators(id, &OperatorsQuery::default())
        .await
        .unwrap();
    assert_eq!(operators[0].status, "available");
    assert_eq!(hub.credentials(id).await.unwrap().password, "correct-horse");
    let cert = IngressCert("-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n".into());
    hub.upload_ingress_cert(id, &cert).await.unwrap();
    let done = CompleteInstallation {
        is_success: true,
        ..CompleteInstallation::default()
    };
    assert_eq!(hub.complete_installation(id, &done).await.unwrap().id, id);

    let whose = LogsQuery {
        logs_type: Some(LogsType::Controller),
        ..LogsQuery::default()
    };
    let logs: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    hub.upload_logs(id, &whose, &logs).await.unwrap();
    let archive = hub.logs(id, &whose).await.unwrap();
    assert_eq!(&archive[512..512 + logs.len()], logs);
    let state = ReportLogsProgress {
        logs_state: LogsState::Completed,
    };
    hub.report_cluster_logs(id, &state).await.unwrap();
}
