//! Flags of everything that listens: to which names it answers, and how many may wait at it.

use muster_hub::http::crowd::PEER_WAITING;

#[derive(Debug, clap::Args)]
pub struct DoorArgs {
    /// Another host name under which clients reach the hub, such as that of a proxy; *.example.com means all in it
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub allowed_host: Vec<String>,
    /// Connections of one address that may wait for a request; older ones are closed first
    #[arg(long, value_name = "N", default_value_t = PEER_WAITING)]
    pub peer_connections: usize,
}
