//! Judges what people send: one file per matter, pure functions that create and update both use.
//!
//! Each function takes plain text or plain values and answers with the parsed value or with an
//! [`Invalid`] that names the field, what is wrong and how to put it right.

pub mod address;
pub mod bounds;
pub mod cluster;
pub mod control_plane;
pub mod disk;
pub mod error;
pub mod fencing;
pub mod ignition;
pub mod ignition_endpoint;
pub mod image;
pub mod install_config;
pub mod installer_args;
pub mod kernel_arguments;
pub mod manifest;
pub mod name;
pub mod network;
pub mod node_label;
pub mod ntp;
pub mod operator;
pub mod platform;
pub mod proxy;
pub mod pull_secret;
pub mod schema;
pub mod ssh_key;
pub mod static_network;
pub mod trust_bundle;
pub mod vip;

pub use error::{Checked, Invalid, Shape};

#[cfg(test)]
mod tests;
