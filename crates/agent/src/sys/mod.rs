//! What the standard library cannot ask of the kernel; the only place with unsafe code.
#![expect(
    unsafe_code,
    reason = "system calls without a safe wrapper in the standard library"
)]

#[cfg(test)]
pub mod alone;
pub mod ipmi;
pub mod netlink;
pub mod packet;
pub mod power;

use std::ffi::{CStr, CString};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::time::Duration;

/// An address of an interface of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IfAddress {
    pub interface: String,
    pub address: IpAddr,
    pub prefix: u8,
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn text(value: impl AsRef<[u8]>) -> io::Result<CString> {
    CString::new(value.as_ref()).map_err(|_| io::Error::other("a name holds a zero byte"))
}

fn path_text(path: &Path) -> io::Result<CString> {
    text(path.as_os_str().as_encoded_bytes())
}

/// All addresses of all interfaces, as the kernel tells them.
pub fn interface_addresses() -> Vec<IfAddress> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `list` is written by the call and freed below; entries are only read in between.
    if unsafe { libc::getifaddrs(&mut list) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut at = list;
    while !at.is_null() {
        // SAFETY: `at` comes from the list getifaddrs made, which lives until freeifaddrs.
        let entry = unsafe { &*at };
        if !entry.ifa_addr.is_null() && !entry.ifa_netmask.is_null() && !entry.ifa_name.is_null() {
            // SAFETY: the kernel's list holds terminated names and whole addresses of the family they name.
            let parsed = unsafe {
                let name = CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
                ip_of(entry.ifa_addr)
                    .zip(ip_of(entry.ifa_netmask))
                    .map(|pair| (name, pair))
            };
            if let Some((interface, (address, mask))) = parsed {
                let prefix = ones(mask);
                found.push(IfAddress {
                    interface,
                    address,
                    prefix,
                });
            }
        }
        at = entry.ifa_next;
    }
    // SAFETY: made by getifaddrs above, freed once.
    unsafe { libc::freeifaddrs(list) };
    found
}

fn ones(mask: IpAddr) -> u8 {
    let ones = match mask {
        IpAddr::V4(mask) => mask.to_bits().count_ones(),
        IpAddr::V6(mask) => mask.to_bits().count_ones(),
    };
    u8::try_from(ones).unwrap_or(128)
}

/// SAFETY: `address` points to a socket address as large as its family says.
unsafe fn ip_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: given by the caller.
    unsafe {
        match libc::c_int::from((*address).sa_family) {
            libc::AF_INET => {
                let v4 = std::ptr::read_unaligned(address.cast::<libc::sockaddr_in>());
                Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr))))
            }
            libc::AF_INET6 => {
                let v6 = std::ptr::read_unaligned(address.cast::<libc::sockaddr_in6>());
                Some(IpAddr::V6(Ipv6Addr::from(v6.sin6_addr.s6_addr)))
            }
            _ => None,
        }
    }
}

fn socket(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: plain call; the descriptor is new and owned from here on.
    let fd = check(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket for echo requests, and whether the kernel hands over whole IPv4 packets (raw) or only their content.
/// Unprivileged ones are tried first: they need no capability, and answers of others do not arrive on them.
pub fn icmp_socket(is_v6: bool) -> io::Result<(UdpSocket, bool)> {
    let (domain, protocol) = if is_v6 {
        (libc::AF_INET6, libc::IPPROTO_ICMPV6)
    } else {
        (libc::AF_INET, libc::IPPROTO_ICMP)
    };
    match socket(domain, libc::SOCK_DGRAM, protocol) {
        Ok(fd) => Ok((UdpSocket::from(fd), false)),
        Err(_) => socket(domain, libc::SOCK_RAW, protocol).map(|fd| (UdpSocket::from(fd), true)),
    }
}

fn set_option(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(value.len()).map_err(io::Error::other)?;
    // SAFETY: the value is read for its length only.
    check(unsafe { libc::setsockopt(fd, level, name, value.as_ptr().cast(), length) }).map(drop)
}

/// Packets leave through this interface and no other.
pub fn bind_to_device(socket: impl AsFd, interface: &str) -> io::Result<()> {
    set_option(
        socket.as_fd().as_raw_fd(),
        libc::SOL_SOCKET,
        libc::SO_BINDTODEVICE,
        interface.as_bytes(),
    )
}

/// Packets are not cut into fragments: too large ones are refused.
pub fn forbid_fragments(socket: impl AsFd, is_v6: bool) -> io::Result<()> {
    let (level, name) = if is_v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER)
    };
    set_option(
        socket.as_fd().as_raw_fd(),
        level,
        name,
        &libc::IP_PMTUDISC_PROBE.to_ne_bytes(),
    )
}

/// A socket for DHCP clients: on one interface alone, so that every card can have its own at the same port.
pub fn broadcast_socket(interface: &str, port: u16) -> io::Result<UdpSocket> {
    let fd = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    set_flag(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    bind_to_device(&fd, interface)?;
    // SAFETY: all zero is a valid address: any.
    let mut any: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    any.sin_family = libc::AF_INET as libc::sa_family_t;
    any.sin_port = port.to_be();
    bind(&fd, &any)?;
    let socket = UdpSocket::from(fd);
    socket.set_broadcast(true)?;
    Ok(socket)
}

/// The same for IPv6.
pub fn multicast_socket(interface: &str, port: u16) -> io::Result<UdpSocket> {
    let fd = socket(libc::AF_INET6, libc::SOCK_DGRAM, 0)?;
    set_flag(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    set_flag(&fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    bind_to_device(&fd, interface)?;
    // SAFETY: all zero is a valid address: any.
    let mut any: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    any.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    any.sin6_port = port.to_be();
    bind(&fd, &any)?;
    Ok(UdpSocket::from(fd))
}

/// A socket that sends ICMPv6 on one interface and hears messages of one type.
pub fn icmpv6_socket(interface: &str, hears: u8) -> io::Result<UdpSocket> {
    /// Of the level ICMPv6; a bit for each type, set when it is kept away.
    const FILTER: libc::c_int = 1;
    /// RFC 4861: neighbours discard what may have passed a router.
    const MOST_HOPS: libc::c_int = 255;
    let fd = socket(libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6)?;
    let mut filter = [u32::MAX; 8];
    filter[usize::from(hears / 32)] &= !(1 << (hears % 32));
    let filter = filter.map(u32::to_ne_bytes).concat();
    set_option(fd.as_raw_fd(), libc::IPPROTO_ICMPV6, FILTER, &filter)?;
    set_flag(&fd, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS, MOST_HOPS)?;
    bind_to_device(&fd, interface)?;
    Ok(UdpSocket::from(fd))
}

fn set_flag(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set_option(fd.as_raw_fd(), level, name, &value.to_ne_bytes())
}

/// `T` is one of the kernel's socket addresses.
fn bind<T>(fd: &OwnedFd, address: &T) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: the address is whole and read for its size.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const *address).cast(), length) }).map(drop)
}

/// Waits until one of them has something to read, and tells which have.
pub fn wait_for_input<const N: usize>(sockets: [&UdpSocket; N], wait: Duration) -> io::Result<[bool; N]> {
    let mut polls = sockets.map(|socket| libc::pollfd {
        fd: socket.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // Rounded up: who waits for less than a millisecond would not wait at all.
    let wait = libc::c_int::try_from(wait.as_millis() + 1).unwrap_or(libc::c_int::MAX);
    let count = libc::nfds_t::try_from(N).map_err(io::Error::other)?;
    // SAFETY: the entries are written by the call, as many as there are.
    check(unsafe { libc::poll(polls.as_mut_ptr(), count, wait) })?;
    Ok(polls.map(|poll| poll.revents != 0))
}

/// Errors of a socket after which it can be read again: nothing came in time, or the cable was out.
pub fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::ConnectionRefused
    )
}

/// From now on standard input and output are this file.
pub fn become_console(file: &std::fs::File) -> io::Result<()> {
    for fd in 0..3 {
        // SAFETY: an open file and one of the three standard numbers.
        check(unsafe { libc::dup2(file.as_raw_fd(), fd) })?;
    }
    Ok(())
}

pub fn mount(source: &str, target: &Path, kind: &str, read_only: bool) -> io::Result<()> {
    let (source, target, kind) = (text(source)?, path_text(target)?, text(kind)?);
    let flags = if read_only { libc::MS_RDONLY } else { 0 };
    // SAFETY: all texts end with a zero byte and live through the call.
    check(unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// Where this path is mounted read-only, it is so no longer. Everything else about the mount stays.
pub fn make_writable(path: &Path) -> io::Result<()> {
    let target = path_text(path)?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the text ends with a zero byte, and the answer is written by the call.
    check(unsafe { libc::statvfs(target.as_ptr(), found.as_mut_ptr()) })?;
    // SAFETY: written, as the call succeeded.
    let flags = unsafe { found.assume_init() }.f_flag;
    if flags & libc::ST_RDONLY == 0 {
        return Ok(());
    }
    // Both calls number these alike.
    let kept = flags & (libc::ST_NOSUID | libc::ST_NODEV | libc::ST_NOEXEC | libc::ST_NOATIME);
    let nothing = std::ptr::null();
    // SAFETY: the text lives through the call; a remount reads neither a source nor a kind.
    check(unsafe {
        libc::mount(
            nothing,
            target.as_ptr(),
            nothing,
            libc::MS_REMOUNT | kept,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// Loads a kernel module that is not compressed; one that is loaded already is fine.
pub fn load_module(file: &std::fs::File, options: &str) -> io::Result<()> {
    let options = text(options)?;
    // SAFETY: an open file and a terminated text.
    let result = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), options.as_ptr(), 0) };
    match result {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            error => Err(error),
        },
    }
}

/// Waits until any child has ended, orphans of others included, and tells which.
pub fn wait_for_any() -> io::Result<u32> {
    let mut status = 0;
    // SAFETY: the status is written by the call.
    let pid = check(unsafe { libc::waitpid(-1, &mut status, 0) })?;
    u32::try_from(pid).map_err(io::Error::other)
}

pub fn set_hostname(name: &str) -> io::Result<()> {
    // SAFETY: the name is read for its length only.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

pub fn set_clock(since_1970: Duration) -> io::Result<()> {
    let time = libc::timespec {
        tv_sec: since_1970.as_secs().try_into().map_err(io::Error::other)?,
        tv_nsec: libc::c_long::from(since_1970.subsec_nanos() as i32),
    };
    // SAFETY: the time is whole and only read.
    check(unsafe { libc::clock_settime(libc::CLOCK_REALTIME, &time) }).map(drop)
}

/// Like `kill -TERM`.
pub fn terminate(pid: u32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: plain call.
    check(unsafe { libc::kill(pid, libc::SIGTERM) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_is_among_the_addresses() {
        let found = interface_addresses();
        let lo = found
            .iter()
            .find(|a| a.address == IpAddr::V4(Ipv4Addr::LOCALHOST))
            .unwrap();
        assert_eq!((lo.interface.as_str(), lo.prefix), ("lo", 8));
    }
}
