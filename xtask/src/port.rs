//! Ports of loopback for servers that must be told theirs before they start.

use std::net::TcpListener;

use anyhow::{Context, Result};

/// A port nobody uses right now.
pub fn free() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")
        .context("no free port on loopback")?
        .local_addr()?
        .port())
}
