//! Files and credentials of an installation, and when they are available.

use crate::door::{Door, V2};
use crate::fake_installer::{Program, WORKS, alter};
use axum::http::{Method, StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_domain::ClusterId;
use muster_domain::cluster::{OperatorStatus, Phase};
use muster_hub::usecase::cluster_files::files_make;
use serde_json::json;
use uuid::Uuid;

const CERT: &str = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";

/// A cluster whose files are made.
async fn prepared(program: &Program) -> (Door, Uuid) {
    let door = program.door().await;
    let id = door.cluster("prod").await;
    alter(&door.hub, id, |cluster| {
        cluster.phase = Phase::Preparing;
        cluster.install.attempt = 1;
    })
    .await;
    files_make(&door.hub, ClusterId(id), 1).await.unwrap();
    (door, id)
}

async fn enter(door: &Door, id: Uuid, phase: Phase) {
    alter(&door.hub, id, |cluster| cluster.phase = phase).await;
}

#[tokio::test]
async fn files_can_be_had_from_the_installation_on() {
    let program = Program::new(WORKS);
    let (door, id) = prepared(&program).await;
    let path = |name: &str| format!("{V2}/clusters/{id}/downloads/files?file_name={name}");
    for phase in [Phase::Draft, Phase::Preparing, Phase::Unmonitored] {
        enter(&door, id, phase).await;
        let early = door.get(&path("bootstrap.ign")).await;
        assert_eq!(
            (early.status, &early.body["kind"]),
            (StatusCode::CONFLICT, &json!("Error")),
            "{phase:?}"
        );
    }
    for phase in [
        Phase::Installing,
        Phase::Finalizing,
        Phase::Installed,
        Phase::AddingHosts,
        Phase::BootFix,
        Phase::Error,
        Phase::Cancelled,
    ] {
        enter(&door, id, phase).await;
        for name in [
            "bootstrap.ign",
            "master.ign",
            "worker.ign",
            "metadata.json",
            "install-config.yaml",
        ] {
            let file = door.get(&path(name)).await;
            assert_eq!(file.status, StatusCode::OK, "{phase:?} {name}: {}", file.text);
            assert_eq!(
                file.headers[header::CONTENT_DISPOSITION],
                format!("attachment; filename=\"{name}\"")
            );
            assert_eq!(file.headers[header::CONTENT_TYPE], "application/octet-stream");
        }
        for name in ["custom_manifests.json", "custom_manifests.yaml", "arbiter.ign"] {
            assert_eq!(door.get(&path(name)).await.status, StatusCode::CONFLICT);
        }
    }
    let wrong = door.get(&path("passwd")).await;
    assert_eq!(
        (wrong.status, &wrong.body["code"]),
        (StatusCode::BAD_REQUEST, &json!(400))
    );
    let nobody = format!(
        "{V2}/clusters/{}/downloads/files?file_name=bootstrap.ign",
        Uuid::new_v4()
    );
    assert_eq!(door.get(&nobody).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_kubeconfig_is_complete_once_the_ingress_is_known() {
    let program = Program::new(WORKS);
    let (door, id) = prepared(&program).await;
    let file = |name: &str| format!("{V2}/clusters/{id}/downloads/credentials?file_name={name}");
    let cert = format!("{V2}/clusters/{id}/uploads/ingress-cert");
    enter(&door, id, Phase::Installing).await;
    assert_eq!(door.get(&file("kubeadmin-password")).await.text, "correct-horse");
    assert_eq!(
        door.get(&file("kubeconfig-noingress")).await.status,
        StatusCode::OK
    );
    assert_eq!(door.get(&file("kubeconfig")).await.status, StatusCode::CONFLICT);
    let early = door.post(&cert, json!(CERT)).await;
    assert_eq!(
        (early.status, &early.body["kind"]),
        (StatusCode::BAD_REQUEST, &json!("Error"))
    );

    enter(&door, id, Phase::Finalizing).await;
    let without = door.get(&file("kubeconfig")).await;
    assert_eq!(
        without.headers[header::CONTENT_DISPOSITION],
        "attachment; filename=\"kubeconfig-noingress\""
    );
    assert_eq!(
        door.post(&cert, json!("no certificate")).await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        door.post(&cert, json!({ "pem": CERT })).await.status,
        StatusCode::BAD_REQUEST
    );
    let kept = door.post(&cert, json!(CERT)).await;
    assert_eq!((kept.status, kept.text.as_str()), (StatusCode::CREATED, ""));
    let whole = door.get(&file("kubeconfig")).await;
    assert_eq!(
        whole.headers[header::CONTENT_DISPOSITION],
        "attachment; filename=\"kubeconfig\""
    );
    assert!(whole.text.contains("https://api.c.example.com:6443"));
    assert_ne!(whole.text, without.text);
    assert!(
        door.hub
            .index
            .cluster(ClusterId(id))
            .unwrap()
            .install
            .has_kubeconfig
    );

    // Sent again, nothing changes.
    let revision = door.hub.index.cluster(ClusterId(id)).unwrap().revision;
    assert_eq!(door.post(&cert, json!(CERT)).await.status, StatusCode::CREATED);
    assert_eq!(door.hub.index.cluster(ClusterId(id)).unwrap().revision, revision);
    assert_eq!(door.get(&file("kubeconfig")).await.text, whole.text);
    enter(&door, id, Phase::Installed).await;
    assert_eq!(door.post(&cert, json!(CERT)).await.status, StatusCode::CREATED);
    let nobody = format!("{V2}/clusters/{}/uploads/ingress-cert", Uuid::new_v4());
    assert_eq!(
        door.post(&nobody, json!(CERT)).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn nobody_logs_in_before_there_is_a_console() {
    let program = Program::new(WORKS);
    let (door, id) = prepared(&program).await;
    let path = format!("{V2}/clusters/{id}/credentials");
    enter(&door, id, Phase::Finalizing).await;
    let early = door.get(&path).await;
    assert_eq!(
        (early.status, &early.body["kind"]),
        (StatusCode::CONFLICT, &json!("Error"))
    );
    alter(&door.hub, id, |cluster| {
        for operator in &mut cluster.operators {
            operator.status = OperatorStatus::Available;
        }
    })
    .await;
    assert_eq!(
        door.get(&path).await.body,
        json!({ "username": "kubeadmin", "password": "correct-horse",
            "console_url": "https://console-openshift-console.apps.prod.example.com" })
    );
}

#[tokio::test]
async fn the_install_config_is_shown_with_people_s_changes() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let path = format!("{V2}/clusters/{id}/install-config");
    let plain = door.get(&path).await;
    assert_eq!(plain.status, StatusCode::OK, "{}", plain.text);
    let text = plain.body.as_str().unwrap();
    assert!(
        text.contains("name: prod") && text.contains("example.com"),
        "{text}"
    );
    let changed = door
        .ask(
            Method::PATCH,
            &path,
            Some(&json!(json!({ "fips": true }).to_string())),
        )
        .await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    let shown = door.get(&path).await;
    assert!(
        shown.body.as_str().unwrap().contains("fips: true"),
        "{}",
        shown.text
    );
    let refused = door.ask(Method::PATCH, &path, Some(&json!("not: [valid"))).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_host_gets_its_role_s_config_with_what_is_its_own() {
    let program = Program::new(WORKS);
    let door = program.door().await;
    let pool = door.infra_env("pool").await;
    let id = door.cluster("prod").await;
    let host = door.worker(pool, 1).await;
    let shown = format!("{V2}/infra-envs/{pool}/hosts/{host}/ignition");
    let singular = format!("{V2}/infra-env/{pool}/hosts/{host}/downloads/ignition");
    for path in [&shown, &singular] {
        assert_eq!(door.get(path).await.status, StatusCode::NOT_FOUND, "it is free");
    }
    assert_eq!(door.bind(pool, host, id).await.status, StatusCode::OK);
    let wish = json!({ "host_role": "worker", "host_name": "chosen" });
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    assert_eq!(
        door.ask(Method::PATCH, &path, Some(&wish)).await.status,
        StatusCode::CREATED
    );
    for path in [&shown, &singular] {
        assert_eq!(
            door.get(path).await.status,
            StatusCode::CONFLICT,
            "nothing is made yet"
        );
    }
    alter(&door.hub, id, |cluster| {
        cluster.phase = Phase::Preparing;
        cluster.install.attempt = 1;
    })
    .await;
    files_make(&door.hub, ClusterId(id), 1).await.unwrap();
    let file = door.get(&singular).await;
    assert_eq!(file.status, StatusCode::OK, "{}", file.text);
    assert_eq!(
        file.headers[header::CONTENT_DISPOSITION],
        format!("attachment; filename=\"worker-{host}.ign\"")
    );
    let files = file.body["storage"]["files"].as_array().unwrap();
    assert!(
        files.iter().any(|file| file["path"] == "/etc/worker"),
        "{}",
        file.text
    );
    let name = files.iter().find(|file| file["path"] == "/etc/hostname").unwrap();
    let source = name["contents"]["source"].as_str().unwrap();
    let content = source.split_once(',').unwrap().1;
    let decoded = STANDARD.decode(content).unwrap_or_else(|_| content.into());
    assert!(String::from_utf8_lossy(&decoded).contains("chosen"));
    assert_eq!(door.get(&shown).await.body["config"], file.text);
}

#[tokio::test]
async fn a_host_of_a_running_cluster_gets_a_pointer_with_its_token() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let id = door.cluster("prod").await;
    alter(&door.hub, id, |cluster| {
        cluster.phase = Phase::AddingHosts;
        cluster.kind = muster_domain::cluster::Kind::AddHostsCluster;
        cluster.api_vip_dns_name = "api.prod.example.com".into();
    })
    .await;
    let host = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, host, id).await.status, StatusCode::OK);
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let wish = json!({ "ignition_endpoint_token": "a-token" });
    assert_eq!(
        door.ask(Method::PATCH, &path, Some(&wish)).await.status,
        StatusCode::CREATED
    );
    let file = door
        .get(&format!("{V2}/infra-env/{pool}/hosts/{host}/downloads/ignition"))
        .await;
    assert_eq!(file.status, StatusCode::OK, "{}", file.text);
    let merge = &file.body["ignition"]["config"]["merge"][0];
    assert_eq!(merge["source"], "http://api.prod.example.com:22624/config/worker");
    assert_eq!(
        merge["httpHeaders"][0],
        json!({ "name": "Authorization", "value": "Bearer a-token" })
    );
}
