//! Manifests that people add to a cluster.

use crate::door::{Door, V2};
use crate::fake_installer::alter;
use axum::http::{Method, StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_domain::cluster::Phase;
use serde_json::{Value, json};
use uuid::Uuid;

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

fn path(cluster: Uuid) -> String {
    format!("{V2}/clusters/{cluster}/manifests")
}

fn manifest(folder: &str, name: &str) -> Value {
    json!({ "folder": folder, "file_name": name, "content": base64("kind: ConfigMap\n") })
}

#[tokio::test]
async fn a_manifest_is_kept_shown_changed_and_deleted() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let path = path(id);
    assert_eq!(door.get(&path).await.body, json!([]));
    let made = door
        .post(
            &path,
            json!({ "file_name": "b.yaml", "content": base64("a: 1\n---\nb: 2\n") }),
        )
        .await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let shown = json!({ "folder": "manifests", "file_name": "b.yaml", "manifest_source": "user" });
    assert_eq!(made.body, shown);
    door.post(&path, manifest("openshift", "a.yml")).await;
    let list = door
        .get(&format!("{path}?include_system_generated=true"))
        .await
        .body;
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(list[0], shown);

    let file = door.get(&format!("{path}/files?file_name=b.yaml")).await;
    assert_eq!(
        (file.status, file.text.as_str()),
        (StatusCode::OK, "a: 1\n---\nb: 2\n")
    );
    assert_eq!(
        file.headers[header::CONTENT_DISPOSITION],
        "attachment; filename=\"b.yaml\""
    );
    // The same again is one manifest with the newer content.
    door.post(
        &path,
        json!({ "file_name": "b.yaml", "content": base64("a: 3\n") }),
    )
    .await;
    let wish = json!({ "folder": "manifests", "file_name": "b.yaml", "updated_folder": "openshift",
        "updated_file_name": "c.yaml" });
    let moved = door.ask(Method::PATCH, &path, Some(&wish)).await;
    assert_eq!(moved.status, StatusCode::OK, "{}", moved.text);
    assert_eq!(
        (&moved.body["folder"], &moved.body["file_name"]),
        (&json!("openshift"), &json!("c.yaml"))
    );
    assert_eq!(
        door.get(&format!("{path}/files?file_name=b.yaml")).await.status,
        StatusCode::NOT_FOUND
    );
    let file = door
        .get(&format!("{path}/files?folder=openshift&file_name=c.yaml"))
        .await;
    assert_eq!(file.text, "a: 3\n");
    let wish = json!({ "folder": "openshift", "file_name": "c.yaml", "updated_content": base64("a: 4\n") });
    assert_eq!(
        door.ask(Method::PATCH, &path, Some(&wish)).await.status,
        StatusCode::OK
    );
    let file = door
        .get(&format!("{path}/files?folder=openshift&file_name=c.yaml"))
        .await;
    assert_eq!(file.text, "a: 4\n");

    let delete = format!("{path}?folder=openshift&file_name=c.yaml");
    let gone = door.ask(Method::DELETE, &delete, None).await;
    assert_eq!((gone.status, gone.text.as_str()), (StatusCode::OK, ""));
    assert_eq!(
        door.ask(Method::DELETE, &delete, None).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(door.get(&path).await.body.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_is_taken_once_in_both_folders() {
    let door = Door::open().await;
    let path = path(door.cluster("prod").await);
    for name in ["a.yaml", "b.yaml"] {
        assert_eq!(
            door.post(&path, manifest("manifests", name)).await.status,
            StatusCode::CREATED
        );
    }
    let twice = door.post(&path, manifest("openshift", "a.yaml")).await;
    assert_eq!(
        (twice.status, &twice.body["kind"]),
        (StatusCode::CONFLICT, &json!("Error"))
    );
    door.post(&path, manifest("openshift", "c.yaml")).await;
    for (folder, name) in [
        ("openshift", "a.yaml"),
        ("openshift", "c.yaml"),
        ("manifests", "c.yaml"),
    ] {
        let wish = json!({ "folder": "manifests", "file_name": "b.yaml", "updated_folder": folder,
            "updated_file_name": name });
        let refused = door.ask(Method::PATCH, &path, Some(&wish)).await;
        assert_eq!(
            refused.status,
            StatusCode::CONFLICT,
            "{folder}/{name}: {}",
            refused.text
        );
    }
    // Into the other folder under its own name is no second one.
    let wish = json!({ "folder": "manifests", "file_name": "b.yaml", "updated_folder": "openshift" });
    assert_eq!(
        door.ask(Method::PATCH, &path, Some(&wish)).await.status,
        StatusCode::OK
    );
}

#[tokio::test]
async fn of_namesakes_that_arrive_together_one_is_kept() {
    let door = Door::open().await;
    let path = path(door.cluster("prod").await);
    let asked = (0..8).map(|n| {
        let folder = if n % 2 == 0 { "manifests" } else { "openshift" };
        door.post(&path, manifest(folder, "same.yaml"))
    });
    let answers = futures_util::future::join_all(asked).await;
    let kept = door.get(&path).await.body;
    assert_eq!(kept.as_array().unwrap().len(), 1, "{kept}");
    for answer in answers {
        assert!(
            [StatusCode::CREATED, StatusCode::CONFLICT].contains(&answer.status),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn what_cannot_be_a_manifest_is_refused_with_the_reason() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let path = path(id);
    let cases = [
        (
            json!({ "file_name": "a.txt", "content": base64("a") }),
            "message",
            "file_name",
        ),
        (
            json!({ "file_name": "../a.yaml", "content": base64("a") }),
            "message",
            "file_name",
        ),
        (
            json!({ "file_name": format!("{}.yaml", "a".repeat(255)), "content": base64("a") }),
            "message",
            "255",
        ),
        (
            json!({ "file_name": "a.yaml", "content": "!!" }),
            "reason",
            "base64",
        ),
        (json!({ "file_name": "a.yaml", "content": "" }), "reason", "empty"),
        (
            json!({ "file_name": "a.yaml", "content": base64("a: [1") }),
            "reason",
            "YAML",
        ),
        (
            json!({ "file_name": "a.json", "content": base64("a: 1") }),
            "reason",
            "JSON",
        ),
        (
            json!({ "file_name": "a.yaml", "content": base64(&"a".repeat(1024 * 1024 + 1)) }),
            "reason",
            "1048576",
        ),
        (
            json!({ "file_name": "a.yaml", "content": base64("a"), "folder": "etc" }),
            "message",
            "folder",
        ),
        (
            json!({ "file_name": "a.yaml", "content": base64("a"), "mode": 1 }),
            "message",
            "mode",
        ),
        (json!({ "file_name": "a.yaml" }), "message", "content"),
    ];
    for (wish, key, part) in cases {
        let refused = door.post(&path, wish.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        let text = refused.body[key].as_str().unwrap_or_default();
        assert!(text.contains(part), "{part}: {}", refused.text);
    }
    assert_eq!(door.get(&path).await.body, json!([]));
    let nobody = super_path();
    for answer in [
        door.get(&nobody).await,
        door.post(&nobody, manifest("manifests", "a.yaml")).await,
        door.ask(Method::DELETE, &format!("{nobody}?file_name=a.yaml"), None)
            .await,
        door.get(&format!("{nobody}/files?file_name=a.yaml")).await,
    ] {
        assert_eq!(
            (answer.status, &answer.body["kind"]),
            (StatusCode::NOT_FOUND, &json!("Error"))
        );
    }
    assert_eq!(
        door.ask(Method::DELETE, &path, None).await.status,
        StatusCode::BAD_REQUEST,
        "a name is needed"
    );
}

fn super_path() -> String {
    path(Uuid::new_v4())
}

#[tokio::test]
async fn one_mebibyte_is_not_too_much() {
    let door = Door::open().await;
    let path = path(door.cluster("prod").await);
    let text = format!("a: {}\n", "x".repeat(1024 * 1024 - 4));
    let wish = json!({ "file_name": "large.yaml", "content": base64(&text) });
    assert_eq!(door.post(&path, wish).await.status, StatusCode::CREATED);
    let file = door.get(&format!("{path}/files?file_name=large.yaml")).await;
    assert_eq!(file.text.len(), text.len());
}

#[tokio::test]
async fn once_the_installation_has_begun_manifests_stay_as_they_are() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let path = path(id);
    door.post(&path, manifest("manifests", "a.yaml")).await;
    alter(&door.hub, id, |cluster| cluster.phase = Phase::Installing).await;
    let wish = json!({ "folder": "manifests", "file_name": "a.yaml", "updated_content": base64("b") });
    for refused in [
        door.post(&path, manifest("manifests", "b.yaml")).await,
        door.ask(Method::PATCH, &path, Some(&wish)).await,
        door.ask(Method::DELETE, &format!("{path}?file_name=a.yaml"), None)
            .await,
    ] {
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text);
    }
    assert_eq!(door.get(&path).await.body.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn manifests_go_with_their_cluster() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    door.post(&path(id), manifest("manifests", "a.yaml")).await;
    let gone = door
        .ask(Method::DELETE, &format!("{V2}/clusters/{id}"), None)
        .await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT, "{}", gone.text);
    let left = door
        .hub
        .store
        .file_list(muster_domain::ClusterId(id), "")
        .await
        .unwrap();
    assert_eq!(left, []);
}

async fn finding(door: &Door, cluster: Uuid, id: &str) -> String {
    door.settle().await;
    let view = door.get(&format!("{V2}/clusters/{cluster}")).await.body;
    let all: Value = serde_json::from_str(view["validations_info"].as_str().unwrap()).unwrap();
    let mut findings = all
        .as_object()
        .unwrap()
        .values()
        .flat_map(|part| part.as_array().unwrap());
    let found = findings.find(|finding| finding["id"] == id);
    found.unwrap()["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn networks_and_platforms_that_bring_manifests_are_judged_by_those_that_are_there() {
    let door = Door::open().await;
    let network = "custom-manifests-requirements-satisfied";
    let cases = [
        ("cilium", json!({ "network_type": "Cilium" }), network),
        ("calico", json!({ "network_type": "Calico" }), network),
        ("aci", json!({ "network_type": "CiscoACI" }), network),
        ("none", json!({ "network_type": "None" }), network),
        (
            "oci",
            json!({ "platform": { "type": "external",
                "external": { "platform_name": "oci", "cloud_controller_manager": "External" } } }),
            "platform-requirements-satisfied",
        ),
    ];
    for (name, wish, check) in cases {
        let id = door.cluster(name).await;
        let changed = door
            .ask(Method::PATCH, &format!("{V2}/clusters/{id}"), Some(&wish))
            .await;
        assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
        assert_eq!(finding(&door, id, check).await, "failure", "{name}");
        // Each change of the manifests is followed by a look of its own.
        door.post(&path(id), manifest("openshift", "a.yaml")).await;
        assert_eq!(finding(&door, id, check).await, "success", "{name}");
        let wish = json!({ "folder": "openshift", "file_name": "a.yaml", "updated_folder": "manifests",
            "updated_file_name": "b.yaml" });
        door.ask(Method::PATCH, &path(id), Some(&wish)).await;
        assert_eq!(finding(&door, id, check).await, "success", "{name}");
        let delete = format!("{}?folder=manifests&file_name=b.yaml", path(id));
        door.ask(Method::DELETE, &delete, None).await;
        assert_eq!(finding(&door, id, check).await, "failure", "{name}");
    }
}
