//! Packets below IP: ARP needs them.

use super::{check, socket, text};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

pub type Mac = [u8; 6];
pub const BROADCAST: Mac = [0xff; 6];

/// A socket on one interface for packets of one type. The kernel adds and takes off the Ethernet header.
#[derive(Debug)]
pub struct PacketSocket {
    fd: OwnedFd,
    index: libc::c_int,
    protocol: u16,
}

pub(super) fn index_of(interface: &str) -> io::Result<libc::c_int> {
    let name = text(interface)?;
    // SAFETY: a terminated text.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => libc::c_int::try_from(index).map_err(io::Error::other),
    }
}

impl PacketSocket {
    pub fn open(interface: &str, ethertype: u16) -> io::Result<Self> {
        let protocol = ethertype.to_be();
        let fd = socket(libc::AF_PACKET, libc::SOCK_DGRAM, libc::c_int::from(protocol))?;
        let this = Self {
            fd,
            index: index_of(interface)?,
            protocol,
        };
        let address = this.address([0; 6]);
        // SAFETY: the address is whole and read for its size.
        check(unsafe {
            libc::bind(
                this.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        })?;
        Ok(this)
    }

    fn address(&self, mac: Mac) -> libc::sockaddr_ll {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&mac);
        libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            sll_protocol: self.protocol,
            sll_ifindex: self.index,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 6,
            sll_addr: bytes,
        }
    }

    pub fn send(&self, to: Mac, content: &[u8]) -> io::Result<()> {
        let address = self.address(to);
        // SAFETY: content and address are read for their lengths.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                content.as_ptr().cast(),
                content.len(),
                0,
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if sent < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(())
        }
    }

    /// The next packet, unless none comes in time.
    pub fn receive(&self, wait: Duration, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let wait = libc::c_int::try_from(wait.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: one entry, written by the call.
        if check(unsafe { libc::poll(&mut poll, 1, wait) })? == 0 {
            return Ok(None);
        }
        // SAFETY: the buffer is written for its length.
        let read = unsafe {
            libc::recv(
                self.fd.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(read)
            .map(Some)
            .map_err(|_| io::Error::last_os_error())
    }
}
