//! https as people meet it: what the hub says at its start, whom its clients believe, and what they say otherwise.

use crate::program::{Ran, command, finish, run};
use crate::tour::Hub;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn asked(hub: &Hub, flags: &[&str]) -> Ran {
    let mut status = command(&["status", "--hub", hub.url()]);
    status.args(flags);
    finish(status)
}

#[test]
fn a_hub_with_an_authority_of_its_own_says_how_to_trust_it() {
    let data = tempfile::tempdir().unwrap();
    let flags = [
        "--listen",
        "127.0.0.1:0",
        "--tls-self-signed",
        "--plain-listen",
        "127.0.0.1:0",
    ];
    let mut serve = command(&["serve"]);
    serve.args(flags).arg("--data-dir").arg(data.path());
    let mut hub = serve
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(hub.stdout.take().unwrap()).lines();
    let mut said = Vec::new();
    for line in lines.map(Result::unwrap) {
        let is_last = line.contains("curl");
        said.push(line);
        if is_last {
            break;
        }
    }
    hub.kill().unwrap();
    hub.wait().unwrap();
    let url = said[0].strip_prefix("muster is ready at ").unwrap();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let text = said.join("\n");
    let authority = data.path().join("tls/ca.crt");
    let fingerprint = fingerprint(&std::fs::read_to_string(&authority).unwrap());
    for part in [
        "firmware boots from http://127.0.0.1:",
        &format!("SHA-256 {fingerprint}"),
        &format!("--ca {}", authority.display()),
        &format!("MUSTER_CA={}", authority.display()),
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

/// As `openssl x509 -fingerprint -sha256` shows it.
fn fingerprint(pem: &str) -> String {
    use base64::Engine;
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = base64::engine::general_purpose::STANDARD.decode(body).unwrap();
    muster_hub::tls::pair::fingerprint(&der)
}

#[test]
fn commands_believe_whom_they_are_told_to_and_say_why_they_believe_nobody_else() {
    let (hub, other) = (
        Hub::start_with(&["--tls-self-signed"]),
        Hub::start_with(&["--tls-self-signed"]),
    );
    let shown = hub.ok("status");
    assert!(
        shown.contains("own authority, expires in") && shown.contains("SHA-256"),
        "{shown}"
    );
    for flags in [&[][..], &["--ca", &other.authority()]] {
        let ran = asked(&hub, flags);
        assert_eq!(ran.code, 6, "{}", ran.err);
        assert!(ran.err.contains("not signed by an authority"), "{}", ran.err);
        assert!(
            ran.err.contains("next: ") && ran.err.contains("--ca FILE"),
            "{}",
            ran.err
        );
    }
    let missing = asked(&hub, &["--ca", "/nowhere/ca.crt"]);
    assert_eq!(missing.code, 2, "{}", missing.err);
    assert!(
        missing.err.contains("--ca: cannot read /nowhere/ca.crt"),
        "{}",
        missing.err
    );
    // Plain HTTP at that port is told where it is.
    let plain = hub.url().replace("https://", "http://");
    let ran = run(&["status", "--hub", &plain]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains(hub.url()), "{}", ran.err);
}

#[test]
fn simulated_hosts_arrive_over_https() {
    let hub = Hub::start_with(&["--tls-self-signed"]);
    let lab = hub.ok("infra-env create lab -o name");
    let _fleet = hub.sim_with(lab.trim(), "3", &[]);
    hub.until("host list -o name", |out| out.lines().count() == 3);
    hub.until(
        "host list --status known-unbound,insufficient-unbound -o name",
        |out| out.lines().count() == 3,
    );
}

#[test]
fn a_certificate_that_cannot_be_used_ends_the_start_with_the_flag_that_is_wrong() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().to_str().unwrap();
    for (flags, words) in [
        (
            &["--tls-cert", "/nowhere/hub.crt", "--tls-key", "/nowhere/hub.key"][..],
            "--tls-cert: cannot read",
        ),
        (&["--tls-cert", "/nowhere/hub.crt"], "--tls-cert needs --tls-key"),
        (&["--plain-listen", "127.0.0.1:0"], "--plain-listen"),
    ] {
        let base = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "warn",
            "--data-dir",
            directory,
        ];
        let ran = run(&[&base, flags].concat());
        assert_ne!(ran.code, 0);
        assert!(ran.err.contains(words), "{words} is not in {}", ran.err);
        assert_eq!(ran.out, "", "it says that it is ready");
    }
}
