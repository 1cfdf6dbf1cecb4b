//! Where payloads come from: the hub itself, or a hub far away.

use crate::overlay::Payload;
use futures_util::future::BoxFuture;
use std::time::SystemTime;

/// What the client showed to be let in; the source judges it.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub enum Proof {
    #[default]
    None,
    ApiKey(String),
    ImageToken(String),
    /// The whole header.
    Authorization(String),
}

impl std::fmt::Debug for Proof {
    /// Secrets stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Proof::None => "None",
            Proof::ApiKey(_) => "ApiKey(…)",
            Proof::ImageToken(_) => "ImageToken(…)",
            Proof::Authorization(_) => "Authorization(…)",
        })
    }
}

/// Full images carry network settings in the configuration, the others beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    Full,
    Minimal,
}

/// A question for one InfraEnv.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// The InfraEnv's id, as in the URL.
    pub id: String,
    pub form: Form,
    pub proof: Proof,
}

/// What a short URL stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub id: String,
    pub version: String,
    pub architecture: String,
    pub form: Form,
    pub proof: Proof,
}

/// Why there is no payload; `status` and `text` go to the client as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct SourceError {
    pub status: u16,
    pub text: String,
}

impl SourceError {
    pub fn missing(text: impl Into<String>) -> SourceError {
        SourceError {
            status: 404,
            text: text.into(),
        }
    }
}

pub trait PayloadSource: Send + Sync + 'static {
    /// May this client have it, and when was it last changed? Cheap: asked for every request.
    fn changed<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<SystemTime, SourceError>>;

    /// The payload, and the time it was changed. Asked once for each change.
    fn payload<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<(Payload, SystemTime), SourceError>>;

    /// What `/i/NAME.iso` stands for.
    fn short<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Target, SourceError>> {
        Box::pin(async move { Err(SourceError::missing(format!("there is no image {name}"))) })
    }

    /// The script of `/i/NAME.ipxe`.
    fn script<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async move { Err(SourceError::missing(format!("there is no script {name}"))) })
    }
}
