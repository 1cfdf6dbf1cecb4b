//! A stand-in for a hub: answers chosen requests with prepared texts and remembers what it was asked.

use muster_contract::v2::cluster::ClusterView;
use muster_contract::v2::error::ErrorBody;
use muster_contract::v2::host::HostView;
use muster_contract::v2::infra_env::InfraEnvView;
use serde::Serialize;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

pub const INFRA_ENV: &str = "11111111-0000-4000-8000-000000000001";
pub const CLUSTER: &str = "22222222-0000-4000-8000-000000000001";
pub const HOST_A: &str = "aaaa1111-0000-4000-8000-000000000001";
pub const HOST_B: &str = "aaaa2222-0000-4000-8000-000000000002";
pub const HOST_C: &str = "bbbb3333-0000-4000-8000-000000000003";

/// `METHOD path` without the query, a status and a body. The first that fits answers, and is used up when another
/// one for the same request follows.
type Answer = (String, u16, String);

pub struct Canned {
    pub url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Canned {
    /// A hub with one InfraEnv, one cluster and three hosts, two of them with the same name.
    pub fn start(extra: &[(&str, u16, &str)]) -> Self {
        let mut answers: Vec<Answer> = extra
            .iter()
            .map(|(request, status, body)| (expand(request), *status, expand(body)))
            .collect();
        answers.extend(
            usual()
                .into_iter()
                .map(|(request, body)| (expand(request), 200, expand(&body))),
        );
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (answers, log) = (Arc::new(Mutex::new(answers)), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, log) = (answers.clone(), log.clone());
                std::thread::spawn(move || serve(stream, &answers, &log));
            }
        });
        Self { url, asked }
    }

    /// `METHOD path?query body`, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn expand(text: &str) -> String {
    let text = text
        .replace("{v1}", "/api/muster/v1")
        .replace("{v2}", "/api/assisted-install/v2");
    let text = text.replace("{env}", INFRA_ENV).replace("{cluster}", CLUSTER);
    text.replace("{a}", HOST_A)
        .replace("{b}", HOST_B)
        .replace("{c}", HOST_C)
}

fn usual() -> Vec<(&'static str, String)> {
    let summary = |id: &str, name: &str, status: &str| {
        format!(
            r#"{{"id":"{id}","infra_env_id":"{{env}}","name":"{name}","status":"{status}","status_info":"fine",
                "role":"auto-assign","cpus":8,"memory_mib":16384,"disk_gb":120,"revision":1}}"#
        )
    };
    let hosts = [
        summary("{a}", "twin", "known-unbound"),
        summary("{b}", "twin", "discovering-unbound"),
        summary("{c}", "worker-0", "known-unbound"),
    ];
    let demo = cluster("demo");
    let lab = whole(&InfraEnvView::default(), r#"{"id":"{env}","name":"lab"}"#);
    vec![
        ("GET {v1}/hosts", format!(r#"{{"hosts":[{}]}}"#, hosts.join(","))),
        ("GET {v1}/changes", r#"{"changes":[],"next":5}"#.into()),
        (
            "GET {v1}/status",
            r#"{"version":"0","database":"sqlite","hosts":1,"clusters":1,"infra_envs":1,"uptime_seconds":1,"newest_change":5,"workers":[]}"#.into(),
        ),
        ("GET {v2}/clusters", format!("[{demo}]")),
        ("GET {v2}/clusters/{cluster}", demo),
        ("GET {v2}/infra-envs", format!("[{lab}]")),
        ("GET {v2}/infra-envs/{env}", lab),
        ("GET {v2}/infra-envs/{env}/hosts/{c}", host("known-unbound")),
    ]
}

/// `worker-0`, lent to the cluster.
pub fn host(status: &str) -> String {
    let parts = r#"{"id":"{c}","infra_env_id":"{env}","cluster_id":"{cluster}","status_info":"it is"}"#;
    whole(
        &HostView {
            status: status.into(),
            ..HostView::default()
        },
        parts,
    )
}

/// The cluster in a state, with these parts beside.
pub fn cluster_in(status: &str, parts: &str) -> String {
    let plain = ClusterView {
        name: "demo".into(),
        status: status.into(),
        status_info: "it is".into(),
        ..ClusterView::default()
    };
    let with_id = whole(&plain, r#"{"id":"{cluster}"}"#);
    let mut value: serde_json::Value = serde_json::from_str(&with_id).unwrap();
    let parts: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&expand(parts)).unwrap();
    value.as_object_mut().unwrap().extend(parts);
    value.to_string()
}

pub fn cluster(name: &str) -> String {
    let parts = r#"{"id":"{cluster}","status":"insufficient","openshift_version":"4.18.1"}"#;
    whole(
        &ClusterView {
            name: name.into(),
            ..ClusterView::default()
        },
        parts,
    )
}

pub fn error(status: u16, reason: &str) -> String {
    serde_json::to_string(&ErrorBody::new(status, reason)).unwrap()
}

/// What the hub would send, with these parts.
fn whole<T: Serialize>(plain: &T, parts: &str) -> String {
    let mut value = serde_json::to_value(plain).unwrap();
    let parts: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&expand(parts)).unwrap();
    value.as_object_mut().unwrap().extend(parts);
    value.to_string()
}

fn serve(stream: TcpStream, answers: &Mutex<Vec<Answer>>, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    while let Some((request, query, body)) = read(&mut reader) {
        log.lock()
            .unwrap()
            .push(format!("{request}{query} {body}").trim_end().to_owned());
        let (status, body) = answer(&mut answers.lock().unwrap(), &request);
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if writer.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(answers: &mut Vec<Answer>, request: &str) -> (u16, String) {
    let fits: Vec<usize> = (0..answers.len()).filter(|&i| answers[i].0 == request).collect();
    match fits[..] {
        [] => (404, error(404, &format!("no answer for {request}"))),
        [only] => (answers[only].1, answers[only].2.clone()),
        [first, ..] => {
            let (_, status, body) = answers.remove(first);
            (status, body)
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<(String, String, String)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|&read| read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target
        .split_once('?')
        .map_or((target, String::new()), |(path, q)| (path, format!("?{q}")));
    Some((
        format!("{method} {path}"),
        query,
        String::from_utf8_lossy(&body).into_owned(),
    ))
}
