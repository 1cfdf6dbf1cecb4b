//! Gets addresses for a cluster from a DHCP server, in the name of cards that do not exist.

use super::json;
use crate::init::dhcp;
use crate::probe::arp::parse_mac;
use anyhow::Context as _;
use muster_contract::v2::agent::args::DhcpLeaseArgs;
use muster_contract::v2::agent::replies::DhcpLeaseReply;

pub fn allocate(args: &DhcpLeaseArgs) -> anyhow::Result<String> {
    let (api_vip_address, api_vip_lease) = one(&args.interface, &args.api_vip_mac)?;
    let (ingress_vip_address, ingress_vip_lease) = one(&args.interface, &args.ingress_vip_mac)?;
    json(&DhcpLeaseReply {
        api_vip_address,
        ingress_vip_address,
        api_vip_lease,
        ingress_vip_lease,
    })
}

fn one(interface: &str, mac: &str) -> anyhow::Result<(String, String)> {
    let mac = parse_mac(mac).with_context(|| format!("{mac} is not a MAC"))?;
    let lease = dhcp::obtain(interface, mac)?;
    let text = format!(
        "lease {{\n  interface \"{interface}\";\n  fixed-address {};\n  option subnet-mask {};\n  \
         option dhcp-lease-time {};\n}}\n",
        lease.address, lease.mask, lease.seconds
    );
    Ok((lease.address.to_string(), text))
}
