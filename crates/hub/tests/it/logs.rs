//! Logs of an installation, in and out.

use crate::door::{Answer, Door, V2};
use axum::body::{Body, Bytes};
use axum::http::{Method, StatusCode, header};
use futures_util::stream;
use muster_domain::ClusterId;
use serde_json::json;
use std::process::Command;
use uuid::Uuid;

const KIND: &str = "multipart/form-data; boundary=limit";
const LARGEST: usize = 262_144_000;

fn form(name: &str, file: &[u8]) -> Vec<u8> {
    let head = format!(
        "--limit\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"logs.tar.gz\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), file, b"\r\n--limit--\r\n"].concat()
}

async fn upload(door: &Door, id: Uuid, query: &str, body: impl Into<Body>) -> Answer {
    let path = format!("{V2}/clusters/{id}/logs?{query}");
    door.send(Method::POST, &path, KIND, body).await
}

async fn download(door: &Door, id: Uuid, query: &str) -> Answer {
    door.get(&format!("{V2}/clusters/{id}/logs?{query}")).await
}

/// The names in an archive, as another program sees them.
fn names(archive: &[u8]) -> Vec<String> {
    tar(archive, &["-t"]).lines().map(str::to_owned).collect()
}

fn tar(archive: &[u8], args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.tar");
    std::fs::write(&path, archive).unwrap();
    let mut command = Command::new("tar");
    command.arg("-f").arg(&path).args(args);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

async fn with_host() -> (Door, Uuid, Uuid, Uuid) {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let id = door.cluster("prod").await;
    let host = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, host, id).await.status, StatusCode::OK);
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    let changed = door
        .ask(Method::PATCH, &path, Some(&json!({ "host_role": "worker" })))
        .await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    (door, id, pool, host)
}

#[tokio::test]
async fn a_host_s_logs_come_back_as_an_archive() {
    let (door, id, pool, host) = with_host().await;
    let query = format!("logs_type=host&host_id={host}");
    let early = download(&door, id, &query).await;
    assert_eq!(
        (early.status, &early.body["kind"]),
        (StatusCode::CONFLICT, &json!("Error"))
    );
    let whose = format!("{query}&infra_env_id={pool}");
    assert_eq!(
        upload(&door, id, &whose, form("upfile", b"old")).await.status,
        StatusCode::NO_CONTENT
    );
    let kept = upload(&door, id, &whose, form("upfile", b"LOGS")).await;
    assert_eq!((kept.status, kept.text.as_str()), (StatusCode::NO_CONTENT, ""));
    let archive = download(&door, id, &query).await;
    assert_eq!((archive.status, archive.bytes.len()), (StatusCode::OK, 2048));
    let name = "prod_worker_worker-1.tar.gz";
    assert_eq!(
        archive.headers[header::CONTENT_DISPOSITION],
        format!("attachment; filename=\"{name}\"")
    );
    assert_eq!(names(&archive.bytes), [name]);
    assert_eq!(tar(&archive.bytes, &["-xO", name]), "LOGS");
    let shown = door
        .get(&format!("{V2}/infra-envs/{pool}/hosts/{host}"))
        .await
        .body;
    assert_ne!(shown["logs_collected_at"], "0001-01-01T00:00:00.000Z");
}

#[tokio::test]
async fn everything_is_one_archive_with_events_and_settings() {
    let (door, id, pool, host) = with_host().await;
    let all = download(&door, id, "logs_type=all").await;
    assert_eq!(all.status, StatusCode::OK);
    assert_eq!(
        names(&all.bytes),
        ["cluster_events.json", "cluster_metadata.json"]
    );
    upload(&door, id, "logs_type=controller", form("upfile", b"controller's")).await;
    upload(
        &door,
        id,
        &format!("logs_type=host&host_id={host}"),
        form("upfile", b"host's"),
    )
    .await;
    let all = download(&door, id, "").await;
    assert_eq!(
        names(&all.bytes),
        [
            "cluster_events.json",
            "cluster_metadata.json",
            "prod_worker_worker-1.tar.gz",
            "prod_controller_logs.tar.gz",
        ]
    );
    assert_eq!(all.headers[header::CONTENT_LENGTH], all.bytes.len().to_string());
    assert_eq!(
        all.headers[header::CONTENT_DISPOSITION],
        format!("attachment; filename=\"prod_{id}.tar\"")
    );
    assert!(tar(&all.bytes, &["-xO", "cluster_events.json"]).contains("host_logs_uploaded"));
    assert!(!all.text.contains("auths"), "no secret is in it");
    let controller = download(&door, id, "logs_type=controller").await;
    assert_eq!(tar(&controller.bytes, &["-xO"]), "controller's");
    let shown = door.get(&format!("{V2}/clusters/{id}")).await.body;
    assert_ne!(shown["controller_logs_collected_at"], "0001-01-01T00:00:00.000Z");
    // The logs of a host that left are still the cluster's.
    let unbind = format!("{V2}/infra-envs/{pool}/hosts/{host}/actions/unbind");
    door.ask(Method::POST, &unbind, None).await;
    door.register(pool, host).await;
    door.settle().await;
    let left = names(&download(&door, id, "").await.bytes);
    assert_eq!(left[2], format!("prod_{host}.tar.gz"));
}

#[tokio::test]
async fn an_upload_must_say_what_it_is() {
    let (door, id, pool, host) = with_host().await;
    let file = || form("upfile", b"x");
    let cases = [
        (upload(&door, id, "", file()).await, StatusCode::BAD_REQUEST),
        (
            upload(&door, id, "logs_type=all", file()).await,
            StatusCode::BAD_REQUEST,
        ),
        (
            upload(&door, id, "logs_type=host", file()).await,
            StatusCode::BAD_REQUEST,
        ),
        (
            upload(&door, id, "logs_type=tree", file()).await,
            StatusCode::BAD_REQUEST,
        ),
        (
            upload(&door, id, &format!("logs_type=host&host_id={id}"), file()).await,
            StatusCode::NOT_FOUND,
        ),
        (
            upload(
                &door,
                id,
                &format!("logs_type=host&host_id={host}&infra_env_id={id}"),
                file(),
            )
            .await,
            StatusCode::NOT_FOUND,
        ),
        (
            upload(&door, Uuid::new_v4(), "logs_type=controller", file()).await,
            StatusCode::NOT_FOUND,
        ),
        (
            upload(&door, id, "logs_type=controller", form("other", b"x")).await,
            StatusCode::BAD_REQUEST,
        ),
        (
            upload(&door, id, "logs_type=controller", "no form").await,
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (answer, status) in cases {
        assert_eq!(answer.status, status, "{}", answer.text);
    }
    let path = format!("{V2}/clusters/{id}/logs?logs_type=controller");
    let json = door.send(Method::POST, &path, "application/json", "{}").await;
    assert_eq!(json.status, StatusCode::BAD_REQUEST);
    assert_eq!(door.hub.store.file_list(ClusterId(id), "").await.unwrap(), []);
    let unknown = download(&door, id, &format!("logs_type=host&host_id={pool}")).await;
    assert_eq!(
        (unknown.status, &unknown.body["kind"]),
        (StatusCode::NOT_FOUND, &json!("Error"))
    );
    assert_eq!(
        download(&door, id, "logs_type=host").await.status,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        download(&door, id, "logs_type=controller").await.status,
        StatusCode::CONFLICT
    );
}

/// A form whose file has this many bytes, never in memory whole.
fn large(size: usize) -> Body {
    let whole = form("upfile", b"");
    let (head, end) = whole.split_at(whole.len() - b"\r\n--limit--\r\n".len());
    let piece = Bytes::from(vec![7_u8; 1 << 20]);
    let mut pieces = vec![Bytes::copy_from_slice(head)];
    pieces.extend(std::iter::repeat_n(piece.clone(), size / piece.len()));
    pieces.push(piece.slice(..size % piece.len()));
    pieces.push(Bytes::copy_from_slice(end));
    Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>)))
}

#[tokio::test]
async fn logs_larger_than_allowed_leave_nothing() {
    let (door, id, ..) = with_host().await;
    let refused = upload(&door, id, "logs_type=controller", large(LARGEST + 1)).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", refused.text);
    assert_eq!(door.hub.store.file_list(ClusterId(id), "").await.unwrap(), []);
    // More than a usual body is fine.
    let kept = upload(&door, id, "logs_type=controller", large(40_000_000)).await;
    assert_eq!(kept.status, StatusCode::NO_CONTENT, "{}", kept.text);
    let archive = download(&door, id, "logs_type=controller").await;
    assert_eq!(
        archive.bytes.len(),
        512 + 40_000_000_usize.next_multiple_of(512) + 1024
    );
}

#[tokio::test]
async fn an_upload_that_breaks_off_leaves_nothing() {
    let (door, id, ..) = with_host().await;
    let whole = form("upfile", &vec![7; 3 << 20]);
    let cut = Bytes::copy_from_slice(&whole[..whole.len() - 100]);
    let broken = stream::iter([Ok(cut), Err(std::io::Error::other("the line is dead"))]);
    let refused = upload(&door, id, "logs_type=controller", Body::from_stream(broken)).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    assert_eq!(door.hub.store.file_list(ClusterId(id), "").await.unwrap(), []);
    // Nothing is left to prune either: what was let go of is cleaned up behind the next commit but one.
    for name in ["a", "b"] {
        door.hub
            .store
            .file_put(ClusterId(id), name, "x", door.hub.now())
            .await
            .unwrap();
    }
    let later = door.hub.now() + jiff::SignedDuration::from_hours(1);
    assert_eq!(door.hub.store.uploads_prune(later).await.unwrap(), 0);
}

#[tokio::test]
async fn the_collection_of_logs_is_reported() {
    let (door, id, pool, host) = with_host().await;
    for state in ["requested", "collecting", "completed"] {
        let body = json!({ "logs_state": state });
        for path in [
            format!("{V2}/clusters/{id}/logs-progress"),
            format!("{V2}/infra-envs/{pool}/hosts/{host}/logs-progress"),
        ] {
            let kept = door.ask(Method::PUT, &path, Some(&body)).await;
            assert_eq!(kept.status, StatusCode::NO_CONTENT, "{}", kept.text);
        }
        let shown = door.get(&format!("{V2}/clusters/{id}")).await.body;
        assert_eq!(shown["logs_info"], state);
        assert_ne!(shown["controller_logs_started_at"], "0001-01-01T00:00:00.000Z");
    }
    let path = format!("{V2}/clusters/{}/logs-progress", Uuid::new_v4());
    let nobody = door
        .ask(Method::PUT, &path, Some(&json!({ "logs_state": "requested" })))
        .await;
    assert_eq!(nobody.status, StatusCode::NOT_FOUND);
    let path = format!("{V2}/clusters/{id}/logs-progress");
    let wrong = door
        .ask(Method::PUT, &path, Some(&json!({ "logs_state": "lost" })))
        .await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}
