//! What names stand for, as this machine sees it.

use super::{Context, json};
use crate::dns::{Lookup, Resolver};
use muster_contract::v2::agent::args::DomainResolutionArgs;
use muster_contract::v2::agent::replies::{DomainResolution, DomainResolutionReply};
use std::net::{IpAddr, ToSocketAddrs};

pub fn resolve(context: &Context, args: &DomainResolutionArgs) -> anyhow::Result<String> {
    let resolver = Resolver::new(&context.machine.root);
    let resolutions = args
        .domains
        .iter()
        .map(|domain| {
            let found = lookup(&resolver, &domain.domain_name);
            DomainResolution {
                domain_name: domain.domain_name.clone(),
                ipv4_addresses: sorted(&found.v4),
                ipv6_addresses: sorted(&found.v6),
                cnames: found.aliases,
            }
        })
        .collect();
    json(&DomainResolutionReply { resolutions })
}

/// Servers turn their lists round; the same addresses should give the same answer.
fn sorted<T: Ord + ToString + Clone>(addresses: &[T]) -> Vec<String> {
    let mut addresses = addresses.to_vec();
    addresses.sort();
    addresses.dedup();
    addresses.iter().map(ToString::to_string).collect()
}

/// Where names come from somewhere else than hosts file and name servers, the system knows.
fn lookup(resolver: &Resolver, name: &str) -> Lookup {
    let mut found = resolver.lookup(name);
    if found.is_empty() {
        for address in (name, 0).to_socket_addrs().into_iter().flatten() {
            match address.ip() {
                IpAddr::V4(ip) => found.v4.push(ip),
                IpAddr::V6(ip) => found.v6.push(ip),
            }
        }
    }
    found
}
