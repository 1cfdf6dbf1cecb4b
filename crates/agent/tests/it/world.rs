//! A scripted hub, a machine in a folder, and an agent that connects the two.

use clap::Parser;
use muster_agent::clock::Manual;
use muster_agent::runner::Agent;
use muster_agent::settings::Settings;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use uuid::Uuid;

pub const INFRA_ENV: Uuid = Uuid::from_u128(7);
pub const HOST: Uuid = Uuid::from_u128(8);
pub const CLUSTER: Uuid = Uuid::from_u128(9);
/// Nothing here takes a second unless the machine is very busy.
const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub fn is(&self, method: &str, end: &str) -> bool {
        self.method == method && self.path.split('?').next().unwrap().ends_with(end)
    }

    pub fn is_reply(&self) -> bool {
        self.is("POST", "/instructions")
    }

    pub fn is_register(&self) -> bool {
        self.is("POST", "/hosts")
    }
}

#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The connection ends after so many bytes of the body.
    pub cut: Option<usize>,
}

pub fn status(status: u16) -> Answer {
    Answer {
        status,
        ..Answer::default()
    }
}

pub fn reply(value: Value) -> Answer {
    Answer {
        status: 200,
        body: value.to_string().into_bytes(),
        ..Answer::default()
    }
}

#[derive(Default)]
pub struct Seen {
    requests: Mutex<Vec<Request>>,
    changed: Condvar,
}

impl Seen {
    pub fn all(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until enough was heard.
    pub fn wait(&self, is_enough: impl Fn(&[Request]) -> bool) {
        let guard = self.requests.lock().unwrap();
        let (_guard, timeout) = self
            .changed
            .wait_timeout_while(guard, DEADLINE, |requests| !is_enough(requests))
            .unwrap();
        assert!(!timeout.timed_out(), "waited too long");
    }
}

pub type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// Serves until the test ends.
pub fn serve(seen: Arc<Seen>, handler: Arc<Handler>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (seen, handler) = (seen.clone(), handler.clone());
            std::thread::spawn(move || connection(stream, &seen, &*handler));
        }
    });
    url
}

/// The authority that signed the certificate of `serve_tls`.
pub const AUTHORITY: &str = include_str!("../tls/ca.pem");

/// The same, with a certificate that only who trusts `AUTHORITY` accepts.
pub fn serve_tls(seen: Arc<Seen>, handler: Arc<Handler>) -> String {
    use rustls::pki_types::pem::PemObject;
    let chain =
        rustls::pki_types::CertificateDer::from_pem_slice(include_bytes!("../tls/server.pem")).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(include_bytes!("../tls/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (seen, handler) = (seen.clone(), handler.clone());
            let session = rustls::ServerConnection::new(config.clone()).unwrap();
            let stream = rustls::StreamOwned::new(session, stream);
            std::thread::spawn(move || connection(stream, &seen, &*handler));
        }
    });
    url
}

/// It ends, and the stream with it, when an answer is to be cut.
fn connection(stream: impl Read + Write, seen: &Seen, handler: &Handler) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        seen.requests.lock().unwrap().push(request.clone());
        seen.changed.notify_all();
        let answer = handler(&request);
        if write_answer(reader.get_mut(), &request, &answer).is_none() {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_ascii_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        path,
        headers,
        body: Vec::new(),
    };
    let length = request
        .header("content-length")
        .map_or(0, |text| text.parse().unwrap());
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn write_answer(writer: &mut impl Write, request: &Request, answer: &Answer) -> Option<()> {
    let Answer {
        status,
        headers,
        body,
        cut,
    } = answer;
    let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let body = if request.method == "HEAD" {
        &[][..]
    } else {
        &body[..cut.unwrap_or(body.len())]
    };
    writer.write_all(head.as_bytes()).ok()?;
    writer.write_all(body).ok()?;
    cut.is_none().then_some(())
}

/// Whether enough was heard.
pub type Condition = fn(&[Request]) -> bool;

/// What the hub says, in turn.
#[derive(Default)]
pub struct Script {
    pub registers: Mutex<VecDeque<Answer>>,
    polls: Mutex<VecDeque<Turn>>,
    /// The machine is not told to reboot before this is so.
    pub until: Mutex<Option<Condition>>,
}

enum Turn {
    Say(Answer),
    /// Not before so many replies have come in all.
    After(usize, Answer),
}

impl Script {
    pub fn say(&self, answer: Answer) -> &Self {
        self.polls.lock().unwrap().push_back(Turn::Say(answer));
        self
    }

    /// What was not said yet is not said any more.
    pub fn forget(&self) {
        self.polls.lock().unwrap().clear();
    }

    pub fn after(&self, replies: usize, answer: Answer) -> &Self {
        self.polls.lock().unwrap().push_back(Turn::After(replies, answer));
        self
    }

    /// When all is said, the machine is told to reboot, which ends the test.
    pub fn answer(&self, seen: &Seen, request: &Request) -> Answer {
        if request.is_register() {
            return self
                .registers
                .lock()
                .unwrap()
                .pop_front()
                .unwrap_or_else(registration);
        }
        if request.is("GET", "/instructions") {
            let turn = self.polls.lock().unwrap().pop_front();
            return match turn {
                Some(Turn::Say(answer)) => answer,
                Some(Turn::After(count, answer)) => {
                    seen.wait(|requests| {
                        requests.iter().filter(|request| request.is_reply()).count() >= count
                    });
                    answer
                }
                None => {
                    let until = *self.until.lock().unwrap();
                    if let Some(until) = until {
                        seen.wait(until);
                    }
                    exit(&[("reboot-for-reclaim", json!({"host_fs_mount_dir": "/"}))])
                }
            };
        }
        status(if request.is_reply() { 204 } else { 200 })
    }
}

pub fn registration() -> Answer {
    let args = json!({"agent_version": "agent:1", "host_id": HOST, "infra_env_id": INFRA_ENV});
    Answer {
        status: 201,
        ..reply(json!({"id": HOST, "next_step_runner_command": {"args": [args.to_string()]}}))
    }
}

fn say(action: &str, seconds: u64, steps: &[(&str, Value)]) -> Answer {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(kind, arg)| json!({"step_type": kind, "step_id": format!("{kind}-1"), "args": args(arg)}))
        .collect();
    reply(json!({"next_instruction_seconds": seconds, "post_step_action": action, "instructions": steps}))
}

/// An array is the list of arguments, anything else is the one argument.
fn args(arg: &Value) -> Vec<String> {
    match arg {
        Value::Array(args) => args.iter().map(|arg| arg.as_str().unwrap().to_owned()).collect(),
        other => vec![other.to_string()],
    }
}

pub fn steps(steps: &[(&str, Value)]) -> Answer {
    say("continue", 60, steps)
}

pub fn exit(steps: &[(&str, Value)]) -> Answer {
    say("exit", 0, steps)
}

pub struct World {
    pub seen: Arc<Seen>,
    pub script: Arc<Script>,
    pub root: tempfile::TempDir,
    pub clock: Arc<Manual>,
    pub url: String,
    flags: Vec<String>,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| None)
    }

    /// `handler` comes first; what it leaves open the script answers.
    pub fn with(handler: impl Fn(&Request) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let (seen, script): (Arc<Seen>, Arc<Script>) = Default::default();
        let (own_seen, own_script) = (seen.clone(), script.clone());
        let answer = move |request: &Request| {
            handler(request).unwrap_or_else(|| own_script.answer(&own_seen, request))
        };
        let url = serve(seen.clone(), Arc::new(answer));
        Self {
            seen,
            script,
            root: tempfile::tempdir().unwrap(),
            clock: Arc::default(),
            url,
            flags: Vec::new(),
        }
    }

    pub fn flag(mut self, text: &str) -> Self {
        self.flags.push(text.to_owned());
        self
    }

    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.root.path().join(path)
    }

    pub fn settings(&self) -> Settings {
        let root = self.root.path().to_str().unwrap().to_owned();
        let ids = [INFRA_ENV.to_string(), HOST.to_string()];
        let mut flags = vec![
            "agent",
            "--url",
            &self.url,
            "--infra-env-id",
            &ids[0],
            "--host-id",
            &ids[1],
            "--root",
            &root,
        ];
        flags.extend(self.flags.iter().map(String::as_str));
        let mut settings = Settings::try_parse_from(flags).unwrap();
        settings.token = "secret-token".into();
        settings.complete().unwrap()
    }

    /// Runs until the machine would reboot.
    pub fn run(&self) {
        Agent::new(self.settings(), self.clock.clone()).unwrap().run();
    }

    pub fn replies(&self) -> Vec<Value> {
        self.seen
            .all()
            .iter()
            .filter(|request| request.is_reply())
            .map(Request::json)
            .collect()
    }

    pub fn count(&self, is_it: impl Fn(&Request) -> bool) -> usize {
        self.seen.all().iter().filter(|request| is_it(request)).count()
    }
}

pub fn exists(path: &Path) -> bool {
    path.exists()
}
