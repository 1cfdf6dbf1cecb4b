//! IPv4 addresses by DHCP: a socket for the client in `client.rs`, and what its leases change on this machine.
//!
//! Answers to a card without an address are asked for as broadcasts, so no raw packets are needed.

mod client;
mod message;

use super::connection::Route;
use super::names::{self, Names, ResolvConf, Source};
use crate::clock::chance;
use crate::collect::Machine;
use crate::note;
use crate::probe::arp::parse_mac;
use crate::sys::packet::Mac;
use crate::sys::{self, netlink};
use anyhow::Context as _;
use client::{Client, Order};
pub use message::Lease;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Ports of switches may forward nothing for half a minute after a link comes up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing waits longer than this, so that a clock that jumped is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// An interface, and the name of a card under which it asks.
struct Link {
    socket: UdpSocket,
    mac: Mac,
    start: Instant,
}

impl Link {
    fn open(interface: &str, mac: Mac) -> anyhow::Result<Self> {
        let socket = sys::broadcast_socket(interface, dhcproto::v4::CLIENT_PORT)
            .with_context(|| format!("cannot ask for addresses on {interface}"))?;
        Ok(Self {
            socket,
            mac,
            start: Instant::now(),
        })
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits for an answer or until something is due, and says what is to be done, in this order.
    fn step(&self, client: &mut Client, most: Duration) -> io::Result<Vec<Order>> {
        let now = self.now();
        let due = client.due().unwrap_or(now + LONGEST_WAIT);
        let wait = due.saturating_sub(now).min(most);
        if wait.is_zero() {
            return Ok(client.wake(now, chance()));
        }
        Ok(match self.receive(wait)? {
            Some(answer) => client.hear(self.now(), answer, chance()),
            None => Vec::new(),
        })
    }

    /// A cable may be out for a while; it is asked again.
    fn send(&self, question: &message::Question) -> anyhow::Result<()> {
        let packet = question.packet(self.mac)?;
        let to = (question.to(), dhcproto::v4::SERVER_PORT);
        let _ = self.socket.send_to(&packet, to);
        Ok(())
    }

    fn receive(&self, wait: Duration) -> io::Result<Option<message::Answer>> {
        let until = Instant::now() + wait;
        let mut packet = [0; message::LARGEST as usize];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            match self.socket.recv(&mut packet) {
                Ok(length) => {
                    if let Some(answer) = message::read(&packet[..length], self.mac) {
                        return Ok(Some(answer));
                    }
                }
                Err(error) if sys::is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Asks on one interface in the name of a card, and leaves the machine as it is.
pub fn obtain(interface: &str, mac: Mac) -> anyhow::Result<Lease> {
    let link = Link::open(interface, mac)?;
    let mut client = Client::new(link.now());
    loop {
        let left = PATIENCE.saturating_sub(link.now());
        anyhow::ensure!(!left.is_zero(), "no DHCP server answers on {interface}");
        for order in link.step(&mut client, left)? {
            match order {
                Order::Send(question) => link.send(&question)?,
                Order::Use(lease) => return Ok(*lease),
                Order::Drop => {}
            }
        }
    }
}

/// Keeps the interface supplied as long as the machine runs. It ends when the interface cannot be asked any more; what
/// the last lease gave is taken away then.
pub fn serve(
    machine: &Machine,
    resolv_conf: &ResolvConf,
    interface: &str,
    takes_mtu: bool,
    has_address: impl Fn(),
) -> anyhow::Result<Infallible> {
    let mac = machine.text(&format!("sys/class/net/{interface}/address"));
    let mac = parse_mac(&mac).with_context(|| format!("{mac} is not a MAC"))?;
    let link = Link::open(interface, mac)?;
    let mut client = Client::new(link.now());
    let mut target = Target {
        machine,
        resolv_conf,
        interface,
        takes_mtu,
        lease: None,
    };
    loop {
        for order in link.step(&mut client, LONGEST_WAIT)? {
            match order {
                Order::Use(lease) => {
                    target.take(*lease);
                    has_address();
                }
                Order::Drop => target.clear(),
                Order::Send(question) => link.send(&question)?,
            }
        }
    }
}

/// What leases change: they come, are replaced, and end.
struct Target<'a> {
    machine: &'a Machine,
    resolv_conf: &'a ResolvConf,
    interface: &'a str,
    takes_mtu: bool,
    lease: Option<Lease>,
}

impl Target<'_> {
    /// Sets what is new, then takes away what is no longer given. What cannot be set is noted: half a lease is better
    /// than none.
    fn take(&mut self, lease: Lease) {
        let old = self.lease.take();
        let (interface, prefix) = (self.interface, lease.prefix());
        let tell = |what: &str, result: io::Result<()>| {
            if let Err(error) = result {
                note!("{interface}: {what}: {error}");
            }
        };
        let address = lease.address.into();
        if let Some(mtu) = lease.mtu.filter(|_| self.takes_mtu) {
            tell("cannot set the size of packets", netlink::set_mtu(interface, mtu));
        }
        tell(
            "cannot set the address",
            netlink::add_address(interface, address, prefix),
        );
        for route in &lease.routes {
            let result = netlink::add_route(interface, route.to, route.prefix, route.gateway);
            tell(
                &format!("cannot set the route to {}/{}", route.to, route.prefix),
                result,
            );
        }
        let is_same = old
            .as_ref()
            .is_some_and(|old| (old.address, old.prefix()) == (lease.address, prefix));
        if let Some(old) = old {
            self.forget(&old, &lease.routes, is_same);
        }
        let servers = lease.name_servers.iter().copied().map(IpAddr::V4);
        let names = Names {
            servers: servers.collect(),
            search: lease.search.clone(),
        };
        self.resolv_conf.tell(interface, Source::Dhcp, names);
        let servers: Vec<IpAddr> = lease.time_servers.iter().copied().map(IpAddr::V4).collect();
        names::tell_time_servers(self.machine, interface, Source::Dhcp, &servers);
        // The name that a config gives counts more.
        if !lease.hostname.is_empty() && !self.machine.exists("etc/hostname") {
            tell("cannot name the machine", sys::set_hostname(&lease.hostname));
        }
        if !is_same {
            note!("{interface} has {}/{prefix}", lease.address);
        }
        self.lease = Some(lease);
    }

    fn clear(&mut self) {
        let Some(old) = self.lease.take() else { return };
        note!("{} has {} no longer", self.interface, old.address);
        self.forget(&old, &[], false);
        self.resolv_conf
            .tell(self.interface, Source::Dhcp, Names::default());
        names::tell_time_servers(self.machine, self.interface, Source::Dhcp, &[]);
    }

    /// What is gone already need not be taken away.
    fn forget(&self, old: &Lease, kept: &[Route], keeps_address: bool) {
        for route in old.routes.iter().filter(|route| !kept.contains(route)) {
            let _ = netlink::remove_route(self.interface, route.to, route.prefix, route.gateway);
        }
        if !keeps_address {
            let _ = netlink::remove_address(self.interface, old.address.into(), old.prefix());
        }
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}
