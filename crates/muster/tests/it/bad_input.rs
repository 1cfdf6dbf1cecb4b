//! Requests that are wrong in every way we could think of: a clear no in the right shape, and nothing changes.

use crate::machines::{Machines, cluster};
use crate::served::{Place, Served, on_both};
use crate::wire::{Answer, Shape, head, read, request, send, send_cut_off};
use std::io::Write;
use std::net::TcpStream;
use uuid::Uuid;

on_both! {
    bodies_that_are_wrong_change_nothing,
    bodies_that_do_not_fit_their_frame_change_nothing,
    every_operation_refuses_ids_that_are_none,
    every_operation_refuses_bodies_that_are_none,
    paths_and_methods_that_are_wrong_change_nothing,
    heads_that_are_wrong_change_nothing,
    slow_and_silent_clients_hold_nobody_up,
}

const V1: &str = muster_contract::v1::BASE;
const V2: &str = muster_contract::v2::BASE;
const PULL_SECRET: &str = r#""{\"auths\":{\"registry.example.com\":{\"auth\":\"dXNlcjpwYXNzd29yZA==\"}}}""#;
/// What the hub reads of one body.
const LIMIT: usize = 16 * 1024 * 1024;

/// A hub with one pool, one free host and one cluster.
struct Target {
    served: Served,
    infra_env: Uuid,
    host: Uuid,
    cluster: Uuid,
}

/// What is sent, and what must come back.
struct Case {
    name: String,
    bytes: Vec<u8>,
    status: u16,
    shape: Shape,
}

fn case(name: impl Into<String>, bytes: Vec<u8>, status: u16, shape: Shape) -> Case {
    Case {
        name: name.into(),
        bytes,
        status,
        shape,
    }
}

impl Target {
    async fn open(place: &Place) -> Self {
        let served = Served::start(place);
        let machines = Machines::new(&served.hub).await;
        machines.arrive(&served.hub, [0]).await;
        let cluster = cluster(&served.hub, "alpha").await;
        Self {
            infra_env: machines.infra_env,
            host: machines.id(0),
            cluster,
            served,
        }
    }

    fn host_path(&self) -> String {
        format!("{V2}/infra-envs/{}/hosts/{}", self.infra_env, self.host)
    }

    /// Every case by itself, so that one that changes something is named.
    async fn refuses(&mut self, cases: Vec<Case>) {
        let mut wrong = Vec::new();
        let mut before = self.settled().await;
        for Case {
            name,
            bytes,
            status,
            shape,
        } in cases
        {
            // What is no HTTP would be waited for.
            let answer = match shape {
                Shape::Protocol => send_cut_off(self.served.address(), &bytes),
                Shape::Framework | Shape::Operation | Shape::Problem => send(self.served.address(), &bytes),
            };
            let fits = match &answer {
                Some(answer) => answer.status == status && answer.has(shape),
                // Who does not speak HTTP may be hung up on.
                None => shape == Shape::Protocol,
            };
            if !fits {
                let told = answer.map_or("hung up".into(), |answer| answer.text());
                wrong.push(format!("{name}: expected {status} {shape:?}, got {told}"));
            }
            assert!(self.served.is_alive(), "{name} killed the hub");
            let after = self.served.seq().await;
            if after != before {
                wrong.push(format!("{name}: something changed"));
                before = after;
            }
        }
        assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
        assert_eq!(
            send(self.served.address(), &request("GET", "/health", None))
                .unwrap()
                .status,
            200
        );
    }

    /// The feed's last number once the looks at new clusters are over.
    async fn settled(&self) -> i64 {
        let query = muster_contract::v2::host::ClusterHostsQuery::default();
        self.served.hub.cluster_hosts(self.cluster, &query).await.unwrap();
        crate::served::until("the cluster was looked at", async || {
            let cluster = self.served.hub.cluster(self.cluster).await.unwrap();
            (!cluster.validations_info.is_empty()).then_some(())
        })
        .await;
        self.served.seq().await
    }
}

fn cluster_with(more: &str) -> String {
    format!(r#"{{"name":"beta","openshift_version":"4.20","pull_secret":{PULL_SECRET}{more}}}"#)
}

async fn bodies_that_are_wrong_change_nothing(place: &Place) {
    let mut target = Target::open(place).await;
    let (clusters, infra_envs) = (format!("{V2}/clusters"), format!("{V2}/infra-envs"));
    let (host, bind) = (target.host_path(), format!("{}/actions/bind", target.host_path()));
    let (register, reply) = (
        format!("{infra_envs}/{}/hosts", target.infra_env),
        format!("{host}/instructions"),
    );
    let (one_cluster, plan) = (format!("{clusters}/{}", target.cluster), format!("{V1}/plan"));
    let one_env = format!("{infra_envs}/{}", target.infra_env);
    let step = format!("{V1}/infra-envs/{}/hosts/{}/move", target.infra_env, target.host);
    let free = Uuid::new_v4();
    let nul = r#","base_dns_domain":"a\u0000b.example.com""#;
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
    use Shape::{Framework, Operation, Problem};
    let table: Vec<(&str, &str, &str, String, u16, Shape)> = vec![
        (
            "unknown field",
            "POST",
            &clusters,
            cluster_with(r#","colour":"red""#),
            400,
            Framework,
        ),
        (
            "unknown nested field",
            "PATCH",
            &one_cluster,
            r#"{"platform":{"type":"none","x":1}}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown field of a host",
            "PATCH",
            &host,
            r#"{"hostname":"h"}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown field of a pool",
            "PATCH",
            &one_env,
            r#"{"named":"h"}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown field of a bind",
            "POST",
            &bind,
            format!(r#"{{"cluster_id":"{}","force":true}}"#, target.cluster),
            400,
            Framework,
        ),
        (
            "unknown field of a registration",
            "POST",
            &register,
            format!(r#"{{"host_id":"{free}","x":1}}"#),
            400,
            Framework,
        ),
        (
            "unknown field of a reply",
            "POST",
            &reply,
            r#"{"step_id":"a","x":1}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown field of a plan",
            "POST",
            &plan,
            r#"{"verb":"bind","x":1}"#.into(),
            400,
            Problem,
        ),
        (
            "text for a number",
            "POST",
            &clusters,
            cluster_with(r#","control_plane_count":"3""#),
            400,
            Framework,
        ),
        (
            "number for a text",
            "POST",
            &infra_envs,
            format!(r#"{{"name":7,"pull_secret":{PULL_SECRET}}}"#),
            400,
            Framework,
        ),
        (
            "text for a flag",
            "POST",
            &clusters,
            cluster_with(r#","user_managed_networking":"true""#),
            400,
            Framework,
        ),
        (
            "object for a list",
            "POST",
            &clusters,
            cluster_with(r#","api_vips":{"ip":"192.168.7.5"}"#),
            400,
            Framework,
        ),
        (
            "list for an object",
            "POST",
            &clusters,
            cluster_with(r#","platform":["none"]"#),
            400,
            Framework,
        ),
        (
            "list for the body",
            "POST",
            &bind,
            format!(r#"["{}"]"#, target.cluster),
            400,
            Framework,
        ),
        (
            "text for the body",
            "POST",
            &clusters,
            r#""beta""#.into(),
            400,
            Framework,
        ),
        ("no body", "POST", &clusters, String::new(), 400, Framework),
        ("null", "POST", &clusters, "null".into(), 400, Framework),
        (
            "two values",
            "POST",
            &clusters,
            format!("{}{}", cluster_with(""), cluster_with("")),
            400,
            Framework,
        ),
        (
            "a comma too many",
            "POST",
            &clusters,
            cluster_with(","),
            400,
            Framework,
        ),
        (
            "a comment",
            "POST",
            &clusters,
            cluster_with(" /* x */"),
            400,
            Framework,
        ),
        (
            "a byte order mark",
            "POST",
            &clusters,
            format!("\u{feff}{}", cluster_with("")),
            400,
            Framework,
        ),
        (
            "NaN",
            "POST",
            &clusters,
            cluster_with(r#","control_plane_count":NaN"#),
            400,
            Framework,
        ),
        (
            "half a body",
            "POST",
            &clusters,
            cluster_with("")[..40].into(),
            400,
            Framework,
        ),
        (
            "missing field",
            "POST",
            &clusters,
            r#"{"name":"beta"}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown word",
            "POST",
            &clusters,
            cluster_with(r#","high_availability_mode":"Half""#),
            400,
            Framework,
        ),
        (
            "unknown image type",
            "PATCH",
            &one_env,
            r#"{"image_type":"tape"}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown role",
            "PATCH",
            &host,
            r#"{"host_role":"boss"}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown step",
            "POST",
            &reply,
            r#"{"step_type":"dance","step_id":"a"}"#.into(),
            400,
            Framework,
        ),
        (
            "unknown verb",
            "POST",
            &plan,
            r#"{"verb":"dance"}"#.into(),
            400,
            Problem,
        ),
        (
            "invalid id",
            "POST",
            &bind,
            r#"{"cluster_id":"alpha"}"#.into(),
            400,
            Framework,
        ),
        (
            "empty id",
            "POST",
            &bind,
            r#"{"cluster_id":""}"#.into(),
            400,
            Framework,
        ),
        (
            "invalid id of a move",
            "POST",
            &step,
            r#"{"cluster_id":"alpha"}"#.into(),
            400,
            Problem,
        ),
        (
            "id of no cluster",
            "POST",
            &step,
            format!(r#"{{"cluster_id":"{free}"}}"#),
            400,
            Problem,
        ),
        ("deep lists", "POST", &clusters, deep("[", "]"), 400, Framework),
        (
            "deep objects",
            "POST",
            &clusters,
            deep(r#"{"a":"#, "}"),
            400,
            Framework,
        ),
        (
            "deep lists in a field",
            "POST",
            &clusters,
            cluster_with(&format!(r#","api_vips":{}"#, deep("[", "]"))),
            400,
            Framework,
        ),
        (
            "deep lists in our own API",
            "POST",
            &plan,
            deep("[", "]"),
            400,
            Problem,
        ),
        (
            "deep report",
            "POST",
            &reply,
            format!(
                r#"{{"step_type":"inventory","step_id":"i-1","exit_code":0,"output":"{}"}}"#,
                deep("[", "]")
            ),
            400,
            Operation,
        ),
        (
            "deep override",
            "PATCH",
            &one_env,
            format!(r#"{{"ignition_config_override":"{}"}}"#, deep("[", "]")),
            400,
            Operation,
        ),
        (
            "huge number",
            "POST",
            &clusters,
            cluster_with(r#","control_plane_count":1e999"#),
            400,
            Framework,
        ),
        (
            "long number",
            "POST",
            &clusters,
            cluster_with(&format!(r#","control_plane_count":{}"#, "9".repeat(5000))),
            400,
            Framework,
        ),
        (
            "number out of range",
            "POST",
            &clusters,
            cluster_with(r#","control_plane_count":9223372036854775808"#),
            400,
            Framework,
        ),
        (
            "number beyond reason",
            "POST",
            &clusters,
            cluster_with(r#","control_plane_count":9223372036854775807"#),
            400,
            Operation,
        ),
        (
            "fraction",
            "POST",
            &clusters,
            cluster_with(r#","control_plane_count":3.5"#),
            400,
            Framework,
        ),
        (
            "the same key twice",
            "POST",
            &clusters,
            cluster_with(r#","name":"gamma""#),
            400,
            Framework,
        ),
        (
            "the same key twice, deep",
            "POST",
            &clusters,
            cluster_with(r#","proxy":{"no_proxy":"a","no_proxy":"b"}"#),
            400,
            Framework,
        ),
        (
            "half a surrogate pair",
            "POST",
            &clusters,
            cluster_with(r#","base_dns_domain":"\ud800""#),
            400,
            Framework,
        ),
        (
            "NUL in a domain",
            "POST",
            &clusters,
            cluster_with(nul),
            400,
            Framework,
        ),
        (
            "NUL in a name",
            "POST",
            &infra_envs,
            format!(r#"{{"name":"a\u0000b","pull_secret":{PULL_SECRET}}}"#),
            400,
            Framework,
        ),
        (
            "control character",
            "POST",
            &clusters,
            cluster_with(",\"base_dns_domain\":\"a\nb\""),
            400,
            Framework,
        ),
        (
            "name too long",
            "POST",
            &clusters,
            cluster_with("").replace("beta", &"b".repeat(1_000_000)),
            400,
            Framework,
        ),
    ];
    let invalid_utf8 = [
        cluster_with("").replace("beta", "b?").into_bytes(),
        b"\xff\xfe\x00\x7b".to_vec(),
    ];
    let mut cases: Vec<Case> = table
        .into_iter()
        .map(|(name, method, path, body, status, shape)| {
            case(name, request(method, path, Some(body.as_bytes())), status, shape)
        })
        .collect();
    for (at, body) in invalid_utf8.into_iter().enumerate() {
        let body: Vec<u8> = body
            .into_iter()
            .map(|byte| if byte == b'?' { 0xff } else { byte })
            .collect();
        cases.push(case(
            format!("invalid UTF-8 {at}"),
            request("POST", &clusters, Some(&body)),
            400,
            Framework,
        ));
    }
    let xml = format!("POST {clusters} HTTP/1.1");
    let lines = [
        xml.as_str(),
        "Host: hub",
        "Connection: close",
        "Content-Type: text/xml",
        "Content-Length: 4",
    ];
    cases.push(case("XML", head(&lines, b"<a/>"), 400, Framework));
    target.refuses(cases).await;
    text_with_nul_is_taken(&target, &register, &reply, free);
    absurd_clocks_are_only_wrong(&target, &reply);
}

/// A host whose clock is far off is told so in its checks; it is heard all the same.
fn absurd_clocks_are_only_wrong(target: &Target, poll: &str) {
    for clock in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX] {
        let path = format!("{poll}?timestamp={clock}");
        let answer = send(target.served.address(), &request("GET", &path, None)).unwrap();
        assert_eq!(answer.status, 200, "{clock}: {}", answer.text());
    }
}

/// Agents and controllers repeat what they read elsewhere; a NUL in it is no reason to lose the rest.
fn text_with_nul_is_taken(target: &Target, register: &str, reply: &str, host: Uuid) {
    let event = format!(
        r#"{{"name":"x","cluster_id":"{}","severity":"info","message":"a\u0000b","props":"{{\"a\":\"\\u0000\"}}"}}"#,
        target.cluster
    );
    let version = format!(r#"{{"host_id":"{host}","discovery_agent_version":"a\u0000b"}}"#);
    let hardware = r#"{\"hostname\":\"a\\u0000b\",\"system_vendor\":{\"serial_number\":\"\\u0000\"}}"#;
    let output = |text: &str| {
        format!(
            r#"{{"step_type":"inventory","step_id":"i-1","exit_code":0,"output":"{text}","error":"\u0000"}}"#
        )
    };
    let failed = r#"{"step_type":"inventory","step_id":"i-1","exit_code":1,"output":"","error":"a\u0000b"}"#;
    for (path, body, status) in [
        (format!("{V2}/events"), event, 201),
        (register.to_owned(), version, 201),
        (reply.to_owned(), output(hardware), 204),
        (reply.to_owned(), failed.to_owned(), 204),
    ] {
        let answer = send(
            target.served.address(),
            &request("POST", &path, Some(body.as_bytes())),
        )
        .unwrap();
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
    }
    for path in [
        target.host_path(),
        format!("{V2}/events?cluster_id={}", target.cluster),
        register.to_owned(),
    ] {
        let answer = send(target.served.address(), &request("GET", &path, None)).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

async fn bodies_that_do_not_fit_their_frame_change_nothing(place: &Place) {
    let mut target = Target::open(place).await;
    let line = format!("POST {V2}/clusters HTTP/1.1");
    let own = format!("POST {V1}/plan HTTP/1.1");
    let body = cluster_with("").into_bytes();
    let start = |line: &str, field: &str, rest: &[u8]| {
        head(
            &[
                line,
                "Host: hub",
                "Connection: close",
                "Content-Type: application/json",
                field,
            ],
            rest,
        )
    };
    let chunk = format!("{:x}\r\n", body.len());
    let chunked = |tail: &[u8]| [chunk.as_bytes(), &body, tail].concat();
    // One byte more than is read, so that nothing is left unread when the answer comes.
    let large = [format!("{:x}\r\n", LIMIT + 1).as_bytes(), &vec![b' '; LIMIT + 1]].concat();
    let whole = format!("Content-Length: {}", body.len());
    let coding = "Transfer-Encoding: chunked";
    use Shape::{Framework, Problem, Protocol};
    let cases = vec![
        case(
            "too large, as announced",
            start(&line, &format!("Content-Length: {}", LIMIT + 1), b"{"),
            413,
            Framework,
        ),
        case(
            "too large for our own API",
            start(&own, &format!("Content-Length: {}", LIMIT + 1), b"{"),
            413,
            Problem,
        ),
        case(
            "far too large, as announced",
            start(&line, "Content-Length: 9223372036854775807", b"{"),
            413,
            Framework,
        ),
        case(
            "too large, in chunks",
            start(&line, coding, &large),
            413,
            Framework,
        ),
        case(
            "cut off",
            start(&line, "Content-Length: 100000", &body),
            400,
            Protocol,
        ),
        case(
            "cut off in the middle",
            start(&line, &whole, &body[..20]),
            400,
            Protocol,
        ),
        case(
            "cut off before the last chunk",
            start(&line, coding, &chunked(b"\r\n")),
            400,
            Protocol,
        ),
        case(
            "cut off in a chunk",
            start(&line, coding, &chunked(b"")),
            400,
            Protocol,
        ),
        case(
            "chunks without a size",
            start(&line, coding, b"zz\r\n{}\r\n0\r\n\r\n"),
            400,
            Framework,
        ),
        case(
            "a chunk larger than any number",
            start(&line, coding, b"fffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
            400,
            Framework,
        ),
        case(
            "a length that is none",
            start(&line, "Content-Length: many", &body),
            400,
            Protocol,
        ),
        case(
            "a negative length",
            start(&line, "Content-Length: -1", &body),
            400,
            Protocol,
        ),
        case(
            "a signed length",
            start(&line, "Content-Length: +10", &body),
            400,
            Protocol,
        ),
        case(
            "a length beyond counting",
            start(&line, "Content-Length: 99999999999999999999999", &body),
            400,
            Protocol,
        ),
        case(
            "two lengths",
            start(&line, &format!("{whole}\r\nContent-Length: 1"), &body),
            400,
            Protocol,
        ),
        case(
            "a list of lengths",
            start(&line, "Content-Length: 1, 2", &body),
            400,
            Protocol,
        ),
        case(
            "chunks that are not the last coding",
            start(&line, "Transfer-Encoding: chunked, identity", &body),
            400,
            Protocol,
        ),
        case(
            "an unknown coding",
            start(&line, "Transfer-Encoding: xchunked", &body),
            400,
            Protocol,
        ),
        case(
            "chunks in HTTP/1.0",
            start(&line.replace("1.1", "1.0"), coding, &chunked(b"\r\n0\r\n\r\n")),
            400,
            Protocol,
        ),
    ];
    target.refuses(cases).await;
    smuggled_requests_are_not_heard(&mut target).await;
}

/// A second request hidden where two readers of the first disagree about its end.
async fn smuggled_requests_are_not_heard(target: &mut Target) {
    let before = target.settled().await;
    let hidden = request(
        "POST",
        &format!("{V2}/clusters"),
        Some(cluster_with("").as_bytes()),
    );
    let line = format!("POST {V2}/clusters HTTP/1.1");
    let rest = [b"0\r\n\r\n".as_slice(), &hidden].concat();
    let fields = [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Transfer-Encoding: identity, chunked"),
        ("Content-Length: 5", "Transfer-Encoding : chunked"),
        ("Content-Length: 5", "Transfer-Encoding:\x0bchunked"),
        ("Content-Length: 5\r\nContent-Length: 500", "X: y"),
    ];
    for (first, second) in fields {
        let bytes = head(
            &[
                &line,
                "Host: hub",
                "Content-Type: application/json",
                first,
                second,
            ],
            &rest,
        );
        let answer = send_cut_off(target.served.address(), &bytes);
        let status = answer.map_or(400, |answer| answer.status);
        assert_eq!(status, 400, "{first}, {second}");
        assert_eq!(
            target.served.seq().await,
            before,
            "{first}, {second}: the hidden request was heard"
        );
    }
}

/// The document the hub serves about itself.
fn operations(target: &Target) -> Vec<(String, String, serde_json::Value)> {
    let answer = send(target.served.address(), &request("GET", "/openapi.json", None)).unwrap();
    let document = answer.json();
    let paths = document["paths"].as_object().unwrap().clone();
    let methods = paths.into_iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap().clone();
        item.into_iter()
            .map(move |(method, operation)| (path.clone(), method.to_uppercase(), operation))
    });
    methods.collect()
}

fn shape_of(path: &str) -> Shape {
    if path.starts_with(V1) {
        Shape::Problem
    } else {
        Shape::Framework
    }
}

/// The path with the ids of what is there.
fn filled(target: &Target, path: &str) -> String {
    path.replace("{infra_env_id}", &target.infra_env.to_string())
        .replace("{host_id}", &target.host.to_string())
        .replace("{cluster_id}", &target.cluster.to_string())
        .replace("{validation_id}", "connected")
}

async fn every_operation_refuses_ids_that_are_none(place: &Place) {
    let mut target = Target::open(place).await;
    let bad = [
        "x",
        "%00",
        "..",
        "%2e%2e",
        "%ff",
        "1",
        "null",
        "00000000-0000-0000-0000-00000000000g",
        "%C3%A4",
        "'--",
    ];
    let mut cases = Vec::new();
    for (path, method, _) in operations(&target) {
        for id in ["{infra_env_id}", "{host_id}", "{cluster_id}"] {
            if !path.contains(id) {
                continue;
            }
            for bad in bad {
                let full = filled(&target, &path.replace(id, bad));
                let body = (method != "GET" && method != "DELETE").then_some(b"{}".as_slice());
                cases.push(case(
                    format!("{method} {full}"),
                    request(&method, &full, body),
                    400,
                    shape_of(&path),
                ));
            }
        }
    }
    assert!(cases.len() > 200, "{}", cases.len());
    target.refuses(cases).await;
}

async fn every_operation_refuses_bodies_that_are_none(place: &Place) {
    let mut target = Target::open(place).await;
    let bad: [&[u8]; 7] = [
        b"",
        b"[]",
        b"7",
        b"{",
        b"\"\xff\"",
        b"{\"no_such_field\":1}",
        b"{}{}",
    ];
    let mut cases = Vec::new();
    for (path, method, operation) in operations(&target) {
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        // A body that is itself a text has no fields to be wrong.
        if body["$ref"].is_null() {
            continue;
        }
        let full = filled(&target, &path);
        for bad in bad {
            let name = format!("{method} {full} {}", String::from_utf8_lossy(bad));
            cases.push(case(
                name,
                request(&method, &full, Some(bad)),
                400,
                shape_of(&path),
            ));
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    target.refuses(cases).await;
}

async fn paths_and_methods_that_are_wrong_change_nothing(place: &Place) {
    let mut target = Target::open(place).await;
    let (env, long) = (target.infra_env, "a".repeat(60_000));
    use Shape::{Framework, Operation, Problem, Protocol};
    let table: Vec<(&str, String, u16, Shape)> = vec![
        ("GET", format!("{V2}/../../etc/passwd"), 404, Framework),
        ("GET", format!("{V2}/%2e%2e/%2e%2e/etc/passwd"), 404, Framework),
        ("GET", format!("{V2}/..%2f..%2fetc%2fpasswd"), 404, Framework),
        (
            "GET",
            format!("{V2}/infra-envs/{env}/../../clusters"),
            404,
            Framework,
        ),
        ("GET", "/../../../../etc/passwd".into(), 404, Framework),
        ("GET", "/docs/../../etc/passwd".into(), 404, Framework),
        ("GET", "/docs/%2e%2e/%2e%2e/etc/passwd".into(), 404, Framework),
        ("GET", format!("/{V2}/clusters"), 404, Framework),
        ("GET", format!("{V2}//clusters"), 404, Framework),
        ("GET", format!("{V2}/clusters/"), 404, Framework),
        (
            "GET",
            format!("{V2}/clusters/{}/", target.cluster),
            404,
            Framework,
        ),
        ("GET", format!("{V2}/infra-envs//hosts"), 400, Framework),
        ("GET", format!("{V2}/clusters%00"), 400, Framework),
        ("GET", format!("{V2}/Clusters"), 404, Framework),
        ("GET", format!("{V2}/{long}"), 404, Framework),
        ("GET", format!("{V2}/infra-envs/{long}"), 400, Framework),
        (
            "GET",
            format!("{V2}/clusters/{}%0d%0aX:%20y", target.cluster),
            400,
            Framework,
        ),
        ("GET", format!("{V2}/clusters;a=b"), 404, Framework),
        ("GET", format!("{V1}/nothing"), 404, Framework),
        (
            "GET",
            format!("{V2}/infra-envs/{env}/hosts/{}", Uuid::new_v4()),
            404,
            Operation,
        ),
        ("GET", format!("{V2}/clusters/{}", Uuid::new_v4()), 404, Operation),
        (
            "DELETE",
            format!("{V2}/infra-envs/{}", Uuid::new_v4()),
            404,
            Operation,
        ),
        (
            "GET",
            format!("{V1}/clusters/{}/explain", Uuid::new_v4()),
            404,
            Problem,
        ),
        ("GET", format!("{V1}/hosts?limit=-1"), 400, Problem),
        ("GET", format!("{V1}/hosts?status=dancing"), 400, Problem),
        ("GET", format!("{V1}/hosts?after=%00"), 400, Problem),
        ("GET", format!("{V1}/changes?after=many"), 400, Problem),
        ("GET", format!("{V1}/changes?after=99999999"), 410, Problem),
        ("GET", format!("{V2}/events?cluster_id=x"), 400, Framework),
        (
            "GET",
            format!("{V2}/events?limit=99999999999999999999"),
            400,
            Framework,
        ),
        (
            "GET",
            format!("{V2}/events?cluster_id={}&severities=loud", target.cluster),
            400,
            Framework,
        ),
        (
            "GET",
            format!("{V2}/infra-envs/{env}/downloads/files?file_name=../../etc/passwd"),
            400,
            Framework,
        ),
        (
            "GET",
            format!("{V2}/infra-envs/{env}/downloads/files"),
            400,
            Framework,
        ),
        ("PUT", format!("{V2}/clusters"), 405, Framework),
        ("DELETE", format!("{V2}/clusters"), 405, Framework),
        ("PATCH", format!("{V2}/infra-envs"), 405, Framework),
        (
            "POST",
            format!("{V2}/clusters/{}", target.cluster),
            405,
            Framework,
        ),
        (
            "GET",
            format!("{}/actions/bind", target.host_path()),
            405,
            Framework,
        ),
        (
            "DELETE",
            format!("{}/instructions", target.host_path()),
            405,
            Framework,
        ),
        ("TRACE", format!("{V2}/clusters"), 405, Framework),
        ("BREW", format!("{V2}/clusters"), 405, Framework),
        ("POST", "/health".into(), 405, Framework),
        ("DELETE", format!("{V1}/changes"), 405, Framework),
        ("CONNECT", "hub:80".into(), 404, Framework),
        ("GET", "no-slash".into(), 404, Framework),
        ("G\0T", "/".into(), 400, Protocol),
        ("GET", "/a b".into(), 400, Protocol),
        ("GET", "/a\0b".into(), 400, Protocol),
        ("GET", "/a".repeat(40_000), 414, Protocol),
    ];
    let mut cases: Vec<Case> = table
        .into_iter()
        .map(|(method, path, status, shape)| {
            let name = format!("{method} {}", path.chars().take(200).collect::<String>());
            case(name, request(method, &path, None), status, shape)
        })
        .collect();
    for (at, path) in ["/ä", "/api/assisted-install/v2/clusters/ä"]
        .into_iter()
        .enumerate()
    {
        cases.push(case(
            format!("not ASCII {path}"),
            request("GET", path, None),
            [404, 400][at],
            Shape::Framework,
        ));
    }
    target.refuses(cases).await;
}

async fn heads_that_are_wrong_change_nothing(place: &Place) {
    let mut target = Target::open(place).await;
    let body = cluster_with("");
    let line = format!("POST {V2}/clusters HTTP/1.1");
    let length = format!("Content-Length: {}", body.len());
    let with = |fields: &[&str]| {
        let mut lines = vec![line.as_str()];
        lines.extend_from_slice(fields);
        lines.extend_from_slice(&["Connection: close", "Content-Type: application/json", &length]);
        head(&lines, body.as_bytes())
    };
    let long = format!("X-Long: {}", "a".repeat(2_000_000));
    let many: Vec<String> = (0..5_000).map(|at| format!("X-{at}: y")).collect();
    let many: Vec<&str> = std::iter::once("Host: hub")
        .chain(many.iter().map(String::as_str))
        .collect();
    use Shape::{Framework, Protocol};
    let cases = vec![
        case("no Host", with(&[]), 400, Framework),
        case("two Hosts", with(&["Host: hub", "Host: other"]), 400, Framework),
        case("a Host that is none", with(&["Host: a b/c"]), 400, Framework),
        case("a long field", with(&["Host: hub", &long]), 431, Protocol),
        case("many fields", with(&many), 431, Protocol),
        case(
            "a field without a colon",
            with(&["Host: hub", "nonsense"]),
            400,
            Protocol,
        ),
        case(
            "a field without a name",
            with(&["Host: hub", ": x"]),
            400,
            Protocol,
        ),
        case("a NUL in a field", with(&["Host: hub", "X: a\0b"]), 400, Protocol),
        case(
            "a folded field",
            with(&["Host: hub", "X: a", " b"]),
            400,
            Protocol,
        ),
        case(
            "a form nobody offers",
            with(&["Host: hub", "Accept: image/png"]),
            400,
            Framework,
        ),
        case(
            "not HTTP",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
            400,
            Protocol,
        ),
        case(
            "HTTP/2 without asking",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            400,
            Protocol,
        ),
        case(
            "HTTP/9",
            head(&["GET / HTTP/9.1", "Host: hub"], b""),
            400,
            Protocol,
        ),
        case("nothing", Vec::new(), 400, Protocol),
        case("only empty lines", b"\r\n\r\n\r\n\r\n".to_vec(), 400, Protocol),
    ];
    target.refuses(cases).await;
}

async fn slow_and_silent_clients_hold_nobody_up(place: &Place) {
    let mut target = Target::open(place).await;
    let before = target.settled().await;
    let body = cluster_with("");
    let whole = request("POST", &format!("{V2}/clusters"), Some(body.as_bytes()));
    let silent: Vec<TcpStream> = (0..100)
        .map(|at| {
            let mut stream = TcpStream::connect(target.served.address()).unwrap();
            // Cut at another place each time: in the line, in the fields, in the body; never quite to the end.
            stream.write_all(&whole[..(at * 7) % (whole.len() - 1)]).unwrap();
            stream
        })
        .collect();
    assert_eq!(
        target
            .served
            .hub
            .clusters(&Default::default())
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        target.served.seq().await,
        before,
        "half a request changes nothing"
    );
    drop(silent);
    let mut slow = TcpStream::connect(target.served.address()).unwrap();
    slow.set_nodelay(true).unwrap();
    for byte in &whole {
        slow.write_all(&[*byte]).unwrap();
    }
    let answer: Option<Answer> = read(&mut slow);
    assert_eq!(
        answer.unwrap().status,
        201,
        "who sends byte by byte is served as well"
    );
    assert!(target.served.is_alive());
}
