//! Scripts can tell refused, missing, too late and unreachable apart.

use crate::canned::{Canned, error, host};
use crate::program::run;

const BIND: &str = "POST {v2}/infra-envs/{env}/hosts/{c}/actions/bind";
const BLOCKED: &str = r#"{"verb":"bind","allowed":false,"steps":[],"warnings":[],"blockers":[
    {"code":"host-not-free","subject":"host/worker-0","reason":"it is lent already","next_action":"unbind it first"}]}"#;

#[test]
fn a_refusal_ends_with_3_and_tells_what_to_do_next() {
    let hub = Canned::start(&[
        (BIND, 409, &error(409, "it is lent already unbind it first")),
        ("POST {v1}/plan", 200, BLOCKED),
    ]);
    let ran = run(&["host", "bind", "worker-0", "--cluster", "demo", "--hub", &hub.url]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.err, "error: it is lent already\nnext: unbind it first\n");
    assert_eq!(ran.out, "");
}

#[test]
fn bad_input_is_refused_too() {
    let hub = Canned::start(&[("POST {v2}/clusters/import", 400, &error(400, "bad name"))]);
    let ran = run(&[
        "cluster",
        "import",
        "x!",
        "--api-address",
        "api.example.com",
        "--hub",
        &hub.url,
    ]);
    assert_eq!((ran.code, ran.err.as_str()), (3, "error: bad name\n"));
}

#[test]
fn a_dry_run_that_is_blocked_shows_the_plan_and_ends_like_the_verb() {
    let hub = Canned::start(&[("POST {v1}/plan", 200, BLOCKED)]);
    let ran = run(&[
        "host",
        "bind",
        "worker-0",
        "--cluster",
        "demo",
        "--dry-run",
        "--hub",
        &hub.url,
    ]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.out.contains("bind: refused") && ran.out.contains("next: unbind it first"),
        "{}",
        ran.out
    );
    assert!(
        !hub.asked().iter().any(|asked| asked.contains("actions/bind")),
        "nothing is changed"
    );
}

#[test]
fn a_missing_object_ends_with_4() {
    let hub = Canned::start(&[]);
    let id = "33333333-0000-4000-8000-000000000009";
    assert_eq!(run(&["cluster", "get", id, "--hub", &hub.url]).code, 4);
}

#[test]
fn waiting_too_long_ends_with_5_and_says_what_was_last_seen() {
    let binding = host("binding");
    let hub = Canned::start(&[
        (BIND, 200, &binding),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &binding),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", 200, &binding),
    ]);
    let ran = run(&[
        "host",
        "bind",
        "worker-0",
        "--cluster",
        "demo",
        "--wait",
        "--timeout",
        "0",
        "--hub",
        &hub.url,
    ]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(
        ran.err.contains("binding: it is") && ran.err.contains("next:"),
        "{}",
        ran.err
    );
}

#[test]
fn an_unreachable_hub_ends_with_6() {
    let ran = run(&["host", "list", "--hub", "http://127.0.0.1:1"]);
    assert_eq!(ran.code, 6);
    assert!(
        ran.err.starts_with("error: cannot reach the hub") && ran.err.contains("next:"),
        "{}",
        ran.err
    );
}

#[test]
fn wrong_usage_ends_with_2() {
    assert_eq!(run(&["host", "lst"]).code, 2);
    assert_eq!(run(&["host", "list", "--hub", "not a url"]).code, 2);
    assert_eq!(run(&["host", "list", "-o", "xml"]).code, 2);
}

#[test]
fn a_broken_hub_ends_with_1() {
    let hub = Canned::start(&[("GET {v1}/status", 500, &error(500, "boom"))]);
    assert_eq!(run(&["status", "--hub", &hub.url]).code, 1);
}

#[test]
fn a_hub_that_cannot_start_tells_the_cause_once() {
    let dir = tempfile::tempdir().unwrap();
    // A directory where the database should be.
    let database = format!("sqlite:{}", dir.path().display());
    let ran = run(&["serve", "--listen", "127.0.0.1:0", "--database", &database]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let cause = ran.err.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert_eq!(cause.matches("unable to open").count(), 1, "{cause}");
}
