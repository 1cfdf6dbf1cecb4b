//! A server that answers with the recording itself: it must pass whole, and every damage must be seen.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::super::client::Client;
use super::super::intended::Intended;
use super::super::recording::{Recording, Response};
use super::super::report::FileReport;
use super::super::run;
use super::super::{ids, project_recordings};
use super::recording;

/// Requests a server has seen: request line and body.
type Log = Arc<Mutex<Vec<(String, String)>>>;

/// Serves answers in order; what the seed asks for is granted without using one up, and so is what is asked again.
/// Gives the URL and the log.
fn play(answers: Vec<Response>) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let log = Log::default();
    let seen = Arc::clone(&log);
    std::thread::spawn(move || {
        let mut answers = VecDeque::from(answers);
        let mut seeds = 0;
        let mut last = nothing(599);
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (line, agent, body) = read(&stream);
            let answer = if agent == "seed" {
                seeds += 1;
                granted(&line, seeds)
            } else if line.starts_with("GET /metrics") {
                nothing(404)
            } else if agent == "again" {
                last.clone()
            } else {
                seen.lock().unwrap().push((line.clone(), body));
                last = answers.pop_front().unwrap_or_else(|| nothing(599));
                last.clone()
            };
            write(&mut stream, &answer);
        }
    });
    (url, log)
}

fn nothing(status: u16) -> Response {
    Response {
        status,
        headers: Default::default(),
        body: Value::Null,
    }
}

fn read(stream: &TcpStream) -> (String, String, String) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let (mut agent, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(':') else {
            break;
        };
        match name.to_lowercase().as_str() {
            "user-agent" => agent = value.trim().to_owned(),
            "content-length" => length = value.trim().parse().unwrap(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (line.trim().to_owned(), agent, String::from_utf8(body).unwrap())
}

fn granted(line: &str, number: usize) -> Response {
    let status = match line {
        _ if line.starts_with("GET") || line.contains("/actions/") => 200,
        _ if line.contains("/instructions") => 204,
        _ => 201,
    };
    let body = json!({ "id": format!("0ca1ab1e-0000-4000-8000-{number:012}") });
    Response {
        status,
        headers: Default::default(),
        body: if status == 204 { Value::Null } else { body },
    }
}

fn write(stream: &mut TcpStream, answer: &Response) {
    // A recorded crash is played as the answer Muster has to give.
    let (status, body) = match answer.status {
        0 => (400, json!({ "code": 400, "message": "no" })),
        status => (status, answer.body.clone()),
    };
    let text = match &body {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        body => body.to_string(),
    };
    let mut head = format!(
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n",
        text.len()
    );
    for (name, value) in &answer.headers {
        if !["Content-Length", "Transfer-Encoding", "Connection"].contains(&name.as_str()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let text = if status == 204 { "" } else { &text };
    // A client that is gone has failed its own test already.
    let _ = stream.write_all(format!("{head}\r\n{text}").as_bytes());
}

/// Replays against the recording's own answers, changed by `damage`.
fn replay(recording: &Recording, damage: impl FnOnce(&mut Vec<Response>)) -> FileReport {
    let intended = Intended::load().unwrap();
    let mut answers: Vec<Response> = recording
        .exchanges
        .iter()
        .map(|exchange| exchange.response.clone())
        .collect();
    damage(&mut answers);
    let kept = |index: &usize| {
        intended
            .withholds(&recording.name, *index, &recording.exchanges[*index].request)
            .is_none()
    };
    let answers = answers
        .into_iter()
        .enumerate()
        .filter(|(index, _)| kept(index))
        .map(|(_, answer)| answer)
        .collect();
    let (url, _) = play(answers);
    run::replay(recording, &Client::new(&url), &intended)
}

fn lines(report: &FileReport) -> Vec<String> {
    let line = |finding: &super::super::report::Finding| {
        format!(
            "[{}] {}: {}",
            finding.index, finding.operation, finding.difference
        )
    };
    report.unexpected().map(line).collect()
}

#[test]
fn every_recording_agrees_with_itself() {
    let files = project_recordings().unwrap();
    assert!(files.len() > 40, "the project keeps its recordings");
    for file in files {
        let recording = Recording::load(&file).unwrap();
        let report = replay(&recording, |_| {});
        assert_eq!(lines(&report), Vec::<String>::new(), "{}", recording.name);
        assert_eq!(
            report.compared + report.withheld.len(),
            recording.exchanges.len(),
            "{}",
            recording.name
        );
    }
}

fn pool_story() -> Recording {
    let (pool, host) = (
        "4772638c-6a54-4130-981b-ba8b071f7855",
        "2517ea5a-9491-5566-b206-bd1d51be055b",
    );
    let view = json!({ "kind": "InfraEnv", "id": pool, "href": "", "name": "pool" });
    let error = json!({ "kind": "Error", "id": 404, "href": "", "code": "404", "reason": "(text)" });
    recording(&[
        ("POST", "/infra-envs", json!({ "name": "pool" }), 201, view),
        (
            "POST",
            &format!("/infra-envs/{pool}/hosts"),
            json!({ "host_id": host }),
            201,
            json!({ "id": host }),
        ),
        (
            "DELETE",
            &format!("/infra-envs/{pool}/hosts/{host}"),
            json!({}),
            204,
            Value::Null,
        ),
        (
            "GET",
            &format!("/infra-envs/{pool}/hosts/{host}"),
            Value::Null,
            404,
            error,
        ),
    ])
}

#[test]
fn damaged_answers_are_found_where_they_are() {
    let report = replay(&pool_story(), |answers| {
        answers[0].body = json!({ "kind": "InfraEnv", "id": "x", "href": "", "nick": "pool" });
        answers[2].status = 200;
        answers[3].body = json!({ "error": "gone" });
        answers[3].status = 410;
    });
    assert_eq!(
        lines(&report),
        [
            "[0] POST /infra-envs: missing $.name: recorded string, ours absent",
            "[0] POST /infra-envs: extra $.nick: recorded absent, ours string",
            "[2] DELETE /infra-envs/{}/hosts/{}: status $: recorded 204, ours 200",
            "[3] GET /infra-envs/{}/hosts/{}: status $: recorded 404, ours 410",
            "[3] GET /infra-envs/{}/hosts/{}: body $: recorded an error's body, ours {\"error\":\"gone\"}",
        ]
    );
}

#[test]
fn later_requests_carry_the_ids_our_hub_chose() {
    let story = pool_story();
    let ours = "aaaaaaaa-0000-4000-8000-000000000001";
    let mut answers: Vec<Response> = story
        .exchanges
        .iter()
        .map(|exchange| exchange.response.clone())
        .collect();
    answers[0].body["id"] = json!(ours);
    let (url, log) = play(answers);
    let report = run::replay(&story, &Client::new(&url), &Intended::load().unwrap());
    assert_eq!(lines(&report), Vec::<String>::new());
    let log = log.lock().unwrap();
    assert_eq!(
        log[1].0,
        format!("POST /api/assisted-install/v2/infra-envs/{ours}/hosts HTTP/1.1")
    );
    assert_eq!(log[1].1, r#"{"host_id":"2517ea5a-9491-5566-b206-bd1d51be055b"}"#);
    assert_eq!(log[2].1, "{}", "the body of a DELETE is sent too");
}

#[test]
fn agents_answer_the_steps_of_our_hub() {
    let poll = "/infra-envs/4772638c-6a54-4130-981b-ba8b071f7855/hosts/2517ea5a-9491-5566-b206-bd1d51be055b/instructions";
    let steps = |id: &str, image: &str| {
        let args = json!([json!({ "images": [image, "b"], "timeout": 960 }).to_string()]);
        json!({ "next_instruction_seconds": 60, "post_step_action": "continue", "instructions": [
            { "step_type": "container-image-availability", "step_id": id, "args": args },
        ] })
    };
    let told = json!({ "images": [{ "name": "a", "result": "success" }] }).to_string();
    let reply = json!({ "step_type": "container-image-availability", "step_id": "theirs", "exit_code": 0, "output": told });
    let story = recording(&[
        ("GET", poll, Value::Null, 200, steps("theirs", "a")),
        ("POST", poll, reply, 204, Value::Null),
    ]);
    let mut answers: Vec<Response> = story
        .exchanges
        .iter()
        .map(|exchange| exchange.response.clone())
        .collect();
    answers[0].body = steps("ours", "c");
    let (url, log) = play(answers);
    let report = run::replay(&story, &Client::new(&url), &Intended::load().unwrap());
    assert_eq!(lines(&report), Vec::<String>::new());
    let sent: Value = serde_json::from_str(&log.lock().unwrap()[1].1).unwrap();
    assert_eq!(sent["step_id"], "ours");
    let output: Value = serde_json::from_str(sent["output"].as_str().unwrap()).unwrap();
    let images = json!([{ "name": "c", "result": "success" }, { "name": "b", "result": "success" }]);
    assert_eq!(output["images"], images);
}

#[test]
fn the_recorded_bootstrap_host_gets_the_smallest_id() {
    let (first, second) = (
        "11111111-9491-5566-b206-bd1d51be055b",
        "22222222-9491-5566-b206-bd1d51be055b",
    );
    let host = |id: &str, bootstrap: bool| json!({ "kind": "Host", "id": id, "href": "", "cluster_id": "c", "bootstrap": bootstrap });
    let story = |small: &str, large: &str| {
        let hosts = json!([host(small, false), host(large, true)]);
        json!([{ "request": { "method": "GET", "path": large }, "response": { "status": 200, "body": hosts } }])
            .to_string()
    };
    let parse = |text: &str| serde_json::from_str::<Vec<super::super::recording::Exchange>>(text).unwrap();
    let text = story(first, second);
    assert_eq!(
        super::super::cast::recast(&text, &parse(&text)),
        Some(story(second, first))
    );
    let right = story(second, first);
    assert_eq!(super::super::cast::recast(&right, &parse(&right)), None);
}

#[test]
fn what_a_recording_takes_for_granted_is_created_first() {
    let (pool, cluster) = (
        "4772638c-6a54-4130-981b-ba8b071f7855",
        "753ffaf6-82d9-4e70-95b8-70c8a4ce2560",
    );
    let host = "2517ea5a-9491-5566-b206-bd1d51be055b";
    let hosts = json!([{ "kind": "Host", "id": host, "href": "", "infra_env_id": pool, "cluster_id": cluster, "status": "binding" }]);
    let path = format!("/infra-envs/{pool}/hosts");
    let story = recording(&[("GET", &path, Value::Null, 200, hosts)]);
    let (url, log) = play(
        story
            .exchanges
            .iter()
            .map(|exchange| exchange.response.clone())
            .collect(),
    );
    let report = run::replay(
        &story,
        &Client::new(&url),
        &Intended::parse("difference = []").unwrap(),
    );
    assert_eq!(lines(&report), Vec::<String>::new());
    let line = log.lock().unwrap()[0].0.clone();
    let asked = line.split('/').nth(5).unwrap();
    assert!(
        ids::is_uuid(asked) && asked != pool,
        "the seeded infra-env's own id is used: {line}"
    );
}

#[test]
fn a_hub_that_cannot_be_seeded_is_an_unexpected_difference() {
    let view = json!([{ "kind": "InfraEnv", "id": "4772638c-6a54-4130-981b-ba8b071f7855", "href": "", "name": "x" }]);
    let story = recording(&[("GET", "/infra-envs", Value::Null, 200, view)]);
    // Nobody listens on port 1.
    let client = Client::new("http://127.0.0.1:1");
    let report = run::replay(&story, &client, &Intended::load().unwrap());
    assert_eq!((report.compared, report.unexpected().count()), (0, 1));
    assert!(
        lines(&report)[0].starts_with("[0] SEED: seed $"),
        "{:?}",
        lines(&report)
    );
}
