//! Payloads from a hub far away, over its REST API: for an image service that stands alone.

use crate::overlay::Payload;
use crate::source::{Ask, Form, PayloadSource, Proof, SourceError, Target};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use ureq::Agent;
use ureq::http::StatusCode;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

const BASE: &str = "/api/assisted-install/v2/infra-envs";
/// Configurations are some hundred kilobytes; more is not one.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Cheap to clone.
#[derive(Clone)]
pub struct RemoteHub {
    url: String,
    agent: Agent,
}

/// What we need of an InfraEnv.
#[derive(Deserialize)]
struct Seen {
    updated_at: jiff::Timestamp,
    openshift_version: Option<String>,
    cpu_architecture: Option<String>,
    #[serde(rename = "type")]
    image_type: Option<String>,
    /// JSON in a string.
    kernel_arguments: Option<String>,
}

#[derive(Deserialize)]
struct Argument {
    operation: String,
    value: String,
}

impl RemoteHub {
    pub fn new(url: &str) -> RemoteHub {
        RemoteHub::with(url, RootCerts::WebPki)
    }

    /// Believes hubs whose certificates these authorities signed; each is the DER of its certificate.
    pub fn trusting<'a>(url: &str, authorities: impl IntoIterator<Item = &'a [u8]>) -> RemoteHub {
        let certificates = authorities
            .into_iter()
            .map(|der| Certificate::from_der(der).to_owned());
        RemoteHub::with(url, RootCerts::Specific(Arc::new(certificates.collect())))
    }

    fn with(url: &str, roots: RootCerts) -> RemoteHub {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .build()
            .new_agent();
        RemoteHub {
            url: url.trim_end_matches('/').to_owned(),
            agent,
        }
    }

    /// `None` when the hub has nothing to send (204).
    fn get(&self, path: &str, proof: &Proof) -> Result<Option<Vec<u8>>, SourceError> {
        let mut request = self.agent.get(format!("{}{BASE}/{path}", self.url));
        request = match proof {
            Proof::None => request,
            Proof::ApiKey(key) => request.query("api_key", key),
            Proof::ImageToken(token) => request.header("Image-Token", token),
            Proof::Authorization(header) => request.header("Authorization", header),
        };
        let unreachable = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "cannot ask the hub for an image's configuration");
            SourceError {
                status: 500,
                text: "cannot reach the hub".to_owned(),
            }
        };
        let mut response = request.call().map_err(|error| unreachable(&error))?;
        let status = response.status();
        let read = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec();
        match status {
            StatusCode::OK => read.map(Some).map_err(|error| unreachable(&error)),
            StatusCode::NO_CONTENT => Ok(None),
            // The hub's own words are for those who may read its API.
            other => Err(SourceError {
                status: other.as_u16(),
                text: format!("the hub refuses this image ({other})"),
            }),
        }
    }

    fn seen(&self, id: &str, proof: &Proof) -> Result<Seen, SourceError> {
        let body = self.get(&segment(id)?, proof)?.unwrap_or_default();
        serde_json::from_slice(&body).map_err(|error| {
            tracing::warn!(%error, "the hub describes an InfraEnv in a way we do not know");
            SourceError {
                status: 502,
                text: "cannot understand the hub's answer".to_owned(),
            }
        })
    }

    fn made(&self, ask: &Ask) -> Result<(Payload, SystemTime), SourceError> {
        let seen = self.seen(&ask.id, &ask.proof)?;
        let id = segment(&ask.id)?;
        let kind = match ask.form {
            Form::Full => "full-iso",
            Form::Minimal => "minimal-iso",
        };
        let file = format!("{id}/downloads/files?file_name=discovery.ign&discovery_iso_type={kind}");
        let ignition = self.get(&file, &ask.proof)?.unwrap_or_default();
        let ramdisk = match ask.form {
            Form::Full => None,
            Form::Minimal => self.get(&format!("{id}/downloads/minimal-initrd"), &ask.proof)?,
        };
        let arguments: Vec<Argument> = seen
            .kernel_arguments
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let payload = Payload {
            ignition: ignition.into(),
            ramdisk: ramdisk.map(Into::into),
            kernel_arguments: arguments
                .into_iter()
                .filter(|argument| argument.operation == "append")
                .map(|argument| argument.value)
                .collect(),
        };
        Ok((payload, seen.updated_at.into()))
    }

    fn target(&self, name: &str) -> Result<Target, SourceError> {
        let seen = self.seen(name, &Proof::None)?;
        Ok(Target {
            id: name.to_owned(),
            version: seen.openshift_version.unwrap_or_default(),
            architecture: seen.cpu_architecture.unwrap_or_else(|| "x86_64".to_owned()),
            form: match seen.image_type.as_deref() {
                Some("minimal-iso") => Form::Minimal,
                _ => Form::Full,
            },
            proof: Proof::None,
        })
    }

    fn boot_script(&self, name: &str) -> Result<String, SourceError> {
        let path = format!("{}/downloads/files?file_name=ipxe-script", segment(name)?);
        let text = self.get(&path, &Proof::None)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Calls wait for the network, so they have threads of their own.
    fn call<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&RemoteHub) -> Result<T, SourceError> + Send + 'static,
    ) -> BoxFuture<'a, Result<T, SourceError>> {
        let hub = self.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&hub)).await;
            done.unwrap_or_else(|error| {
                tracing::error!(%error, "asking the hub failed");
                Err(SourceError {
                    status: 500,
                    text: "could not ask the hub".to_owned(),
                })
            })
        })
    }
}

/// Ids come from URLs: nothing in them may lead to another path.
fn segment(id: &str) -> Result<String, SourceError> {
    let plain = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    plain
        .then(|| id.to_owned())
        .ok_or_else(|| SourceError::missing("there is no such InfraEnv"))
}

impl PayloadSource for RemoteHub {
    fn changed<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<SystemTime, SourceError>> {
        let ask = ask.clone();
        self.call(move |hub| hub.seen(&ask.id, &ask.proof).map(|seen| seen.updated_at.into()))
    }

    fn payload<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<(Payload, SystemTime), SourceError>> {
        let ask = ask.clone();
        self.call(move |hub| hub.made(&ask))
    }

    fn short<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Target, SourceError>> {
        let name = name.to_owned();
        self.call(move |hub| hub.target(&name))
    }

    fn script<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, SourceError>> {
        let name = name.to_owned();
        self.call(move |hub| hub.boot_script(&name))
    }
}
