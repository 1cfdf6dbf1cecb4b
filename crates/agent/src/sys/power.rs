//! Restarting the machine, and the addresses of interfaces that nobody else configures.

use super::{check, socket, text};
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

/// Writes everything to the disks. It returns when they have it.
pub fn sync() {
    // SAFETY: plain call.
    unsafe { libc::sync() }
}

fn reboot_with(command: libc::c_int) -> io::Result<()> {
    sync();
    // SAFETY: plain call; it does not come back when it works.
    check(unsafe { libc::reboot(command) }).map(drop)
}

/// Restarts the machine at once.
pub fn reboot() -> io::Result<()> {
    reboot_with(libc::LINUX_REBOOT_CMD_RESTART)
}

/// Starts the kernel given to `kexec_load`.
pub fn reboot_into_loaded() -> io::Result<()> {
    reboot_with(libc::LINUX_REBOOT_CMD_KEXEC)
}

/// Makes a kernel ready to be started without firmware.
pub fn kexec_load(kernel: &File, initrd: &File, command_line: &str) -> io::Result<()> {
    let line = text(command_line)?;
    let bytes = line.as_bytes_with_nul();
    // SAFETY: two open files, and a text whose length counts its zero byte, as the call wants it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_kexec_file_load,
            kernel.as_raw_fd(),
            initrd.as_raw_fd(),
            bytes.len(),
            bytes.as_ptr(),
            0usize,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn request(interface: &str) -> io::Result<libc::ifreq> {
    let name = interface.as_bytes();
    if name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::other("the name of the interface is too long"));
    }
    // SAFETY: all zero is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

fn address(ip: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: all zero is a valid address, and an IPv4 one is as large as the general one.
    unsafe {
        let mut v4: libc::sockaddr_in = std::mem::zeroed();
        v4.sin_family = libc::AF_INET as libc::sa_family_t;
        v4.sin_addr.s_addr = ip.to_bits().to_be();
        std::mem::transmute(v4)
    }
}

pub fn link_up(interface: &str) -> io::Result<()> {
    let control = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut request = request(interface)?;
    // SAFETY: the request is read and written by the kernel, and lives through both calls.
    unsafe {
        check(libc::ioctl(
            control.as_raw_fd(),
            libc::SIOCGIFFLAGS as _,
            &mut request,
        ))?;
        request.ifr_ifru.ifru_flags |= libc::IFF_UP as libc::c_short;
        check(libc::ioctl(
            control.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &mut request,
        ))?;
    }
    Ok(())
}

pub fn set_address(interface: &str, ip: Ipv4Addr, mask: Ipv4Addr) -> io::Result<()> {
    let control = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut request = request(interface)?;
    // SAFETY: as above.
    unsafe {
        request.ifr_ifru.ifru_addr = address(ip);
        check(libc::ioctl(
            control.as_raw_fd(),
            libc::SIOCSIFADDR as _,
            &mut request,
        ))?;
        request.ifr_ifru.ifru_netmask = address(mask);
        check(libc::ioctl(
            control.as_raw_fd(),
            libc::SIOCSIFNETMASK as _,
            &mut request,
        ))?;
    }
    Ok(())
}

/// A default route that is there already is fine.
pub fn add_default_route(gateway: Ipv4Addr) -> io::Result<()> {
    let control = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: all zero is a valid route; the kernel reads it during the call only.
    let result = unsafe {
        let mut route: libc::rtentry = std::mem::zeroed();
        route.rt_dst = address(Ipv4Addr::UNSPECIFIED);
        route.rt_genmask = address(Ipv4Addr::UNSPECIFIED);
        route.rt_gateway = address(gateway);
        route.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
        check(libc::ioctl(control.as_raw_fd(), libc::SIOCADDRT as _, &route))
    };
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(drop),
    }
}
