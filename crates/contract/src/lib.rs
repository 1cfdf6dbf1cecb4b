//! What travels between the hub and its clients: the types of REST v2 and of Muster's own API, and, as the feature
//! `client`, an HTTP client for both. The feature `openapi` describes the types for the API document, `tls` says whose
//! certificates clients believe.

pub mod body;
#[cfg(feature = "client")]
pub mod client;
mod error;
pub mod ids;
pub mod rules;
pub mod secret;
pub mod time;
#[cfg(feature = "tls")]
pub mod tls;
pub mod v1;
pub mod v2;

#[cfg(feature = "client")]
pub use client::HubClient;
pub use error::ClientError;
pub use secret::Secret;
pub use time::{DateMs, GoTime};
#[cfg(feature = "tls")]
pub use tls::Trust;
