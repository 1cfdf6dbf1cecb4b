//! Where the files of an installation come from: a program, people, or elsewhere.

use crate::door::{Door, V1, V2};
use crate::fake_installer::{Program, WORKS, alter};
use crate::place::Place;
use axum::http::{Method, StatusCode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_domain::ClusterId;
use muster_domain::cluster::{IgnitionSource, Phase, PreparationStatus};
use muster_hub::Clock;
use muster_hub::ignition::make_files;
use muster_hub::usecase::cluster_files::files_make;
use muster_store::{FileChange, FileWrite};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use uuid::Uuid;

fn contents(files: &[FileWrite]) -> BTreeMap<&str, String> {
    let puts = files.iter().filter_map(|file| match &file.what {
        FileChange::Put(content) => Some((file.path.as_str(), String::from_utf8(content.clone()).unwrap())),
        FileChange::Adopt { .. } | FileChange::Rename(_) | FileChange::Delete | FileChange::DeletePrefix => {
            None
        }
    });
    puts.collect()
}

async fn made(door: &Door, id: Uuid) -> Result<Vec<FileWrite>, String> {
    let cluster = door.hub.index.cluster(ClusterId(id)).unwrap();
    make_files(&door.hub, &cluster, 1).await
}

async fn complaint(text: &str) -> (String, Program) {
    let program = Program::new(text);
    let door = program.door().await;
    let id = door.cluster("prod").await;
    let error = made(&door, id).await.unwrap_err();
    assert!(program.work_dirs().is_empty(), "{:?}", program.work_dirs());
    (error, program)
}

#[tokio::test]
async fn the_program_gets_a_private_place_and_manifests_and_leaves_only_files() {
    let program = Program::new(WORKS);
    let door = program.door().await;
    let id = door.cluster("prod").await;
    let manifests = format!("{V2}/clusters/{id}/manifests");
    for (folder, name, text) in [
        ("manifests", "mine.yaml", "kind: ConfigMap\n"),
        ("openshift", "more.json", "{}"),
        (
            "manifests",
            "cluster-network-02-config.yml.patch_mtu",
            "- {op: replace, path: /spec/mtu, value: 9000}",
        ),
    ] {
        let wish = json!({ "folder": folder, "file_name": name, "content": STANDARD.encode(text) });
        let kept = door.post(&manifests, wish).await;
        assert_eq!(kept.status, StatusCode::CREATED, "{}", kept.text);
    }
    let files = made(&door, id).await.unwrap();
    let contents = contents(&files);
    let names: Vec<_> = contents.keys().copied().collect();
    assert_eq!(
        names,
        [
            "generated/bootstrap.ign",
            "generated/install-config.yaml",
            "generated/kubeadmin-password",
            "generated/kubeconfig-noingress",
            "generated/master.ign",
            "generated/metadata.json",
            "generated/worker.ign",
        ]
    );
    assert!(contents["generated/master.ign"].contains("/etc/master"));
    // Whatever an earlier attempt made is gone.
    assert_eq!(files[0].what, FileChange::DeletePrefix);

    assert_eq!(program.saw("mode").trim(), "700");
    let dir = program.saw("dir");
    let environment = program.saw("env");
    let known = [
        "HOME=",
        "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE=",
        "PATH=",
        "PWD=",
        "OLDPWD=",
        "SHLVL=",
        "_=",
    ];
    for line in environment.lines() {
        assert!(known.iter().any(|name| line.starts_with(name)), "{line}");
    }
    assert!(
        environment.contains(&format!("HOME={}", dir.trim())),
        "{environment}"
    );
    assert_eq!(contents["generated/install-config.yaml"], program.saw("config"));
    for name in ["mine.yaml", "more.json"] {
        assert!(
            program.saw("manifests").contains(name),
            "{}",
            program.saw("manifests")
        );
    }
    assert!(
        program.saw("network").contains("9000"),
        "{}",
        program.saw("network")
    );
    assert!(program.work_dirs().is_empty());
}

#[tokio::test]
async fn a_single_node_boots_from_a_config_of_its_own() {
    let program = Program::new(WORKS);
    let door = program.door().await;
    let id = door.cluster("prod").await;
    alter(&door.hub, id, |cluster| cluster.control_plane_count = 1).await;
    let files = made(&door, id).await.unwrap();
    let contents = contents(&files);
    assert!(contents["generated/bootstrap.ign"].contains("/in/place"));
    assert_eq!(
        contents["generated/master.ign"],
        r#"{"ignition":{"version":"3.2.0"}}"#
    );
}

#[tokio::test]
async fn what_the_program_complains_about_is_told_without_secrets() {
    // The pull secret says dXNlcjpwYXNzd29yZA==, which is user:password.
    let (told, _) = complaint(
        "#!/bin/sh\necho \"level=error msg=\\\"bad pullSecret: $(cat $4/install-config.yaml)\\\"\" >&2\n\
         echo 'level=fatal msg=\"failed to fetch Install Config\"' >&2\nexit 7\n",
    )
    .await;
    assert!(
        told.contains("create manifests failed") && told.contains("exit status: 7"),
        "{told}"
    );
    assert!(told.contains("failed to fetch Install Config"), "{told}");
    assert!(
        !told.contains("dXNlcjpw") && !told.contains("user:password"),
        "{told}"
    );

    // What people changed in the install config has passwords too.
    let program = Program::new("#!/bin/sh\ncat $4/install-config.yaml >&2\nexit 7\n");
    let door = program.door().await;
    let id = door.cluster("prod").await;
    let bmc = json!({ "address": "redfish://10.0.0.1", "username": "admin", "password": "c4nary-bmc" });
    let overrides = json!({
        "platform": { "baremetal": { "hosts": [{ "name": "one", "role": "master", "bmc": bmc }] } },
        "proxy": { "httpProxy": "http://user:c4nary-proxy@proxy.example.com" },
        "pullSecret": json!({ "auths": { "quay.io": { "auth": "c4nary-pull" } } }).to_string(),
    });
    alter(&door.hub, id, |cluster| {
        cluster.install_config_overrides = overrides.to_string()
    })
    .await;
    let told = made(&door, id).await.unwrap_err();
    assert!(
        told.contains("redfish://10.0.0.1") && told.contains("@proxy.example.com"),
        "{told}"
    );
    assert!(!told.contains("c4nary"), "{told}");
}

#[tokio::test]
async fn a_program_that_hangs_is_stopped_with_everything_it_started() {
    let program = Program::new(
        "#!/bin/sh\necho waiting for a miracle >&2\nsleep 1000 & echo $! > $0.pid\nsleep 1000\n",
    );
    let door = Door::with(Place::new().await, Clock::System, |settings| {
        settings.installer.program = Some(program.path.to_str().unwrap().into());
        settings.installer.work_dir = program.home.path().join("work");
        settings.installer.time = Duration::from_secs(1);
    })
    .await;
    let id = door.cluster("prod").await;
    let told = made(&door, id).await.unwrap_err();
    assert!(
        told.starts_with("The hub stopped") && told.contains("after 1 seconds") && told.contains("a miracle"),
        "{told}"
    );
    is_gone(&program.saw("pid")).await;
    assert!(program.work_dirs().is_empty());
}

#[tokio::test]
async fn a_hub_that_stops_takes_the_program_along() {
    let program = Program::new("#!/bin/sh\nsleep 1000 & echo $! > $0.pid.new; mv $0.pid.new $0.pid\nwait\n");
    let door = program.door().await;
    let id = door.cluster("prod").await;
    let cluster = door.hub.index.cluster(ClusterId(id)).unwrap();
    let hub = door.hub.clone();
    let task = tokio::spawn(async move { make_files(&hub, &cluster, 1).await });
    let deadline = Instant::now() + Duration::from_secs(20);
    while !program.home.path().join("openshift-install.pid").exists() {
        assert!(Instant::now() < deadline, "the program did not start");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    is_gone(&program.saw("pid")).await;
    assert!(program.work_dirs().is_empty());
}

/// Waits until no process has this number, or only a dead one that nobody has buried yet.
async fn is_gone(pid: &str) {
    let path = format!("/proc/{}/stat", pid.trim());
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match std::fs::read_to_string(&path) {
            Err(_) => return,
            Ok(stat) if stat.contains(") Z ") => return,
            Ok(stat) => assert!(Instant::now() < deadline, "{stat}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn what_the_program_writes_is_looked_at() {
    let (told, _) =
        complaint(&WORKS.replace(r#"> "$role.ign""#, r#">/dev/null; echo rubbish > "$role.ign""#)).await;
    assert!(
        told.contains("bootstrap.ign") && told.contains("is not JSON"),
        "{told}"
    );
    let (told, _) = complaint(&WORKS.replace(
        "\"3.2.0\"},\"storage\":{\"files\":[{\"path\":\"/etc/",
        "\"2.2.0\"},\"storage\":{\"files\":[{\"path\":\"/etc/",
    ))
    .await;
    assert!(told.contains("version 3"), "{told}");
    let (told, _) = complaint(&WORKS.replace("> auth/kubeconfig", "> auth/other")).await;
    assert!(told.contains("did not write auth/kubeconfig"), "{told}");
    // Nothing is written through this link: the test may run as root.
    let (told, _) =
        complaint(&WORKS.replace("> metadata.json", "> /dev/null; ln -s /etc/passwd metadata.json")).await;
    assert!(told.contains("metadata.json"), "{told}");
}

#[tokio::test]
async fn a_missing_program_is_told_with_what_to_do() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let told = made(&door, id).await.unwrap_err();
    assert!(told.contains("--openshift-install"), "{told}");

    let program = Program::new(WORKS);
    let folder = program.home.path().to_str().unwrap().to_owned();
    let release = door
        .hub
        .index
        .cluster(ClusterId(id))
        .unwrap()
        .openshift_version
        .clone();
    let door = Door::with(Place::new().await, Clock::System, |settings| {
        settings.installer.program = Some(format!("{folder}/{{version}}/openshift-install"));
        settings.installer.work_dir = program.home.path().join("work");
    })
    .await;
    let id = door.cluster("prod").await;
    let told = made(&door, id).await.unwrap_err();
    assert!(told.contains(&release) && told.contains(&folder), "{told}");
    std::fs::create_dir(format!("{folder}/{release}")).unwrap();
    std::fs::copy(&program.path, format!("{folder}/{release}/openshift-install")).unwrap();
    made(&door, id).await.unwrap();

    let (told, _) = complaint("this is no program").await;
    assert!(told.contains("cannot run"), "{told}");
    alter(&door.hub, id, |cluster| {
        cluster.openshift_version = "../../etc".into()
    })
    .await;
    assert!(
        made(&door, id)
            .await
            .unwrap_err()
            .contains("cannot be part of one")
    );
}

#[tokio::test]
async fn files_and_the_news_of_them_are_one_commit_and_late_ones_are_thrown_away() {
    let program = Program::new(WORKS);
    let door = program.door().await;
    let id = door.cluster("prod").await;
    alter(&door.hub, id, |cluster| {
        cluster.phase = Phase::Preparing;
        cluster.install.attempt = 2;
    })
    .await;
    let cluster = ClusterId(id);
    files_make(&door.hub, cluster, 1).await.unwrap();
    assert_eq!(door.hub.store.file_list(cluster, "").await.unwrap(), []);
    files_make(&door.hub, cluster, 2).await.unwrap();
    assert_eq!(
        door.hub
            .store
            .file_list(cluster, "generated/")
            .await
            .unwrap()
            .len(),
        7
    );
    let after = door.hub.index.cluster(cluster).unwrap();
    assert_eq!(after.install.preparation.status, PreparationStatus::Success);
    assert_eq!(
        after.openshift_cluster_id,
        Some("6c3b2b4e-8a8c-4a86-9d3a-1f6f2f1d0c55".parse().unwrap())
    );
}

#[tokio::test]
async fn a_failing_program_fails_the_preparation_with_its_words() {
    let program = Program::new("#!/bin/sh\necho no room on this planet >&2\nexit 3\n");
    let door = program.door().await;
    let id = door.cluster("prod").await;
    alter(&door.hub, id, |cluster| {
        cluster.phase = Phase::Preparing;
        cluster.install.attempt = 1;
    })
    .await;
    files_make(&door.hub, ClusterId(id), 1).await.unwrap();
    let after = door.hub.index.cluster(ClusterId(id)).unwrap();
    assert_eq!(after.install.preparation.status, PreparationStatus::Failed);
    assert!(
        after
            .install
            .preparation
            .reason
            .contains("no room on this planet")
    );
}

const BUTANE: &str = r#"{"ignition":{"version":"3.4.0"},"systemd":{"units":[{"name":"k3s.service"}]}}"#;

fn upload_path(id: Uuid, role: &str) -> String {
    format!("{V1}/clusters/{id}/ignition/{role}")
}

async fn upload(door: &Door, id: Uuid, role: &str, text: &str) -> crate::door::Answer {
    door.send(
        Method::PUT,
        &upload_path(id, role),
        "application/json",
        text.to_owned(),
    )
    .await
}

#[tokio::test]
async fn people_bring_ignition_of_their_own() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let kept = upload(&door, id, "worker", BUTANE).await;
    assert_eq!(kept.status, StatusCode::OK, "{}", kept.text);
    assert_eq!(
        (&kept.body["role"], &kept.body["size_bytes"]),
        (&json!("worker"), &json!(BUTANE.len()))
    );
    assert_eq!(door.get(&upload_path(id, "worker")).await.text, BUTANE);
    upload(&door, id, "master", BUTANE).await;
    alter(&door.hub, id, |cluster| {
        cluster.ignition_source = IgnitionSource::Uploaded
    })
    .await;
    let files = made(&door, id).await.unwrap();
    let contents = contents(&files);
    assert_eq!(
        contents.keys().copied().collect::<Vec<_>>(),
        ["generated/master.ign", "generated/worker.ign"]
    );
    assert_eq!(contents["generated/worker.ign"], BUTANE);
    let gone = door.ask(Method::DELETE, &upload_path(id, "worker"), None).await;
    assert_eq!(gone.status, StatusCode::NO_CONTENT);
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(
            door.ask(method, &upload_path(id, "worker"), None).await.status,
            StatusCode::NOT_FOUND
        );
    }
}

#[tokio::test]
async fn what_is_no_ignition_is_refused_with_the_reason() {
    let door = Door::open().await;
    let id = door.cluster("prod").await;
    let cases = [
        ("worker", "variant: fcos", "JSON"),
        ("worker", "{}", "ignition.version"),
        ("worker", r#"{"ignition":{"version":"2.2.0"}}"#, "2.2.0"),
        (
            "worker",
            r#"{"ignition":{"version":"3.4.0"},"systemd":{"units":[{}]}}"#,
            "systemd.units",
        ),
        ("worker", "", "JSON"),
        ("boss", BUTANE, "bootstrap, master, worker, arbiter"),
    ];
    for (role, text, part) in cases {
        let refused = upload(&door, id, role, text).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
        assert!(refused.text.contains(part), "{part}: {}", refused.text);
        assert_eq!(refused.body["code"], "invalid");
    }
    assert_eq!(
        upload(&door, Uuid::new_v4(), "worker", BUTANE).await.status,
        StatusCode::NOT_FOUND
    );
    alter(&door.hub, id, |cluster| cluster.phase = Phase::Installing).await;
    let late = upload(&door, id, "worker", BUTANE).await;
    assert_eq!(late.status, StatusCode::CONFLICT, "{}", late.text);
}

#[tokio::test]
async fn a_role_without_uploaded_ignition_is_named() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let id = door.cluster("prod").await;
    let host = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, host, id).await.status, StatusCode::OK);
    let wish = json!({ "host_role": "worker" });
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    assert_eq!(
        door.ask(Method::PATCH, &path, Some(&wish)).await.status,
        StatusCode::CREATED
    );
    upload(&door, id, "master", BUTANE).await;
    alter(&door.hub, id, |cluster| {
        cluster.ignition_source = IgnitionSource::Uploaded
    })
    .await;
    let told = made(&door, id).await.unwrap_err();
    assert!(told.contains("worker.ign"), "{told}");
    upload(&door, id, "worker", BUTANE).await;
    made(&door, id).await.unwrap();
}

#[tokio::test]
async fn an_endpoint_must_be_known() {
    let door = Door::open().await;
    let pool = door.infra_env("pool").await;
    let id = door.cluster("prod").await;
    let host = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, host, id).await.status, StatusCode::OK);
    alter(&door.hub, id, |cluster| {
        cluster.ignition_source = IgnitionSource::Endpoint;
        cluster.base_dns_domain.clear();
    })
    .await;
    assert!(made(&door, id).await.unwrap_err().contains("ignition endpoint"));
    let wish = json!({ "ignition_endpoint": { "url": "https://ignition.example.com/ignition" } });
    let changed = door
        .ask(Method::PATCH, &format!("{V2}/clusters/{id}"), Some(&wish))
        .await;
    assert_eq!(changed.status, StatusCode::CREATED, "{}", changed.text);
    assert_eq!(contents(&made(&door, id).await.unwrap()), BTreeMap::new());
}

/// Each secret is where it belongs and nowhere else.
#[tokio::test]
async fn the_pool_s_secret_is_in_no_file_of_the_cluster_and_the_other_way_round() {
    let secret = |canary: &str| {
        let auth = STANDARD.encode(format!("user:{canary}"));
        (
            json!({ "auths": { "registry.example.com": { "auth": auth } } }).to_string(),
            auth,
        )
    };
    let ((pools, pool_auth), (clusters, cluster_auth)) =
        (secret("canary-of-the-pool"), secret("canary-of-the-cluster"));
    // This program puts the whole install config into what nodes are installed with, as the real one does with parts.
    let program = Program::new(&WORKS.replace(
        "printf '{\"ignition\":{\"version\":\"3.2.0\"},\"storage\":{\"files\":[{\"path\":\"/etc/%s\"}]}}' \"$role\" > \"$role.ign\"",
        "printf '{\"ignition\":{\"version\":\"3.2.0\"},\"storage\":{\"files\":[{\"path\":\"/c\",\"contents\":{\"source\":\"data:;base64,%s\"}}]}}' \
         \"$(base64 -w0 .openshift_install_state.json)\" > \"$role.ign\"",
    ));
    let door = program.door().await;
    let pool = door
        .post(
            &format!("{V2}/infra-envs"),
            json!({ "name": "pool", "pull_secret": pools }),
        )
        .await;
    let pool: Uuid = pool.body["id"].as_str().unwrap().parse().unwrap();
    let wish = json!({ "name": "prod", "openshift_version": "4.20", "pull_secret": clusters,
        "base_dns_domain": "example.com" });
    let id = door.post(&format!("{V2}/clusters"), wish).await;
    let id: Uuid = id.body["id"].as_str().unwrap().parse().unwrap();
    let host = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, host, id).await.status, StatusCode::OK);
    let path = format!("{V2}/infra-envs/{pool}/hosts/{host}");
    door.ask(Method::PATCH, &path, Some(&json!({ "host_role": "worker" })))
        .await;
    alter(&door.hub, id, |cluster| {
        cluster.phase = Phase::Preparing;
        cluster.install.attempt = 1;
    })
    .await;
    files_make(&door.hub, ClusterId(id), 1).await.unwrap();

    let mut of_cluster = door.get(&format!("{V2}/clusters/{id}/install-config")).await.text;
    for file in door.hub.store.file_list(ClusterId(id), "").await.unwrap() {
        let content = door
            .hub
            .store
            .file_read(ClusterId(id), &file.path)
            .await
            .unwrap()
            .unwrap();
        of_cluster.push_str(&opened(&String::from_utf8(content).unwrap()));
    }
    let singular = format!("{V2}/infra-env/{pool}/hosts/{host}/downloads/ignition");
    let of_host = door.get(&singular).await;
    assert_eq!(of_host.status, StatusCode::OK, "{}", of_host.text);
    of_cluster.push_str(&opened(&of_host.text));
    assert!(of_cluster.contains(&cluster_auth), "its own secret is there");
    assert!(!of_cluster.contains(&pool_auth) && !of_cluster.contains("canary-of-the-pool"));

    let discovery = door
        .get(&format!(
            "{V2}/infra-envs/{pool}/downloads/files?file_name=discovery.ign"
        ))
        .await;
    let discovery = opened(&discovery.text);
    assert!(discovery.contains(&pool_auth), "its own secret is there");
    assert!(!discovery.contains(&cluster_auth) && !discovery.contains("canary-of-the-cluster"));
}

#[tokio::test]
async fn hosts_trust_the_authority_behind_the_hub_before_and_after_their_installation() {
    let program = Program::new(WORKS);
    let door = Door::with(Place::new().await, Clock::System, |settings| {
        settings.trust.service_ca = "canary-of-the-authority".into();
        settings.trust.insecure = true;
        settings.installer.work_dir = program.home.path().join("work");
    })
    .await;
    let pool = door.infra_env("pool").await;
    let path = format!("{V2}/infra-envs/{pool}/downloads/files?file_name=discovery.ign");
    let discovery = door.get(&path).await;
    assert_eq!(discovery.status, StatusCode::OK, "{}", discovery.text);
    let discovery = opened(&discovery.text);
    assert!(discovery.contains("canary-of-the-authority"), "{discovery}");
    assert!(discovery.contains("--insecure=true"), "{discovery}");
    let id = door.cluster("prod").await;
    let host = door.worker(pool, 1).await;
    assert_eq!(door.bind(pool, host, id).await.status, StatusCode::OK);
    alter(&door.hub, id, |cluster| {
        cluster.ignition_source = IgnitionSource::Endpoint;
        cluster.ignition_endpoint.url = "https://ignition.example.com".into();
        cluster.phase = Phase::Installing;
    })
    .await;
    let of_host = door
        .get(&format!("{V2}/infra-env/{pool}/hosts/{host}/downloads/ignition"))
        .await;
    assert_eq!(of_host.status, StatusCode::OK, "{}", of_host.text);
    let of_host = opened(&of_host.text);
    assert!(of_host.contains("canary-of-the-authority"), "{of_host}");
}

/// A config with the contents of its files beside it in clear text.
fn opened(text: &str) -> String {
    let mut all = text.to_owned();
    let Ok(config) = serde_json::from_str::<Value>(text) else {
        return all;
    };
    for file in config["storage"]["files"].as_array().into_iter().flatten() {
        let source = file["contents"]["source"].as_str().unwrap_or_default();
        let Some((_, content)) = source.split_once(',') else {
            continue;
        };
        let decoded = STANDARD.decode(content).unwrap_or_default();
        all.push_str(&String::from_utf8_lossy(&decoded));
        all.push_str(content);
    }
    all
}
