//! Installations as commands start, follow and end them, with a hub that answers as prepared.

use crate::canned::{CLUSTER, Canned, HOST_C, INFRA_ENV, cluster_in, error, host};
use crate::commands::ok;
use crate::program::{Ran, run};

const INSTALL: &str = "POST {v2}/clusters/{cluster}/actions/install";
const GET: &str = "GET {v2}/clusters/{cluster}";
const CHANGE: &str = r#"{"changes":[{"seq":6,"kind":"host","id":"{c}","cluster_id":"{cluster}","op":"put","revision":2,
    "at":"2026-05-04T03:02:01Z"}],"next":6}"#;
const EXPLAINED: &str = r#"{"subject":"cluster/demo","status":"error","status_info":"","why":"w",
    "next_action":"reset the cluster","blockers":[],"verdicts":[],"verbs":[]}"#;

fn installing(percent: u32, stage: &str) -> String {
    let mut host: serde_json::Value = serde_json::from_str(&host("installing-in-progress")).unwrap();
    host["requested_hostname"] = "worker-0".into();
    host["progress"]["current_stage"] = stage.into();
    host["progress"]["stage_started_at"] = "0001-01-01T00:00:00.000Z".into();
    host["progress"]["stage_updated_at"] = "0001-01-01T00:00:00.000Z".into();
    cluster_in(
        "installing",
        &format!(
            r#"{{"hosts":[{host}],"progress":{{"total_percentage":{percent},
                "finalizing_stage_started_at":"0001-01-01T00:00:00.000Z"}}}}"#
        ),
    )
}

fn waited(answers: &[&str]) -> (Canned, Ran) {
    let preparing = cluster_in("preparing-for-installation", "{}");
    // The first look of every command finds the cluster by its name.
    let ready = cluster_in("ready", "{}");
    let mut all = vec![
        (INSTALL, 202, preparing.as_str()),
        (GET, 200, ready.as_str()),
        ("GET {v1}/clusters/{cluster}/explain", 200, EXPLAINED),
    ];
    all.extend(answers.iter().map(|body| (GET, 200, *body)));
    all.extend(answers.iter().map(|_| ("GET {v1}/changes", 200, CHANGE)));
    let hub = Canned::start(&all);
    let ran = run(&["cluster", "install", "demo", "--wait", "--hub", &hub.url]);
    (hub, ran)
}

#[test]
fn a_wait_shows_how_far_the_cluster_and_its_hosts_are() {
    let (_, ran) = waited(&[
        &installing(10, "Writing image to disk"),
        &installing(30, "Writing image to disk"),
        &installing(60, "Rebooting"),
        &cluster_in("installed", "{}"),
    ]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "cluster/demo installed\n"),
        "{}",
        ran.err
    );
    let told: Vec<&str> = ran.err.lines().map(|line| &line[7..]).collect();
    assert_eq!(
        told,
        [
            "cluster/demo installing 10%: worker-0 Writing image to disk",
            "cluster/demo installing 60%: worker-0 Rebooting"
        ]
    );
}

#[test]
fn a_preparation_that_failed_ends_with_1_and_its_reason() {
    let back = cluster_in(
        "ready",
        r#"{"last-installation-preparation":{"status":"failed","reason":"no program makes the files"}}"#,
    );
    let (_, ran) = waited(&[&back]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err
            .contains("error: cluster/demo: the preparation failed: no program makes the files\nnext: "),
        "{}",
        ran.err
    );
}

#[test]
fn an_installation_that_failed_or_was_cancelled_ends_with_1_and_what_to_do() {
    for status in ["error", "cancelled"] {
        let (_, ran) = waited(&[&cluster_in(status, "{}")]);
        assert_eq!(ran.code, 1, "{status}");
        assert!(
            ran.err.contains("it is\nnext: reset the cluster\n"),
            "{status}: {}",
            ran.err
        );
    }
}

#[test]
fn a_dry_run_asks_for_the_plan_and_nothing_else() {
    let plan = |verb: &str| {
        format!(
            r#"{{"verb":"{verb}","allowed":true,"blockers":[],"warnings":[],"steps":[{{"order":1,
                "subject":"host/worker-0","action":"write its disk","destroys":["the disk"]}}]}}"#
        )
    };
    let verbs = [
        ("cluster install demo", "install-cluster"),
        ("cluster cancel demo", "cancel-cluster"),
        ("cluster reset demo", "reset-cluster"),
        ("host install worker-0", "install-host"),
        ("host reset worker-0", "reset-host"),
        ("host reclaim worker-0", "reclaim-host"),
    ];
    for (line, verb) in verbs {
        let hub = Canned::start(&[("POST {v1}/plan", 200, &plan(verb))]);
        let mut args: Vec<&str> = line.split(' ').collect();
        args.push("--dry-run");
        let ran = ok(&hub, &args);
        assert!(ran.out.contains("lost for good: the disk"), "{line}: {}", ran.out);
        let asked = hub.asked();
        assert!(
            asked.last().unwrap().contains(&format!(r#""verb":"{verb}""#)),
            "{asked:?}"
        );
        assert!(
            !asked.iter().any(|asked| asked.contains("/actions/")),
            "{asked:?}"
        );
    }
}

#[test]
fn every_verb_asks_for_its_own_action() {
    let cases = [
        (
            "cluster cancel demo",
            "POST {v2}/clusters/{cluster}/actions/cancel",
            true,
        ),
        (
            "cluster reset demo",
            "POST {v2}/clusters/{cluster}/actions/reset",
            true,
        ),
        (
            "cluster add-hosts demo",
            "POST {v2}/clusters/{cluster}/actions/allow-add-hosts",
            true,
        ),
        (
            "host install worker-0",
            "POST {v2}/infra-envs/{env}/hosts/{c}/actions/install",
            false,
        ),
        (
            "host reset worker-0",
            "POST {v2}/infra-envs/{env}/hosts/{c}/actions/reset",
            false,
        ),
    ];
    for (line, request, of_cluster) in cases {
        let body = if of_cluster {
            cluster_in("cancelled", "{}")
        } else {
            host("installing")
        };
        let hub = Canned::start(&[(request, 202, &body)]);
        let ran = ok(&hub, &line.split(' ').collect::<Vec<_>>());
        assert!(
            ran.out
                .contains(if of_cluster { "cancelled" } else { "installing" }),
            "{}",
            ran.out
        );
    }
}

#[test]
fn a_reclaimed_host_is_shown_as_it_is_afterwards() {
    let summary = r#"{"id":"{c}","infra_env_id":"{env}","name":"worker-0","status":"reclaiming","status_info":"",
        "role":"worker","cpus":8,"memory_mib":16384,"disk_gb":120,"revision":2}"#;
    let hub = Canned::start(&[
        (
            "POST {v1}/infra-envs/{env}/hosts/{c}/actions/reclaim",
            202,
            summary,
        ),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &host("reclaiming")),
    ]);
    let ran = ok(&hub, &["host", "reclaim", "worker-0"]);
    assert_eq!(ran.out, "host/worker-0 is reclaimed, reclaiming\n");
    assert!(
        hub.asked().iter().any(|asked| asked.contains(&format!(
            "/v1/infra-envs/{INFRA_ENV}/hosts/{HOST_C}/actions/reclaim"
        ))),
        "{:?}",
        hub.asked()
    );
}

#[test]
fn a_host_that_fails_to_join_ends_with_1_and_what_to_do() {
    let hub = Canned::start(&[
        (
            "POST {v2}/infra-envs/{env}/hosts/{c}/actions/install",
            202,
            &host("installing"),
        ),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &host("error")),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &host("error")),
        ("GET {v1}/infra-envs/{env}/hosts/{c}/explain", 200, EXPLAINED),
    ]);
    let ran = run(&["host", "install", "worker-0", "--wait", "--hub", &hub.url]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.err,
        "error: host/worker-0 is error: it is\nnext: reset the cluster\n"
    );
}

#[test]
fn a_refused_installation_tells_what_to_do_next() {
    let blocked = r#"{"verb":"install-cluster","allowed":false,"steps":[],"warnings":[],"blockers":[
        {"code":"cluster-not-ready","subject":"cluster/demo","reason":"no hosts","next_action":"bind hosts"}]}"#;
    let hub = Canned::start(&[
        (INSTALL, 409, &error(409, "no hosts bind hosts")),
        ("POST {v1}/plan", 200, blocked),
    ]);
    let ran = run(&["cluster", "install", "demo", "--wait", "--hub", &hub.url]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (3, "error: no hosts\nnext: bind hosts\n")
    );
}

#[test]
fn one_can_wait_for_what_others_started() {
    let hub = Canned::start(&[
        (GET, 200, &cluster_in("insufficient", "{}")),
        (GET, 200, &cluster_in("insufficient", "{}")),
        (GET, 200, &cluster_in("ready", "{}")),
        ("GET {v1}/changes", 200, CHANGE),
    ]);
    let ran = ok(&hub, &["cluster", "wait", "demo", "--for", "ready"]);
    assert_eq!(ran.out, "cluster/demo is ready\n");
    assert!(
        hub.asked().iter().all(|asked| asked.starts_with("GET ")),
        "nothing is changed"
    );

    let hub = Canned::start(&[
        (GET, 200, &cluster_in("ready", "{}")),
        (GET, 200, &cluster_in("ready", "{}")),
    ]);
    let ran = run(&["cluster", "wait", CLUSTER, "--hub", &hub.url]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("no installation is under way"), "{}", ran.err);
}
