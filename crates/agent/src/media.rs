//! Whether the medium this machine was started from is still there.

use crate::collect::Machine;
use std::fs::File;
use std::io::Read;

const MOUNT: &str = "/run/media/iso";

/// Reads two bytes of the device. A machine that runs from memory has nothing to lose.
pub fn is_lost(machine: &Machine) -> bool {
    let mounts = machine.text("proc/mounts");
    let device = mounts.lines().find_map(|line| {
        let (device, rest) = line.split_once(' ')?;
        rest.starts_with(&format!("{MOUNT} ")).then_some(device)
    });
    let Some(device) = device else { return false };
    let read = File::open(machine.path(device)).and_then(|mut file| file.read_exact(&mut [0; 2]));
    read.is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_medium_that_cannot_be_read_is_lost() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::at(root.path());
        assert!(!is_lost(&machine));
        std::fs::create_dir_all(root.path().join("proc")).unwrap();
        std::fs::create_dir_all(root.path().join("dev")).unwrap();
        std::fs::write(
            root.path().join("proc/mounts"),
            "rootfs / rootfs rw 0 0\n/dev/sr0 /run/media/iso iso9660 ro 0 0\n",
        )
        .unwrap();
        assert!(is_lost(&machine));
        std::fs::write(root.path().join("dev/sr0"), "CD").unwrap();
        assert!(!is_lost(&machine));
    }
}
