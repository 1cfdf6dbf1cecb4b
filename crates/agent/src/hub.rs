//! The calls to the hub: each with its headers, a few retries of what may pass, and errors that can be told apart.

use crate::clock::{Clock, chance};
use crate::http::Http;
use muster_contract::ClientError;
use muster_contract::secret::Secret;
use muster_contract::tls::distrust;
use muster_contract::v2::BASE;
use muster_contract::v2::host::{HostView, RegisterHost};
use muster_contract::v2::install::{LogsState, ReportHostProgress, ReportLogsProgress};
use muster_contract::v2::step::PostStepReply;
use muster_vocabulary::Stage;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::{Method, Request};
use uuid::Uuid;

/// Inside one call: so many repetitions of what may pass, with such pauses in between.
const RETRIES: u32 = 3;
const PAUSE_SECONDS: (f64, f64) = (2.0, 10.0);
/// No answer of a hub is larger; an ignition with everything in it is a few megabytes.
const LARGEST_ANSWER: u64 = 256 << 20;

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("{status}: {reason}")]
    Refused { status: u16, reason: String },
    #[error("cannot reach the hub: {0}")]
    Lost(String),
    #[error("cannot trust the hub: {0}; name the authority that signed it with --cacert")]
    Untrusted(String),
    #[error("cannot read the hub's answer: {0}")]
    Unreadable(String),
}

impl CallError {
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Lost(_) | Self::Untrusted(_) | Self::Unreadable(_) => None,
        }
    }

    /// Whether the same call may work in a few seconds.
    fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 503 | 504),
            // A hub gets a new certificate, and clocks are set.
            Self::Lost(_) | Self::Untrusted(_) => true,
            Self::Unreadable(_) => false,
        }
    }
}

pub type Result<T> = std::result::Result<T, CallError>;

/// Whose calls these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    pub infra_env: Uuid,
    pub host: Uuid,
}

#[derive(Debug, Clone)]
pub struct Hub {
    pub url: String,
    pub token: Secret,
    pub http: Http,
    pub clock: Arc<dyn Clock>,
}

struct Call<'a> {
    method: Method,
    path: &'a str,
    version: Option<&'a str>,
    content_type: &'a str,
    body: Vec<u8>,
}

impl<'a> Call<'a> {
    fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            version: None,
            content_type: "application/json",
            body: Vec::new(),
        }
    }

    fn send(method: Method, path: &'a str, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("wire types always serialise");
        Self {
            method,
            body,
            ..Self::get(path)
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| CallError::Unreadable(error.to_string()))
}

impl Hub {
    pub fn register(&self, infra_env: Uuid, body: &RegisterHost) -> Result<Vec<u8>> {
        let version = body.discovery_agent_version.clone().unwrap_or_default();
        let path = format!("/infra-envs/{infra_env}/hosts");
        self.call(Call {
            version: Some(&version),
            ..Call::send(Method::POST, &path, body)
        })
    }

    pub fn instructions(&self, ids: Ids, version: &str) -> Result<Vec<u8>> {
        let now = self.clock.now().as_secs();
        let path = format!("{}/instructions?timestamp={now}", host_path(ids));
        self.call(Call {
            version: Some(version),
            ..Call::get(&path)
        })
    }

    pub fn reply(&self, ids: Ids, body: &PostStepReply) -> Result<()> {
        let path = format!("{}/instructions", host_path(ids));
        self.call(Call::send(Method::POST, &path, body)).map(drop)
    }

    pub fn progress(&self, ids: Ids, stage: Stage, info: Option<String>) -> Result<()> {
        let (path, body) = progress(ids, stage, info);
        self.call(Call::send(Method::PUT, &path, &body)).map(drop)
    }

    /// The same, but tried only once: for what is soon outdated, nobody should wait.
    pub fn progress_now(&self, ids: Ids, stage: Stage, info: Option<String>) -> Result<()> {
        let (path, body) = progress(ids, stage, info);
        let request_id = Uuid::new_v4().to_string();
        self.once(&Call::send(Method::PUT, &path, &body), &request_id)
            .map(drop)
    }

    pub fn host(&self, ids: Ids) -> Result<HostView> {
        read(&self.call(Call::get(&host_path(ids)))?)
    }

    pub fn cluster(&self, id: Uuid) -> Result<Vec<u8>> {
        self.call(Call::get(&format!("/clusters/{id}")))
    }

    pub fn cluster_hosts(&self, id: Uuid) -> Result<Vec<u8>> {
        self.call(Call::get(&format!("/clusters/{id}/hosts")))
    }

    pub fn cluster_file(&self, id: Uuid, name: &str) -> Result<Vec<u8>> {
        self.call(Call::get(&format!(
            "/clusters/{id}/downloads/files?file_name={name}"
        )))
    }

    /// What the host's system is configured with. The path has the singular of its first word, as in the reference.
    pub fn host_ignition(&self, ids: Ids) -> Result<Vec<u8>> {
        self.call(Call::get(&format!(
            "/infra-env/{}/hosts/{}/downloads/ignition",
            ids.infra_env, ids.host
        )))
    }

    pub fn logs_progress(&self, ids: Ids, logs_state: LogsState) -> Result<()> {
        let path = format!("{}/logs-progress", host_path(ids));
        self.call(Call::send(Method::PUT, &path, &ReportLogsProgress { logs_state }))
            .map(drop)
    }

    pub fn upload_logs(&self, ids: Ids, cluster: Uuid, archive: &[u8]) -> Result<()> {
        let boundary = Uuid::new_v4().simple().to_string();
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"logs.tar.gz\"\r\n\
             Content-Type: application/gzip\r\n\r\n"
        );
        let tail = format!("\r\n--{boundary}--\r\n");
        let path = format!(
            "/clusters/{cluster}/logs?logs_type=host&host_id={}&infra_env_id={}",
            ids.host, ids.infra_env
        );
        let call = Call {
            method: Method::POST,
            content_type: &format!("multipart/form-data; boundary={boundary}"),
            body: [head.as_bytes(), archive, tail.as_bytes()].concat(),
            ..Call::get(&path)
        };
        self.call(call).map(drop)
    }

    fn call(&self, call: Call<'_>) -> Result<Vec<u8>> {
        let request_id = Uuid::new_v4().to_string();
        let mut left = RETRIES;
        loop {
            match self.once(&call, &request_id) {
                Err(error) if error.may_pass() && left > 0 => {
                    left -= 1;
                    let (least, most) = PAUSE_SECONDS;
                    self.clock
                        .sleep(Duration::from_secs_f64(least + (most - least) * chance()));
                }
                other => return other,
            }
        }
    }

    fn once(&self, call: &Call<'_>, request_id: &str) -> Result<Vec<u8>> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{BASE}{}", self.url, call.path))
            .header("X-Request-ID", request_id);
        if !self.token.0.is_empty() {
            request = request.header("X-Secret-Key", &self.token.0);
        }
        if let Some(version) = call.version {
            request = request.header("discovery_agent_version", version);
        }
        let invalid = |error: ureq::http::Error| CallError::Lost(error.to_string());
        let answer = if call.method == Method::GET {
            self.http.run(request.body(()).map_err(invalid)?)
        } else {
            let request = request.header("Content-Type", call.content_type);
            self.http
                .run(request.body(call.body.as_slice()).map_err(invalid)?)
        };
        let mut answer = answer.map_err(lost)?;
        let body = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_ANSWER)
            .read_to_vec()
            .map_err(lost)?;
        match answer.status().as_u16() {
            200..=299 => Ok(body),
            status => Err(CallError::Refused {
                status,
                reason: ClientError::refused(status, &body).to_string(),
            }),
        }
    }
}

fn lost(error: ureq::Error) -> CallError {
    let why = match &error {
        ureq::Error::Io(cause) => distrust(cause),
        ureq::Error::Rustls(cause) => distrust(cause),
        // Not our enum, and it grows.
        _ => None,
    };
    why.map_or_else(|| CallError::Lost(error.to_string()), CallError::Untrusted)
}

fn progress(ids: Ids, stage: Stage, info: Option<String>) -> (String, ReportHostProgress) {
    let body = ReportHostProgress {
        current_stage: Some(stage),
        progress_info: info,
    };
    (format!("{}/progress", host_path(ids)), body)
}

fn host_path(ids: Ids) -> String {
    format!("/infra-envs/{}/hosts/{}", ids.infra_env, ids.host)
}
