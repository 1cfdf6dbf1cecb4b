//! Restarting the machine.

use super::{check, text};
use std::fs::File;
use std::io;
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
