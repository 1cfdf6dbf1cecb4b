//! What the API server itself allows in this minute: objects as large as Agents, made and changed by nobody's rules.

use std::io::Write;
use std::net::SocketAddr;

use anyhow::Result;
use serde_json::json;

use crate::bench::fleet::Fleet;
use crate::bench::load::{self, Amount, Work};

/// Enough for seconds.
const OBJECTS: u32 = 2_000;
/// As many as an operator has in flight.
const WRITERS: usize = 16;
/// Whoever is measured does not watch it.
const PATH: &str = "/api/v1/namespaces/default/configmaps";

/// An object for each host, with its inventory: made, and replaced, as an Agent is made and gets its status.
struct Objects<'a>(&'a Fleet);

impl Work for Objects<'_> {
    fn request(&self, item: u64, step: usize, out: &mut Vec<u8>) -> bool {
        let name = format!("bare-{item}");
        let (method, path) = match step {
            0 => ("POST", PATH.to_owned()),
            1 => ("PUT", format!("{PATH}/{name}")),
            _ => return false,
        };
        let host = (item % u64::from(self.0.hosts)) as u32;
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
            "data": { "inventory": self.0.inventory(host), "step": step.to_string() } });
        let body = object.to_string();
        // Writing to memory cannot fail.
        let _ = write!(
            out,
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        true
    }
}

/// How many a second.
pub fn objects_per_second(server: SocketAddr, fleet: &Fleet) -> Result<f64> {
    eprintln!("  bare objects …");
    let amount = Amount::Items(OBJECTS.into());
    let done = load::run(server, WRITERS, amount, &Objects(fleet))?.clean("bare objects")?;
    Ok(done.per_second())
}
