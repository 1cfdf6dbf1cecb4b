//! Ports of loopback for servers that must be told theirs before they start.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};

/// Systems give ports from 32768 on to whoever asks for any; one of those could be somebody else's before the server
/// listens on it.
const FIRST: u16 = 10_000;
const PORTS: u32 = 10_000;

/// A port nobody uses right now, and that is given out once.
pub fn free() -> Result<u16> {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // Other runs at the same time begin elsewhere.
    let start = std::process::id().wrapping_mul(97);
    let next = || start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % PORTS;
    let mut ports = (0..PORTS)
        .filter_map(|_| u16::try_from(next()).ok())
        .map(|next| FIRST + next);
    ports
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .context("no free port on loopback")
}
