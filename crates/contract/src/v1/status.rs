//! The state of the hub itself.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// One background worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct WorkerStatus {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub name: Cow<'static, str>,
    pub runs: u64,
    pub failures: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub last_run_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// A row of the database that the hub cannot read. The hub leaves it as it is, and serves everybody else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct SetAside {
    /// `host`, `cluster`, `infra-env`, `report`, `order`, `check-in` or `tombstone`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Cow<'static, str>,
    /// Its key in the table; for a host and what belongs to it, InfraEnv and host.
    pub id: String,
    /// Why the hub cannot read it, without anything of its content.
    pub reason: String,
}

/// The certificate of the hub's own listener.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct TlsStatus {
    /// SHA-256 of the certificate that is shown now.
    pub fingerprint: String,
    /// The names and addresses it is for.
    pub names: Vec<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: Timestamp,
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub loaded_at: Timestamp,
    /// The hub's own authority signed it (`--tls-self-signed`).
    pub self_signed: bool,
    /// How many new certificates the hub took since it started.
    pub reloads: u64,
    /// Why the certificate that is in the files now is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The state of the hub.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HubStatus {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub version: Cow<'static, str>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub database: Cow<'static, str>,
    pub hosts: i64,
    pub clusters: i64,
    pub infra_envs: i64,
    pub uptime_seconds: u64,
    /// Why the hub cannot write, when the last write failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// Where the feed of changes ends now: follow it from here to see only what is new.
    #[serde(default)]
    pub newest_change: i64,
    /// How many rows of the database the hub cannot read.
    #[serde(default)]
    pub set_aside_count: usize,
    /// The first hundred of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<SetAside>,
    /// Absent where the hub's own listener speaks plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsStatus>,
    pub workers: Vec<WorkerStatus>,
}

/// What `/health` says, and `/ready` when it refuses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Health {
    /// `ok` or `failing`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub status: Cow<'static, str>,
    /// Empty when all is well.
    pub troubles: Vec<HealthTrouble>,
    /// How many rows of the database the hub cannot read. That fails nothing: they are set aside.
    #[serde(default)]
    pub set_aside_count: usize,
    /// The first hundred of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<SetAside>,
}

/// One thing that does not work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct HealthTrouble {
    /// `writes`, `reads`, or the name of a worker.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub what: Cow<'static, str>,
    pub cause: String,
    pub next_action: String,
}
