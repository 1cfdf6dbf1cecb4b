//! What commands ask of the hub, and how they show its answers.

use crate::canned::{CLUSTER, Canned, HOST_A, HOST_B, HOST_C, INFRA_ENV, cluster, host};
use crate::program::{Ran, run};

pub fn ok(hub: &Canned, args: &[&str]) -> Ran {
    let mut args = args.to_vec();
    args.extend(["--hub", &hub.url]);
    let ran = run(&args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    ran
}

#[test]
fn a_list_has_five_forms() {
    let hub = Canned::start(&[]);
    let form = |format| ok(&hub, &["host", "list", "-o", format]).out;
    insta::assert_snapshot!(form("table"), @r"
    NAME      ID        STATUS               CLUSTER  ROLE         CPUS  MEMORY  SEEN
    twin      aaaa1111  known-unbound        -        auto-assign  8     16Gi    -
    twin      aaaa2222  discovering-unbound  -        auto-assign  8     16Gi    -
    worker-0  bbbb3333  known-unbound        -        auto-assign  8     16Gi    -
    ");
    assert!(form("wide").contains(HOST_A) && form("wide").contains("lab"));
    assert_eq!(form("name"), format!("{HOST_A}\n{HOST_B}\n{HOST_C}\n"));
    let json: serde_json::Value = serde_json::from_str(&form("json")).unwrap();
    let yaml: serde_json::Value = serde_norway::from_str(&form("yaml")).unwrap();
    assert_eq!(json, yaml);
    assert_eq!(json[2]["name"], "worker-0");
}

#[test]
fn filters_are_sent_to_the_hub() {
    let hub = Canned::start(&[]);
    ok(
        &hub,
        &[
            "host",
            "list",
            "--free",
            "--infra-env",
            "lab",
            "--cluster",
            "demo",
            "--status",
            "known,insufficient",
        ],
    );
    let asked = hub
        .asked()
        .into_iter()
        .find(|asked| asked.contains("/hosts?"))
        .unwrap();
    for part in [
        &format!("infra_env_id={INFRA_ENV}"),
        &format!("cluster_id={CLUSTER}"),
        "free=true",
        "status=known%2Cinsufficient",
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
}

#[test]
fn a_cluster_needs_only_a_name() {
    let versions = r#"{"4.17":{"display_name":"4.17.9","support_level":"maintenance","cpu_architectures":[]},
        "4.18":{"display_name":"4.18.1","support_level":"production","cpu_architectures":[],"default":true}}"#;
    let hub = Canned::start(&[
        ("GET {v2}/openshift-versions", 200, versions),
        ("POST {v2}/clusters", 201, &cluster("a")),
    ]);
    let ran = ok(&hub, &["cluster", "create", "a"]);
    assert_eq!(
        ran.out,
        format!("cluster/a created, id {CLUSTER}, version 4.18.1\n")
    );
    assert!(ran.err.starts_with("note:"), "{}", ran.err);
    let asked = hub.asked().pop().unwrap();
    for part in [
        r#""openshift_version":"4.18""#,
        r#""base_dns_domain":"example.com""#,
        r#"\"auths\""#,
    ] {
        assert!(asked.contains(part), "{part} in {asked}");
    }
}

#[test]
fn a_wait_follows_the_feed_until_the_host_has_settled() {
    let change = r#"{"changes":[{"seq":6,"kind":"host","id":"{c}","op":"put","revision":2,"at":"2026-05-04T03:02:01Z"}],"next":6}"#;
    let hub = Canned::start(&[
        (
            "POST {v2}/infra-envs/{env}/hosts/{c}/actions/bind",
            200,
            &host("binding"),
        ),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &host("binding")),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &host("discovering")),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &host("known")),
        ("GET {v1}/changes", 200, change),
        ("GET {v1}/changes", 200, change),
    ]);
    let ran = ok(
        &hub,
        &[
            "host",
            "bind",
            "worker-0",
            "--cluster",
            "demo",
            "--wait",
            "--timeout",
            "1m",
        ],
    );
    assert_eq!(ran.out, "host/worker-0 bound to cluster/demo, known\n");
    assert!(
        ran.err.contains("is binding") && ran.err.contains("is discovering"),
        "{}",
        ran.err
    );
    let polls = hub
        .asked()
        .iter()
        .filter(|asked| asked.contains("/changes"))
        .count();
    assert_eq!(polls, 2, "one question per change");
}

#[test]
fn a_settled_host_that_is_not_ready_says_why() {
    let told = r#"{"subject":"host/worker-0","status":"pending-for-input","status_info":"input missing","why":"w",
        "next_action":"set the machine network","blockers":[{"code":"machine-cidr-defined","subject":"cluster/demo",
        "reason":"no machine network","next_action":""}],"verdicts":[],"verbs":[]}"#;
    let hub = Canned::start(&[
        (
            "POST {v2}/infra-envs/{env}/hosts/{c}/actions/bind",
            200,
            &host("pending-for-input"),
        ),
        (
            "GET {v2}/infra-envs/{env}/hosts/{c}",
            200,
            &host("pending-for-input"),
        ),
        ("GET {v1}/infra-envs/{env}/hosts/{c}/explain", 200, told),
    ]);
    let ran = ok(&hub, &["host", "bind", "worker-0", "--cluster", "demo", "--wait"]);
    assert!(ran.out.ends_with("pending-for-input\n"));
    assert!(
        ran.err.contains("no machine network") && ran.err.contains("next: set the machine network"),
        "{}",
        ran.err
    );
}

#[test]
fn an_update_of_nothing_is_wrong_usage() {
    let ran = run(&["host", "update", "worker-0"]);
    assert_eq!(ran.code, 2);
}

#[test]
fn only_what_is_given_is_changed() {
    let hub = Canned::start(&[(
        "PATCH {v2}/infra-envs/{env}/hosts/{c}",
        201,
        &host("known-unbound"),
    )]);
    ok(
        &hub,
        &[
            "host", "update", "worker-0", "--role", "master", "--label", "zone=a",
        ],
    );
    let asked = hub.asked().pop().unwrap();
    assert!(
        asked.ends_with(r#" {"host_role":"master","node_labels":[{"key":"zone","value":"a"}]}"#),
        "{asked}"
    );
}

#[test]
fn a_host_is_explained_with_the_cluster_one_has_in_mind() {
    let told = r#"{"subject":"host/worker-0","status":"unbinding-pending-user-action","status_info":"returns","why":"w",
        "next_action":"Boot the discovery image.","blockers":[],
        "verdicts":[{"role":"master","fits":false,"reasons":["too small for 4.21"]}],
        "verbs":[{"verb":"move","allowed":true,"steps":[],"blockers":[],"warnings":[]},
            {"verb":"delete-host","allowed":true,"steps":[],"blockers":[],"warnings":[]}]}"#;
    let hub = Canned::start(&[("GET {v1}/infra-envs/{env}/hosts/{c}/explain", 200, told)]);
    let ran = ok(&hub, &["host", "explain", "worker-0", "--cluster", "demo"]);
    assert!(ran.out.contains("move: allowed"), "{}", ran.out);
    assert!(ran.out.contains("too small for 4.21"), "{}", ran.out);
    let asked = hub.asked().into_iter().find(|asked| asked.contains("/explain"));
    let asked = asked.unwrap();
    assert!(asked.contains(&format!("cluster_id={CLUSTER}")), "{asked}");
}

#[test]
fn verdicts_are_asked_for_the_hosts_of_a_cluster() {
    let told = r#"{"subject":"host/worker-0","status":"known","status_info":"","why":"","next_action":"","blockers":[],
        "verdicts":[{"role":"worker","fits":true,"reasons":[]}],"verbs":[]}"#;
    let hub = Canned::start(&[
        (
            "GET {v1}/hosts",
            200,
            r#"{"hosts":[{"id":"{c}","infra_env_id":"{env}","name":"worker-0","status":"known","status_info":"",
                "role":"worker","cpus":8,"memory_mib":16384,"disk_gb":120,"revision":1}]}"#,
        ),
        ("GET {v1}/infra-envs/{env}/hosts/{c}/explain", 200, told),
    ]);
    let ran = ok(&hub, &["host", "verdicts", "--cluster", "demo"]);
    assert!(ran.out.contains("worker-0  worker  yes"), "{}", ran.out);
    let asked = hub.asked().into_iter().find(|asked| asked.contains("/v1/hosts?"));
    let asked = asked.unwrap();
    assert!(
        asked.contains(&format!("cluster_id={CLUSTER}")) && !asked.contains("free="),
        "{asked}"
    );
}

#[test]
fn ignition_of_a_host_is_sent_alone_when_nothing_else_is_changed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("extra.ign");
    std::fs::write(&file, "{}\n").unwrap();
    let hub = Canned::start(&[("PATCH {v2}/infra-envs/{env}/hosts/{c}/ignition", 201, "")]);
    ok(
        &hub,
        &["host", "update", "worker-0", "--ignition", file.to_str().unwrap()],
    );
    let changes: Vec<String> = hub
        .asked()
        .into_iter()
        .filter(|asked| asked.starts_with("PATCH "))
        .collect();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(
        changes[0].ends_with(r#"/ignition {"config":"{}"}"#),
        "{changes:?}"
    );
}

#[test]
fn one_sees_how_far_each_machine_has_read_its_image() {
    let told = r#"{"downloads":[
        {"client":"192.0.2.7","file":"full.iso","host_id":"{c}","host_name":"worker-0","total_bytes":1288490188,
         "read_bytes":515396075,"sent_bytes":515396075,"percent":40,"streams":1,"idle_seconds":0},
        {"client":"192.0.2.9","file":"full.iso","total_bytes":1288490188,"read_bytes":1288490188,
         "sent_bytes":2576980376,"percent":100,"streams":0,"idle_seconds":125}],
        "base_image":{"version":"9.6.1","cpu_architecture":"x86_64","state":"fetching","done_bytes":104857600,
         "total_bytes":1288490188}}"#;
    let hub = Canned::start(&[("GET {v1}/infra-envs/{env}/downloads", 200, told)]);
    let form = |format| ok(&hub, &["infra-env", "downloads", "lab", "-o", format]).out;
    insta::assert_snapshot!(form("table"), @r"
    HOST      CLIENT     FILE      READ   SIZE     LAST
    worker-0  192.0.2.7  full.iso  40 %   1.2 GiB  0s
    -         192.0.2.9  full.iso  100 %  1.2 GiB  2m

    base image 9.6.1 (x86_64): fetching, 100 MiB of 1.2 GiB
    ");
    assert!(form("wide").contains("2.4 GiB"));
    assert_eq!(form("name"), "192.0.2.7/full.iso\n192.0.2.9/full.iso\n");
    let json: serde_json::Value = serde_json::from_str(&form("json")).unwrap();
    assert_eq!(json["downloads"][0]["percent"], 40);
    assert_eq!(json["downloads"][0]["host_id"], HOST_C);
}
