//! Addresses, routes and links, told to the kernel in its own language (rtnetlink).
//!
//! By hand, because it is a handful of requests without any answer to read: `rtnetlink` wants an async runtime, and
//! `netlink-packet-route`, 50,000 lines that change with every release, is four times as large as this whole agent.

use super::packet::{Mac, index_of};
use super::socket;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

const ADDRESS: u16 = 1;
const LOCAL: u16 = 2;
const BROADCAST: u16 = 4;
const ROUTE_TO: u16 = 1;
const ROUTE_OUT: u16 = 4;
const ROUTE_GATEWAY: u16 = 5;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_ADDRESS: u16 = 1;
const LINK_PARENT: u16 = 5;
const LINK_CONTROLLER: u16 = 10;
const LINK_NAMESPACE: u16 = 28;
const LINK_INFO: u16 = 18;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VLAN_ID: u16 = 1;
const MAIN_TABLE: u8 = 254;
const BY_BOOT: u8 = 3;
const UNIVERSE: u8 = 0;
const ON_LINK: u8 = 253;
const UNICAST: u8 = 1;
/// Length, kind, flags, number and sender of a message.
const HEADER: usize = 16;

/// One request: a header whose length is filled in last, a fixed part, and attributes.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: libc::c_int, fixed: &[u8]) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend_from_slice(fixed);
        Self(bytes)
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Self {
        put(&mut self.0, kind, value);
        self
    }

    fn with_ip(self, kind: u16, ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => self.with(kind, &ip.octets()),
            IpAddr::V6(ip) => self.with(kind, &ip.octets()),
        }
    }

    /// Waits for the kernel's word. What is there already is fine.
    fn send(mut self) -> io::Result<()> {
        let length = u32::try_from(self.0.len()).map_err(io::Error::other)?;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        // SAFETY: the message is read for its length.
        let sent = unsafe { libc::send(socket.as_raw_fd(), self.0.as_ptr().cast(), self.0.len(), 0) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        match answer(&socket)? {
            0 | libc::EEXIST => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The code of the acknowledgement; 0 when all is well.
fn answer(socket: &OwnedFd) -> io::Result<libc::c_int> {
    let mut buffer = [0u8; 4096];
    // SAFETY: the buffer is written for its length.
    let read = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    let read = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    let code = buffer[..read].get(HEADER..HEADER + 4);
    let code = code
        .and_then(|bytes| bytes.try_into().ok())
        .map(i32::from_ne_bytes);
    code.map(i32::wrapping_neg)
        .ok_or_else(|| io::Error::other("the kernel's answer is too short"))
}

fn family(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn address(kind: u16, flags: libc::c_int, interface: &str, ip: IpAddr, prefix: u8) -> io::Result<Message> {
    let mut fixed = vec![family(ip), prefix, 0, UNIVERSE];
    fixed.extend_from_slice(&index_of(interface)?.to_ne_bytes());
    let message = Message::new(kind, flags, &fixed)
        .with_ip(LOCAL, ip)
        .with_ip(ADDRESS, ip);
    Ok(match ip {
        IpAddr::V4(ip) if prefix < 31 => {
            let all = Ipv4Addr::from_bits(ip.to_bits() | u32::MAX >> prefix);
            message.with_ip(BROADCAST, all.into())
        }
        IpAddr::V4(_) | IpAddr::V6(_) => message,
    })
}

pub fn add_address(interface: &str, ip: IpAddr, prefix: u8) -> io::Result<()> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    address(libc::RTM_NEWADDR, flags, interface, ip, prefix)?.send()
}

pub fn remove_address(interface: &str, ip: IpAddr, prefix: u8) -> io::Result<()> {
    address(libc::RTM_DELADDR, 0, interface, ip, prefix)?.send()
}

fn route(
    (kind, flags): (u16, libc::c_int),
    interface: &str,
    (to, prefix): (IpAddr, u8),
    gateway: Option<IpAddr>,
) -> io::Result<Message> {
    let scope = if gateway.is_some() { UNIVERSE } else { ON_LINK };
    let fixed = [
        family(to),
        prefix,
        0,
        0,
        MAIN_TABLE,
        BY_BOOT,
        scope,
        UNICAST,
        0,
        0,
        0,
        0,
    ];
    let mut message = Message::new(kind, flags, &fixed).with(ROUTE_OUT, &index_of(interface)?.to_ne_bytes());
    if prefix > 0 {
        message = message.with_ip(ROUTE_TO, to);
    }
    if let Some(gateway) = gateway {
        message = message.with_ip(ROUTE_GATEWAY, gateway);
    }
    Ok(message)
}

/// A route to a network; prefix 0 is everything. Without a gateway the network is on the link.
pub fn add_route(interface: &str, to: IpAddr, prefix: u8, gateway: Option<IpAddr>) -> io::Result<()> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    route((libc::RTM_NEWROUTE, flags), interface, (to, prefix), gateway)?.send()
}

pub fn remove_route(interface: &str, to: IpAddr, prefix: u8, gateway: Option<IpAddr>) -> io::Result<()> {
    route((libc::RTM_DELROUTE, 0), interface, (to, prefix), gateway)?.send()
}

/// Family, kind, index, flags, and which flags change.
fn link_part(index: libc::c_int, flags: u32, change: u32) -> Vec<u8> {
    let mut fixed = vec![0; 4];
    fixed.extend_from_slice(&index.to_ne_bytes());
    fixed.extend_from_slice(&flags.to_ne_bytes());
    fixed.extend_from_slice(&change.to_ne_bytes());
    fixed
}

/// A change of a link that is there.
fn change(interface: &str) -> io::Result<Message> {
    let fixed = link_part(index_of(interface)?, 0, 0);
    Ok(Message::new(libc::RTM_NEWLINK, 0, &fixed))
}

const UP: u32 = libc::IFF_UP as u32;

pub fn link_up(interface: &str) -> io::Result<()> {
    let fixed = link_part(index_of(interface)?, UP, UP);
    Message::new(libc::RTM_NEWLINK, 0, &fixed).send()
}

pub fn link_down(interface: &str) -> io::Result<()> {
    let fixed = link_part(index_of(interface)?, 0, UP);
    Message::new(libc::RTM_NEWLINK, 0, &fixed).send()
}

pub fn set_mac(interface: &str, mac: Mac) -> io::Result<()> {
    change(interface)?.with(LINK_ADDRESS, &mac).send()
}

/// Makes a link a part of a bond or bridge.
pub fn set_controller(interface: &str, controller: &str) -> io::Result<()> {
    let index = index_of(controller)?.to_ne_bytes();
    change(interface)?.with(LINK_CONTROLLER, &index).send()
}

/// Gives a link away to another network namespace. Only tests have more than one.
pub fn set_namespace(interface: &str, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let fd = namespace.as_raw_fd().to_ne_bytes();
    change(interface)?.with(LINK_NAMESPACE, &fd).send()
}

pub fn set_mtu(interface: &str, mtu: u32) -> io::Result<()> {
    change(interface)?.with(LINK_MTU, &mtu.to_ne_bytes()).send()
}

/// A link that the kernel makes, with what that kind of link needs to know.
fn new_link(name: &str, kind: &str, data: &[u8]) -> io::Result<Message> {
    let mut info = Vec::new();
    put(&mut info, INFO_KIND, kind.as_bytes());
    put(&mut info, INFO_DATA, data);
    let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    let message = Message::new(libc::RTM_NEWLINK, flags, &link_part(0, 0, 0));
    Ok(message
        .with(LINK_NAME, &super::text(name)?.into_bytes_with_nul())
        .with(LINK_INFO, &info))
}

/// A link of a kind that stands for itself: `bond`, `bridge`, `veth`.
pub fn add_link(name: &str, kind: &str) -> io::Result<()> {
    new_link(name, kind, &[])?.send()
}

/// An interface for one tagged network of another.
pub fn add_vlan(parent: &str, name: &str, id: u16) -> io::Result<()> {
    let mut data = Vec::new();
    put(&mut data, VLAN_ID, &id.to_ne_bytes());
    new_link(name, "vlan", &data)?
        .with(LINK_PARENT, &index_of(parent)?.to_ne_bytes())
        .send()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::alone::alone;

    #[test]
    fn addresses_come_and_go() {
        alone(|| {
            link_up("lo").unwrap();
            for (ip, prefix) in [("192.0.2.5", 24), ("192.0.2.6", 24), ("2001:db8::5", 64)] {
                let ip: IpAddr = ip.parse().unwrap();
                add_address("lo", ip, prefix).unwrap();
                add_address("lo", ip, prefix).unwrap();
                let found = crate::sys::interface_addresses();
                assert!(found.iter().any(|at| at.address == ip && at.prefix == prefix));
            }
            let gone: IpAddr = "192.0.2.6".parse().unwrap();
            remove_address("lo", gone, 24).unwrap();
            assert!(
                !crate::sys::interface_addresses()
                    .iter()
                    .any(|at| at.address == gone)
            );
        });
    }

    #[test]
    fn routes_are_set_once() {
        alone(|| {
            link_up("lo").unwrap();
            add_address("lo", "192.0.2.5".parse().unwrap(), 24).unwrap();
            add_route("lo", "198.51.100.0".parse().unwrap(), 24, None).unwrap();
            for _ in 0..2 {
                let gateway = "192.0.2.1".parse().unwrap();
                add_route("lo", "0.0.0.0".parse().unwrap(), 0, Some(gateway)).unwrap();
            }
            let table = || std::fs::read_to_string("/proc/thread-self/net/route").unwrap();
            assert!(table().contains("010200C0"), "{}", table());
            assert!(table().contains("006433C6"), "{}", table());
            remove_route("lo", "198.51.100.0".parse().unwrap(), 24, None).unwrap();
            assert!(!table().contains("006433C6"), "{}", table());
            assert!(table().contains("010200C0"), "{}", table());
        });
    }

    #[test]
    fn what_cannot_be_done_is_told() {
        alone(|| {
            assert!(add_address("none0", "192.0.2.5".parse().unwrap(), 24).is_err());
            link_up("lo").unwrap();
            let far = "203.0.113.1".parse().unwrap();
            assert!(add_route("lo", "0.0.0.0".parse().unwrap(), 0, Some(far)).is_err());
        });
    }
}
