//! IPv6 without settings: sockets for the client in `client.rs`, and what routers and servers change on this machine.

mod advert;
mod client;
mod message;

use super::names::{self, Names, ResolvConf, Source};
use crate::clock::chance;
use crate::collect::Machine;
use crate::note;
use crate::probe::arp::parse_mac;
use crate::sys::packet::Mac;
use crate::sys::{self, netlink};
use anyhow::Context as _;
use client::{Client, Order};
use message::{Lease, Told};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const LARGEST: usize = 1500;
/// Nothing waits longer than this, so that a clock that jumped is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
/// An address that the kernel makes for itself is looked for this often, until there is one.
const ADDRESS_LOOK: Duration = Duration::from_millis(500);
/// An address of a server says nothing of the network around it: routers tell what else is on the link.
const HOST: u8 = 128;

/// Keeps the interface supplied as long as the machine runs. It ends when the interface cannot be asked any more; what
/// the last lease gave is taken away then.
pub fn serve(
    machine: &Machine,
    resolv_conf: &ResolvConf,
    interface: &str,
    has_address: impl Fn(),
) -> anyhow::Result<Infallible> {
    let mac = machine.text(&format!("sys/class/net/{interface}/address"));
    let mac = parse_mac(&mac).with_context(|| format!("{mac} is not a MAC"))?;
    let sockets = Sockets::open(interface).with_context(|| format!("{interface} has no IPv6"))?;
    let start = Instant::now();
    let mut client = Client::new(Duration::ZERO);
    let mut target = Target {
        machine,
        resolv_conf,
        interface,
        lease: None,
    };
    let mut awaits_address = true;
    loop {
        let now = start.elapsed();
        let mut wait = client.due().map_or(LONGEST_WAIT, |due| due.saturating_sub(now));
        if awaits_address {
            wait = wait.min(ADDRESS_LOOK);
        }
        let mut orders = client.wake(now, chance());
        if orders.is_empty() {
            let [router, server] = sockets.wait(wait)?;
            if router && let Some((from, advert)) = sockets.router()? {
                orders.extend(client.hear_router(start.elapsed(), from, advert, chance()));
            }
            if server && let Some(answer) = sockets.server(mac)? {
                orders.extend(client.hear_server(start.elapsed(), answer, chance()));
            }
        }
        for order in orders {
            match order {
                Order::AskRouters => sockets.ask_routers(),
                Order::Send(question) => sockets.ask_servers(&question, mac)?,
                Order::Use(lease) => target.take(*lease),
                Order::Drop => target.clear(),
                Order::Told(told) => target.tell(&told),
                Order::Names(names) => resolv_conf.tell(interface, Source::Routers, names),
            }
        }
        if awaits_address && has_global_address(interface) {
            awaits_address = false;
            has_address();
        }
    }
}

fn has_global_address(interface: &str) -> bool {
    sys::interface_addresses().iter().any(|at| match at.address {
        IpAddr::V6(ip) => at.interface == interface && !ip.is_unicast_link_local(),
        IpAddr::V4(_) => false,
    })
}

struct Sockets {
    routers: UdpSocket,
    servers: UdpSocket,
}

impl Sockets {
    fn open(interface: &str) -> io::Result<Self> {
        let routers = sys::icmpv6_socket(interface, advert::ADVERTISEMENT)?;
        let servers = sys::multicast_socket(interface, dhcproto::v6::CLIENT_PORT)?;
        routers.set_nonblocking(true)?;
        servers.set_nonblocking(true)?;
        Ok(Self { routers, servers })
    }

    fn wait(&self, most: Duration) -> io::Result<[bool; 2]> {
        match sys::wait_for_input([&self.routers, &self.servers], most) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; 2]),
            other => other,
        }
    }

    /// A cable may be out, or the card's own address not be tested yet; it is asked again.
    fn ask_routers(&self) {
        let _ = self.routers.send_to(&advert::QUESTION, (ALL_ROUTERS, 0));
    }

    fn ask_servers(&self, question: &message::Question, mac: Mac) -> anyhow::Result<()> {
        let packet = question.packet(mac)?;
        let _ = self
            .servers
            .send_to(&packet, (ALL_SERVERS, dhcproto::v6::SERVER_PORT));
        Ok(())
    }

    /// No router forwards what comes from an address like this, so it is one of our neighbours.
    fn router(&self) -> io::Result<Option<(Ipv6Addr, advert::Advert)>> {
        let mut packet = [0; LARGEST];
        let received = receive(&self.routers, &mut packet)?;
        Ok(received.and_then(|(length, from)| match from {
            SocketAddr::V6(from) if from.ip().is_unicast_link_local() => {
                Some((*from.ip(), advert::read(&packet[..length])?))
            }
            SocketAddr::V6(_) | SocketAddr::V4(_) => None,
        }))
    }

    fn server(&self, mac: Mac) -> io::Result<Option<message::Answer>> {
        let mut packet = [0; LARGEST];
        let received = receive(&self.servers, &mut packet)?;
        Ok(received.and_then(|(length, _)| message::read(&packet[..length], mac)))
    }
}

fn receive(socket: &UdpSocket, packet: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(packet) {
        Ok(received) => Ok(Some(received)),
        Err(error) if sys::is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What leases change: they come, are replaced, and end.
struct Target<'a> {
    machine: &'a Machine,
    resolv_conf: &'a ResolvConf,
    interface: &'a str,
    lease: Option<Lease>,
}

impl Target<'_> {
    fn take(&mut self, lease: Lease) {
        let old = self.lease.take();
        let (interface, address) = (self.interface, lease.address);
        if let Err(error) = netlink::add_address(interface, address.into(), HOST) {
            note!("{interface}: cannot set the address {address}: {error}");
        }
        match old {
            Some(old) if old.address == address => {}
            other => {
                note!("{interface} has {address}");
                if let Some(old) = other {
                    self.forget(&old);
                }
            }
        }
        self.tell(&lease.told);
        self.lease = Some(lease);
    }

    fn clear(&mut self) {
        let Some(old) = self.lease.take() else { return };
        note!("{} has {} no longer", self.interface, old.address);
        self.forget(&old);
        self.tell(&Told::default());
    }

    /// What is gone already need not be taken away.
    fn forget(&self, old: &Lease) {
        let _ = netlink::remove_address(self.interface, old.address.into(), HOST);
    }

    fn tell(&self, told: &Told) {
        let all = |ips: &[Ipv6Addr]| ips.iter().copied().map(IpAddr::V6).collect::<Vec<_>>();
        let names = Names {
            servers: all(&told.name_servers),
            search: told.search.clone(),
        };
        self.resolv_conf.tell(self.interface, Source::Dhcp6, names);
        let servers = all(&told.time_servers);
        names::tell_time_servers(self.machine, self.interface, Source::Dhcp6, &servers);
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
