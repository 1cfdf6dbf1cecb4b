//! A DHCP client: it asks for an address, keeps it, and knows nothing more.
//!
//! Answers are asked for as broadcasts, so that a card without an address hears them and no raw packets are needed.

use super::network::set_names;
use crate::clock::{Clock, Real};
use crate::collect::Machine;
use crate::note;
use crate::probe::arp::parse_mac;
use crate::sys::packet::Mac;
use crate::sys::{self, netlink};
use anyhow::{Context as _, ensure};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const NAK: u8 = 6;
/// Ports of switches may forward nothing for half a minute after a link comes up.
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(3);
/// Seconds; servers with tiny leases, and those that stopped answering, are not asked without pause.
const SHORTEST_RENEWAL: u64 = 30;

/// An address for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub address: Ipv4Addr,
    pub mask: Ipv4Addr,
    pub router: Option<Ipv4Addr>,
    pub name_servers: Vec<Ipv4Addr>,
    pub domain: String,
    pub hostname: String,
    pub seconds: u32,
    server: Ipv4Addr,
}

/// One message, as far as we look at it.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    kind: u8,
    lease: Lease,
}

fn message(kind: u8, id: u32, mac: Mac, options: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 236];
    out[..4].copy_from_slice(&[1, 1, 6, 0]);
    out[4..8].copy_from_slice(&id.to_be_bytes());
    // Answer as a broadcast.
    out[10] = 0x80;
    out[28..34].copy_from_slice(&mac);
    out.extend_from_slice(&COOKIE);
    out.extend_from_slice(&[53, 1, kind]);
    out.extend_from_slice(&[61, 7, 1]);
    out.extend_from_slice(&mac);
    out.extend_from_slice(options);
    // Mask, router, name servers, host name, domain, lease time, server.
    out.extend_from_slice(&[55, 7, 1, 3, 6, 12, 15, 51, 54, 255]);
    out
}

fn parse(packet: &[u8], id: u32, mac: Mac) -> Option<Message> {
    let is_ours =
        packet.first()? == &2 && packet.get(4..8)? == id.to_be_bytes() && packet.get(28..34)? == mac;
    if !is_ours || packet.get(236..240)? != COOKIE {
        return None;
    }
    let ip = |bytes: &[u8]| <[u8; 4]>::try_from(bytes.get(..4)?).ok().map(Ipv4Addr::from);
    let mut lease = Lease {
        address: ip(&packet[16..20])?,
        mask: Ipv4Addr::new(255, 255, 255, 0),
        router: None,
        name_servers: Vec::new(),
        domain: String::new(),
        hostname: String::new(),
        seconds: 3600,
        server: ip(&packet[20..24])?,
    };
    let mut kind = 0;
    let mut options = &packet[240..];
    while let [code, rest @ ..] = options {
        if *code == 255 {
            break;
        }
        if *code == 0 {
            options = rest;
            continue;
        }
        let (length, rest) = rest.split_first()?;
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        match code {
            53 => kind = *value.first()?,
            1 => lease.mask = ip(value)?,
            3 => lease.router = ip(value),
            6 => lease.name_servers = value.chunks_exact(4).filter_map(ip).collect(),
            12 => lease.hostname = String::from_utf8_lossy(value).trim_matches('\0').to_owned(),
            15 => lease.domain = String::from_utf8_lossy(value).trim_matches('\0').to_owned(),
            51 => lease.seconds = u32::from_be_bytes(value.try_into().ok()?),
            54 => lease.server = ip(value)?,
            _ => {}
        }
        options = rest;
    }
    Some(Message { kind, lease })
}

/// Asks on one interface in the name of a card.
pub fn obtain(interface: &str, mac: Mac) -> anyhow::Result<Lease> {
    let socket = sys::broadcast_socket(interface, CLIENT_PORT)
        .with_context(|| format!("{interface} cannot be asked for addresses"))?;
    let id = (crate::clock::chance() * f64::from(u32::MAX)) as u32;
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        socket.send_to(
            &message(DISCOVER, id, mac, &[]),
            (Ipv4Addr::BROADCAST, SERVER_PORT),
        )?;
        let Some(offer) = answer(&socket, id, mac, OFFER)? else {
            continue;
        };
        let mut options = vec![50, 4];
        options.extend_from_slice(&offer.address.octets());
        options.extend_from_slice(&[54, 4]);
        options.extend_from_slice(&offer.server.octets());
        socket.send_to(
            &message(REQUEST, id, mac, &options),
            (Ipv4Addr::BROADCAST, SERVER_PORT),
        )?;
        if let Some(lease) = answer(&socket, id, mac, ACK)? {
            return Ok(lease);
        }
    }
    anyhow::bail!("no DHCP server answers on {interface}")
}

fn answer(socket: &UdpSocket, id: u32, mac: Mac, wanted: u8) -> anyhow::Result<Option<Lease>> {
    let until = Instant::now() + RETRY;
    let mut packet = [0; 1500];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        socket.set_read_timeout(Some(left))?;
        let Ok(length) = socket.recv(&mut packet) else {
            return Ok(None);
        };
        match parse(&packet[..length], id, mac) {
            Some(found) if found.kind == wanted => return Ok(Some(found.lease)),
            Some(found) if found.kind == NAK => return Ok(None),
            Some(_) | None => {}
        }
    }
}

/// Gives the address to the interface and tells the machine what came with it.
fn apply(machine: &Machine, interface: &str, lease: &Lease) -> anyhow::Result<()> {
    ensure!(!lease.address.is_unspecified(), "the server gives no address");
    let prefix = prefix(lease.mask);
    netlink::add_address(interface, lease.address.into(), prefix).context("the address cannot be set")?;
    if let Some(router) = lease.router {
        let everything = Ipv4Addr::UNSPECIFIED.into();
        netlink::add_route(interface, everything, 0, Some(router.into()))
            .context("the default route cannot be set")?;
    }
    let servers: Vec<IpAddr> = lease.name_servers.iter().copied().map(IpAddr::V4).collect();
    let search: Vec<String> = lease.domain.split_ascii_whitespace().map(str::to_owned).collect();
    set_names(machine, interface, &servers, &search);
    // The name that a config gives counts more.
    if !lease.hostname.is_empty() && !machine.exists("etc/hostname") {
        sys::set_hostname(&lease.hostname)?;
    }
    note!("{interface} has {}/{prefix}", lease.address);
    Ok(())
}

fn prefix(mask: Ipv4Addr) -> u8 {
    u8::try_from(mask.to_bits().leading_ones()).unwrap_or(32)
}

/// Keeps the interface supplied: asks, and asks again when half of the time is over. It ends when there was never an
/// answer; an address that is not renewed is kept until there is another.
pub fn serve(machine: &Machine, interface: &str, has_address: impl Fn()) -> anyhow::Result<Infallible> {
    let mac = machine.text(&format!("sys/class/net/{interface}/address"));
    let mac = parse_mac(&mac).with_context(|| format!("{mac} is not a MAC"))?;
    let mut lease = obtain(interface, mac)?;
    apply(machine, interface, &lease)?;
    has_address();
    loop {
        Real.sleep(Duration::from_secs(
            u64::from(lease.seconds / 2).max(SHORTEST_RENEWAL),
        ));
        match renew(machine, interface, mac, &lease) {
            Ok(renewed) => lease = renewed,
            Err(error) => {
                note!("the lease of {interface} is not renewed: {error:#}");
                lease.seconds = 0;
            }
        }
    }
}

fn renew(machine: &Machine, interface: &str, mac: Mac, old: &Lease) -> anyhow::Result<Lease> {
    let lease = obtain(interface, mac)?;
    if lease.address != old.address || lease.mask != old.mask {
        apply(machine, interface, &lease)?;
        netlink::remove_address(interface, old.address.into(), prefix(old.mask))?;
    }
    Ok(lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = [0x52, 0x54, 0, 0, 0, 1];

    fn offer() -> Vec<u8> {
        let mut packet = message(OFFER, 7, MAC, &[]);
        packet[0] = 2;
        packet[16..20].copy_from_slice(&[10, 0, 2, 15]);
        packet.truncate(240);
        packet.extend_from_slice(&[
            53, 1, OFFER, 0, 1, 4, 255, 255, 255, 0, 3, 4, 10, 0, 2, 2, 6, 8, 10, 0, 2, 3, 10, 0, 2, 4,
        ]);
        packet.extend_from_slice(&[
            12, 3, b'v', b'm', b'1', 51, 4, 0, 1, 0x51, 0x80, 54, 4, 10, 0, 2, 2, 255,
        ]);
        packet
    }

    #[test]
    fn an_offer_is_read_whole() {
        let Message { kind, lease } = parse(&offer(), 7, MAC).unwrap();
        assert_eq!(kind, OFFER);
        assert_eq!(lease.address, Ipv4Addr::new(10, 0, 2, 15));
        assert_eq!(lease.router, Some(Ipv4Addr::new(10, 0, 2, 2)));
        assert_eq!(lease.name_servers.len(), 2);
        assert_eq!((lease.hostname.as_str(), lease.seconds), ("vm1", 86_400));
    }

    #[test]
    fn offers_for_others_and_broken_ones_are_left_alone() {
        assert_eq!(parse(&offer(), 8, MAC), None);
        assert_eq!(parse(&offer(), 7, [0; 6]), None);
        for length in [0, 10, 239, 260] {
            assert!(parse(&offer()[..length], 7, MAC).is_none(), "{length}");
        }
    }
}
