//! What travels between the hub and its clients: the types of REST v2 and of Muster's own API, and a client for both.

pub mod body;
pub mod client;
pub mod ids;
pub mod rules;
pub mod secret;
pub mod time;
pub mod v1;
pub mod v2;

pub use client::{ClientError, HubClient};
pub use secret::Secret;
pub use time::{DateMs, GoTime};
