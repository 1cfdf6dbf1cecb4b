//! Ignition, manifests, credentials, files and logs of clusters.

use crate::canned::{CLUSTER, Canned, HOST_C, cluster_in, error};
use crate::commands::ok;
use crate::program::{command, run};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const IGNITION: &str = r#"{"ignition":{"version":"3.4.0"}}"#;

#[test]
fn ignition_is_uploaded_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.ign");
    std::fs::write(&file, IGNITION).unwrap();
    let kept =
        r#"{"cluster_id":"{cluster}","role":"master","size_bytes":32,"uploaded_at":"2026-05-04T03:02:01Z"}"#;
    let hub = Canned::start(&[("PUT {v1}/clusters/{cluster}/ignition/master", 200, kept)]);
    let set = ["cluster", "ignition", "set", "demo", "--role", "master"];
    let mut args = set.to_vec();
    args.push(file.to_str().unwrap());
    assert_eq!(
        ok(&hub, &args).out,
        "cluster/demo: ignition for master set, 32 bytes\n"
    );
    assert!(hub.asked().last().unwrap().ends_with(IGNITION));

    std::fs::write(&file, "variant: fcos").unwrap();
    let ran = run(&args);
    assert!(ran.code == 2 && ran.err.contains("butane"), "{}", ran.err);
}

#[test]
fn the_roles_with_ignition_are_listed() {
    let hub = Canned::start(&[("GET {v1}/clusters/{cluster}/ignition/worker", 200, IGNITION)]);
    let list = ok(&hub, &["cluster", "ignition", "list", "demo"]).out;
    assert_eq!(list, "ROLE    IGNITION  BYTES\nworker  3.4.0     32\n");
    let show = ok(&hub, &["cluster", "ignition", "show", "demo", "--role", "worker"]).out;
    assert_eq!(show, IGNITION);
    let missing = run(&[
        "cluster", "ignition", "get", "demo", "--role", "master", "--hub", &hub.url,
    ]);
    assert_eq!(missing.code, 4);
}

#[test]
fn manifests_are_added_from_stdin_under_a_name() {
    let made = r#"{"folder":"openshift","file_name":"a.yaml","manifest_source":"user"}"#;
    let hub = Canned::start(&[("POST {v2}/clusters/{cluster}/manifests", 201, made)]);
    let line = "cluster manifest add demo - --name a.yaml --folder openshift --hub";
    let mut args: Vec<&str> = line.split(' ').collect();
    args.push(&hub.url);
    let mut child = command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"kind: X").unwrap();
    let out = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(out, "cluster/demo: manifest openshift/a.yaml added\n");
    let asked = hub.asked().pop().unwrap();
    assert!(
        asked.ends_with(r#"{"folder":"openshift","file_name":"a.yaml","content":"a2luZDogWA=="}"#),
        "{asked}"
    );
    assert_eq!(
        run(&["cluster", "manifest", "add", "demo", "-"]).code,
        2,
        "it needs a name"
    );
}

#[test]
fn a_manifest_is_printed_and_deleted_by_the_name_in_the_list() {
    let list = r#"[{"folder":"openshift","file_name":"a.yaml","manifest_source":"user"}]"#;
    let hub = Canned::start(&[
        ("GET {v2}/clusters/{cluster}/manifests", 200, list),
        ("GET {v2}/clusters/{cluster}/manifests/files", 200, "kind: X"),
        ("DELETE {v2}/clusters/{cluster}/manifests", 200, ""),
    ]);
    let name = ok(&hub, &["cluster", "manifest", "list", "demo", "-o", "name"]).out;
    assert_eq!(name, "openshift/a.yaml\n");
    assert_eq!(
        ok(&hub, &["cluster", "manifest", "get", "demo", name.trim()]).out,
        "kind: X"
    );
    ok(&hub, &["cluster", "manifest", "delete", "demo", name.trim()]);
    let asked = hub.asked().pop().unwrap();
    assert!(asked.contains("?folder=openshift&file_name=a.yaml"), "{asked}");
}

#[test]
fn a_kubeconfig_is_written_for_its_owner_alone() {
    let credentials = r#"{"username":"kubeadmin","password":"pw","console_url":"https://console"}"#;
    let hub = Canned::start(&[
        ("GET {v2}/clusters/{cluster}/credentials", 200, credentials),
        (
            "GET {v2}/clusters/{cluster}/downloads/credentials",
            200,
            "kind: Config",
        ),
    ]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kubeconfig");
    let path = file.to_str().unwrap();
    let ran = ok(&hub, &["cluster", "credentials", "demo", "--kubeconfig", path]);
    assert!(ran.out.contains("PASSWORD:  pw\n"), "{}", ran.out);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kind: Config");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(ok(&hub, &["cluster", "kubeconfig", "demo"]).out, "kind: Config");
    ok(&hub, &["cluster", "kubeconfig", "demo", "--no-ingress"]);
    assert!(
        hub.asked()
            .pop()
            .unwrap()
            .ends_with("?file_name=kubeconfig-noingress")
    );
}

#[test]
fn files_and_logs_are_downloaded() {
    let hub = Canned::start(&[
        ("GET {v2}/clusters/{cluster}/downloads/files", 200, "{}"),
        ("GET {v2}/clusters/{cluster}/logs", 200, "an archive"),
    ]);
    assert_eq!(ok(&hub, &["cluster", "file", "demo", "metadata.json"]).out, "{}");
    assert_eq!(
        run(&["cluster", "file", "demo", "passwd"]).code,
        2,
        "only files of an installation"
    );
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("logs.tar");
    let path = file.to_str().unwrap();
    ok(
        &hub,
        &["cluster", "logs", "demo", "--host", "worker-0", "--file", path],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "an archive");
    let asked = hub.asked().pop().unwrap();
    assert!(
        asked.contains("logs_type=host") && asked.contains(&format!("host_id={HOST_C}")),
        "{asked}"
    );
}

#[test]
fn logs_that_are_not_there_leave_no_file() {
    let refused = error(409, "no logs yet");
    let hub = Canned::start(&[("GET {v2}/clusters/{cluster}/logs", 409, &refused)]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("logs.tar");
    let args = [
        "cluster",
        "logs",
        "demo",
        "--hub",
        &hub.url,
        "--file",
        file.to_str().unwrap(),
    ];
    assert_eq!(run(&args).code, 3);
    assert!(!file.exists());
}

#[test]
fn the_install_config_is_printed_and_overridden() {
    let hub = Canned::start(&[
        (
            "GET {v2}/clusters/{cluster}/install-config",
            200,
            r#""a: 1\nb: 2\n""#,
        ),
        ("PATCH {v2}/clusters/{cluster}/install-config", 201, ""),
    ]);
    assert_eq!(
        ok(&hub, &["cluster", "install-config", "demo"]).out,
        "a: 1\nb: 2\n"
    );
    ok(
        &hub,
        &[
            "cluster",
            "install-config",
            "demo",
            "--override",
            r#"{"fips":true}"#,
        ],
    );
    let asked = hub.asked();
    assert!(
        asked.iter().any(|asked| asked.ends_with(r#" "{\"fips\":true}""#)),
        "{asked:?}"
    );
    let bad = run(&["cluster", "install-config", "demo", "--override", "{fips"]);
    assert_eq!(bad.code, 2);
}

#[test]
fn a_cluster_shows_why_its_last_preparation_failed() {
    let failed = cluster_in(
        "ready",
        r#"{"last-installation-preparation":{"status":"failed","reason":"no program"},
            "progress":{"total_percentage":8,"finalizing_stage_started_at":"0001-01-01T00:00:00.000Z"}}"#,
    );
    let hub = Canned::start(&[("GET {v2}/clusters/{cluster}", 200, &failed)]);
    let shown = ok(&hub, &["cluster", "show", CLUSTER]).out;
    assert!(shown.contains("PREPARATION:  failed: no program\n"), "{shown}");
    assert!(shown.contains("PROGRESS:     8%\n"), "{shown}");
}
