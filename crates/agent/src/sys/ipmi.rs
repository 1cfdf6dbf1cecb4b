//! Asks the machine's own power controller for its network address, through the kernel's IPMI device.

use super::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

#[repr(C)]
struct Message {
    netfn: u8,
    cmd: u8,
    data_len: u16,
    data: *mut u8,
}

#[repr(C)]
struct SystemAddress {
    kind: libc::c_int,
    channel: libc::c_short,
    lun: u8,
}

#[repr(C)]
struct Request {
    address: *mut SystemAddress,
    address_len: libc::c_uint,
    id: libc::c_long,
    message: Message,
}

#[repr(C)]
struct Answer {
    kind: libc::c_int,
    address: *mut SystemAddress,
    address_len: libc::c_uint,
    id: libc::c_long,
    message: Message,
}

/// `_IOC` of the kernel: direction, size, type `i`, number.
const fn code(direction: u64, number: u64, size: usize) -> u64 {
    (direction << 30) | ((size as u64) << 16) | ((b'i' as u64) << 8) | number
}

const SEND: u64 = code(2, 13, size_of::<Request>());
const RECEIVE_TRUNCATED: u64 = code(3, 11, size_of::<Answer>());
/// The controller of this very machine.
const SYSTEM_INTERFACE: libc::c_int = 0x0c;
const THIS_CONTROLLER: libc::c_short = 0xf;
/// A controller answers in milliseconds, or it is busy with something else.
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends one command and returns the answer's data: first its completion code.
pub fn ask(device: &File, netfn: u8, cmd: u8, data: &mut [u8]) -> io::Result<Vec<u8>> {
    let mut to = SystemAddress {
        kind: SYSTEM_INTERFACE,
        channel: THIS_CONTROLLER,
        lun: 0,
    };
    let mut request = Request {
        address: &mut to,
        address_len: size_of::<SystemAddress>() as libc::c_uint,
        id: 1,
        message: Message {
            netfn,
            cmd,
            data_len: u16::try_from(data.len()).map_err(io::Error::other)?,
            data: data.as_mut_ptr(),
        },
    };
    // SAFETY: the request and all it points to live through the call; its size is in the code.
    check(unsafe { libc::ioctl(device.as_raw_fd(), SEND as _, &mut request) })?;
    let mut poll = libc::pollfd {
        fd: device.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, written by the call.
    if check(unsafe { libc::poll(&mut poll, 1, PATIENCE.as_millis() as libc::c_int) })? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    receive(device)
}

fn receive(device: &File) -> io::Result<Vec<u8>> {
    let mut from = SystemAddress {
        kind: 0,
        channel: 0,
        lun: 0,
    };
    let mut data = vec![0; 256];
    let mut answer = Answer {
        kind: 0,
        address: &mut from,
        address_len: size_of::<SystemAddress>() as libc::c_uint,
        id: 0,
        message: Message {
            netfn: 0,
            cmd: 0,
            data_len: 256,
            data: data.as_mut_ptr(),
        },
    };
    // SAFETY: as above; the kernel writes at most `data_len` bytes.
    check(unsafe { libc::ioctl(device.as_raw_fd(), RECEIVE_TRUNCATED as _, &mut answer) })?;
    data.truncate(usize::from(answer.message.data_len));
    Ok(data)
}
