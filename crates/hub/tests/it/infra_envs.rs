//! InfraEnvs over REST v2.

use crate::rest::{Door, PULL_SECRET, UNKNOWN, id};
use axum::http::{StatusCode, header};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read;

#[tokio::test]
async fn a_new_one_has_defaults_and_shows_no_secret() {
    let door = Door::open().await;
    let made = door
        .infra_env(json!({ "openshift_version": "4.20.13", "cpu_architecture": "aarch64" }))
        .await;
    assert_eq!(made["cpu_architecture"], "arm64");
    assert_eq!(made["type"], "full-iso");
    assert_eq!(made["openshift_version"], "4.20");
    assert_eq!(made["pull_secret_set"], true);
    assert!(made.get("cluster_id").is_none());
    let shown = door.get(&format!("/infra-envs/{}", id(&made))).await;
    assert_eq!(shown.json(), made);
    assert!(!shown.text().contains("auths"));
    assert_eq!(door.get("/infra-envs").await.json(), json!([made]));
}

#[tokio::test]
async fn a_change_keeps_what_is_absent_and_empty_secrets() {
    let door = Door::open().await;
    let made = door
        .infra_env(json!({ "additional_ntp_sources": "a.example.com" }))
        .await;
    let path = format!("/infra-envs/{}", id(&made));
    let before = door.get(&path).await.json()["updated_at"].clone();
    door.hub.clock.advance(jiff::SignedDuration::from_secs(5));
    let unchanged = door
        .ask(
            "PATCH",
            &path,
            Some(&json!({ "pull_secret": "", "ssh_authorized_key": "" })),
        )
        .await;
    assert_eq!(unchanged.status, StatusCode::CREATED);
    assert_eq!(unchanged.json()["updated_at"], before);
    let wish = json!({
        "proxy": { "http_proxy": "http://proxy.example.com:3128" },
        "kernel_arguments": [{ "operation": "append", "value": "p=q" }],
        "static_network_config": [{ "network_yaml": "interfaces: []", "mac_interface_map":
            [{ "mac_address": "52-54-00-AA-BB-CC", "logical_nic_name": "eth0" }] }],
    });
    let changed = door.ask("PATCH", &path, Some(&wish)).await.json();
    assert_eq!(changed["additional_ntp_sources"], "a.example.com");
    assert_ne!(changed["updated_at"], before);
    assert_eq!(
        changed["kernel_arguments"],
        r#"[{"operation":"append","value":"p=q"}]"#
    );
    assert!(
        changed["static_network_config"]
            .as_str()
            .unwrap()
            .contains("52:54:00:aa:bb:cc")
    );
    let cleared =
        json!({ "kernel_arguments": [], "static_network_config": [], "proxy": { "http_proxy": "" } });
    let cleared = door.ask("PATCH", &path, Some(&cleared)).await.json();
    assert!(cleared.get("kernel_arguments").is_none() && cleared.get("static_network_config").is_none());
    assert_eq!(cleared["proxy"], json!({}));
}

#[tokio::test]
async fn a_config_that_does_not_fit_the_image_is_refused() {
    let door = Door::open().await;
    // Something that does not compress well.
    let noise: String = (0..30_000)
        .map(|_| uuid::Uuid::new_v4().simple().to_string())
        .collect();
    let config = json!({ "ignition": { "version": "3.1.0" },
        "storage": { "files": [{ "path": "/x", "contents": { "source": format!("data:,{noise}") } }] } });
    let wish =
        json!({ "name": "p", "pull_secret": PULL_SECRET, "ignition_config_override": config.to_string() });
    let reply = door.ask("POST", "/infra-envs", Some(&wish)).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text());
    assert_eq!(reply.json()["kind"], "Error");
}

/// Its download would not be there, and its hosts would never register.
#[tokio::test]
async fn an_image_that_is_not_made_here_is_refused_when_it_is_wished_for() {
    let door = Door::open().await;
    let wish = json!({ "name": "p", "pull_secret": PULL_SECRET, "image_type": "disconnected-iso" });
    let reply = door.ask("POST", "/infra-envs", Some(&wish)).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text());
    let reason = reply.json()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.contains("image_type") && reason.contains("minimal-iso"),
        "{reason}"
    );
    let made = door.infra_env(json!({})).await;
    let path = format!("/infra-envs/{}", id(&made));
    let wish = json!({ "image_type": "disconnected-iso" });
    let reply = door.ask("PATCH", &path, Some(&wish)).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text());
    assert_eq!(door.get(&path).await.json()["type"], "full-iso");
}

#[tokio::test]
async fn one_with_hosts_stays_and_an_empty_one_goes() {
    let door = Door::open().await;
    let made = door.infra_env(json!({})).await;
    let path = format!("/infra-envs/{}", id(&made));
    let host = json!({ "host_id": UNKNOWN, "discovery_agent_version": "a" });
    door.create(&format!("{path}/hosts"), host).await;
    let refused = door.ask("DELETE", &path, None).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert_eq!(refused.json()["code"], "400");
    assert_eq!(
        door.ask("DELETE", &format!("{path}/hosts/{UNKNOWN}"), None)
            .await
            .status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        door.ask("DELETE", &path, None).await.status,
        StatusCode::NO_CONTENT
    );
    assert_eq!(door.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(
        door.ask("DELETE", &path, None).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn downloads_say_when_they_changed() {
    let door = Door::open().await;
    let made = door.infra_env(json!({})).await;
    let path = format!("/infra-envs/{}/downloads", id(&made));
    let config = door.get(&format!("{path}/files?file_name=discovery.ign")).await;
    assert_eq!(config.status, StatusCode::OK);
    assert_eq!(
        config.headers[header::LAST_MODIFIED],
        "Sun, 15 Nov 2026 21:02:55 GMT"
    );
    assert_eq!(
        config.headers[header::CONTENT_DISPOSITION],
        "attachment; filename=\"discovery.ign\""
    );
    assert_eq!(config.json()["ignition"]["version"], "3.1.0");
    let script = door.get(&format!("{path}/files?file_name=ipxe-script")).await;
    assert!(script.text().starts_with("#!ipxe\ninitrd"), "{}", script.text());
    let chain = door
        .get(&format!(
            "{path}/files?file_name=ipxe-script&ipxe_script_type=boot-order-control"
        ))
        .await;
    assert!(chain.text().contains("${net0/mac}"));
    let wrong = door
        .get(&format!(
            "{path}/files?file_name=discovery.ign&ipxe_script_type=boot-order-control"
        ))
        .await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    let link = door
        .get(&format!("{path}/files-presigned?file_name=discovery.ign"))
        .await
        .json();
    assert!(
        link["url"]
            .as_str()
            .unwrap()
            .ends_with("/downloads/files?file_name=discovery.ign")
    );
}

#[tokio::test]
async fn the_minimal_initrd_is_there_only_when_needed() {
    let door = Door::open().await;
    let plain = door.infra_env(json!({})).await;
    let path = |made: &Value| format!("/infra-envs/{}/downloads/minimal-initrd", id(made));
    assert_eq!(door.get(&path(&plain)).await.status, StatusCode::NO_CONTENT);
    let proxied = door
        .infra_env(json!({ "proxy": { "http_proxy": "http://proxy.example.com:3128" } }))
        .await;
    let reply = door.get(&path(&proxied)).await;
    assert_eq!(reply.status, StatusCode::OK);
    let mut archive = Vec::new();
    GzDecoder::new(&reply.bytes[..])
        .read_to_end(&mut archive)
        .unwrap();
    assert!(archive.starts_with(b"070701"));
}

#[tokio::test]
async fn a_new_signing_key_replaces_the_old_one() {
    let door = Door::open().await;
    let made = door.infra_env(json!({})).await;
    let key = || door.hub.index.infra_envs()[0].image_token_key.clone();
    let before = key();
    let path = format!("/infra-envs/{}/regenerate-signing-key", id(&made));
    assert_eq!(door.ask("POST", &path, None).await.status, StatusCode::NO_CONTENT);
    assert_ne!(key(), before);
    assert_eq!(key().len(), 64);
}
