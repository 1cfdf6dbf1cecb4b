//! An HTTP client of the hub: one method per operation, no retries, errors that say what to do.

mod agent;
mod chosen;
mod cluster;
mod host;
mod infra_env;
mod install;
mod muster;
mod operator;

pub use crate::error::ClientError;
pub use install::Pieces;
pub use muster::Feed;

use crate::body::place;
use crate::tls::Trust;
use crate::{v1, v2};
use reqwest::{Method, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

pub type Result<T> = std::result::Result<T, ClientError>;

/// A hub at a URL. Cheap to clone.
#[derive(Debug, Clone)]
pub struct HubClient {
    base: String,
    trust: Trust,
    http: reqwest::Client,
}

/// How long a hub may say nothing in the middle of a request; twice as long as it waits for news of its feed. A
/// connection that died without a word would be waited for without end.
const SILENCE: Duration = Duration::from_secs(60);

/// No body, no query.
const NOTHING: Option<&()> = None;

impl HubClient {
    /// `base` is the hub's own URL, such as `http://127.0.0.1:8090`. With https, those are believed that the system trusts.
    pub fn new(base: &str) -> Result<Self> {
        Self::with_silence(base, SILENCE)
    }

    /// The same, believing others.
    pub fn trusting(base: &str, trust: &Trust) -> Result<Self> {
        spoken(base)?;
        Self::on(base, trust.clone(), SILENCE)
    }

    /// Gives a request up when the hub says nothing for that long.
    pub fn with_silence(base: &str, silence: Duration) -> Result<Self> {
        // Reading what the system trusts takes a while, and http needs none of it.
        let trust = match spoken(base)?.scheme() {
            "https" => Trust::system(),
            _ => Trust::default(),
        };
        Self::on(base, trust, silence)
    }

    fn on(base: &str, trust: Trust, silence: Duration) -> Result<Self> {
        Ok(Self {
            base: base.trim_end_matches('/').to_owned(),
            http: http(&trust, silence)?,
            trust,
        })
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// For others that speak with the same hub.
    pub fn trusts(&self) -> &Trust {
        &self.trust
    }

    async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T> {
        read(self.send(Method::GET, path, NOTHING, NOTHING).await?).await
    }

    async fn find<T: DeserializeOwned>(&self, path: String, query: &impl Serialize) -> Result<T> {
        read(self.send(Method::GET, path, Some(query), NOTHING).await?).await
    }

    async fn post<T: DeserializeOwned>(&self, path: String, body: &impl Serialize) -> Result<T> {
        read(self.send(Method::POST, path, NOTHING, Some(body)).await?).await
    }

    async fn patch<T: DeserializeOwned>(&self, path: String, body: &impl Serialize) -> Result<T> {
        read(self.send(Method::PATCH, path, NOTHING, Some(body)).await?).await
    }

    /// For verbs that take no body.
    async fn act<T: DeserializeOwned>(&self, path: String) -> Result<T> {
        read(self.send(Method::POST, path, NOTHING, NOTHING).await?).await
    }

    /// For requests whose answer has no body.
    async fn tell(&self, method: Method, path: String, body: Option<&impl Serialize>) -> Result<()> {
        self.send(method, path, NOTHING, body).await.map(drop)
    }

    async fn delete(&self, path: String) -> Result<()> {
        self.tell(Method::DELETE, path, NOTHING).await
    }

    async fn remove<T: DeserializeOwned>(&self, path: String, query: &impl Serialize) -> Result<T> {
        read(self.send(Method::DELETE, path, Some(query), NOTHING).await?).await
    }

    async fn download(&self, path: String, query: &impl Serialize) -> Result<Vec<u8>> {
        let response = self.send(Method::GET, path, Some(query), NOTHING).await?;
        Ok(response.bytes().await.map_err(ClientError::lost)?.to_vec())
    }

    async fn send(
        &self,
        method: Method,
        path: String,
        query: Option<&impl Serialize>,
        body: Option<&impl Serialize>,
    ) -> Result<Response> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(query) = query {
            request = request.query(query);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        self.answered(request).await
    }

    async fn answered(&self, request: reqwest::RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(ClientError::lost)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.unwrap_or_default();
        Err(ClientError::refused(status.as_u16(), &body))
    }
}

/// For requests that [`HubClient`] has no method for.
pub fn http(trust: &Trust, silence: Duration) -> Result<reqwest::Client> {
    reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .read_timeout(silence)
        .tls_backend_preconfigured(trust.config())
        .build()
        .map_err(|error| ClientError::BadInput(error.to_string()))
}

fn spoken(base: &str) -> Result<reqwest::Url> {
    let url = reqwest::Url::parse(base)
        .map_err(|error| ClientError::BadInput(format!("`{base}` is not a URL: {error}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(ClientError::BadInput(format!(
            "`{base}`: only http:// and https:// are spoken here"
        ))),
    }
}

async fn read<T: DeserializeOwned>(response: Response) -> Result<T> {
    let body = response.bytes().await.map_err(ClientError::lost)?;
    serde_json::from_slice(&body).map_err(|error| ClientError::Decode(place(&error)))
}

fn v2(path: impl std::fmt::Display) -> String {
    format!("{}{path}", v2::BASE)
}

fn v1(path: impl std::fmt::Display) -> String {
    format!("{}{path}", v1::BASE)
}

fn host_path(infra_env: uuid::Uuid, host: uuid::Uuid, rest: &str) -> String {
    v2(format_args!("/infra-envs/{infra_env}/hosts/{host}{rest}"))
}
