//! The agent as the first process of a discovery image: it makes the machine ready and looks after it.
//!
//! The image may hold `/etc/muster/modules`, a list of kernel modules to load, one path per line, in the order of their
//! dependencies. Addresses come from DHCP, asked for on every card with a link; busybox's `udhcpc` is used where the
//! image has it, otherwise our own client.

pub mod dhcp;

use crate::clock::{Clock, Real};
use crate::collect::Machine;
use crate::note;
use crate::sys::{self, power};
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const MODULES: &str = "/etc/muster/modules";
const UDHCPC: [&str; 3] = ["/sbin/udhcpc", "/usr/sbin/udhcpc", "/bin/udhcpc"];
/// Links need a moment after their cards are switched on.
const LINK_WAIT: Duration = Duration::from_secs(10);

/// Set for the agent that the first process starts.
pub const IN_IMAGE: &str = "MUSTER_AGENT_IN_IMAGE";
/// An agent that ends at once should not keep the machine busy.
const RESTART: Duration = Duration::from_secs(5);

pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Makes a bare kernel into a machine the agent can work on. What fails is noted; the agent goes on with what is there.
pub fn prepare() {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
    ] {
        let _ = std::fs::create_dir_all(target);
        if let Err(error) = sys::mount(kind, Path::new(target), kind, false) {
            note!("{target} is not mounted: {error}");
        }
    }
    let efi = Path::new("/sys/firmware/efi/efivars");
    if efi.exists() {
        let _ = sys::mount("efivarfs", efi, "efivarfs", true);
    }
    load_modules();
    let _ = std::fs::create_dir_all("/etc");
    let machine = Machine::at(Path::new("/"));
    name_disks(&machine);
    configure_network(&machine);
}

fn load_modules() {
    let list = std::fs::read_to_string(MODULES).unwrap_or_default();
    for path in list
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let loaded = File::open(path).and_then(|file| sys::load_module(&file));
        if let Err(error) = loaded {
            note!("{path} is not loaded: {error}");
        }
    }
}

/// Runs the agent as a child, again when it ends, and collects the orphans of programs that steps started. The first
/// process must not end, so it does as little as it can.
pub fn watch_over(program: &Path) -> ! {
    loop {
        match Command::new(program).env(IN_IMAGE, "1").spawn() {
            Ok(child) => while sys::wait_for_any().is_ok_and(|pid| pid != child.id()) {},
            Err(error) => note!("the agent does not start: {error}"),
        }
        Real.sleep(RESTART);
    }
}

/// Without udev nobody names disks by what does not change.
fn name_disks(machine: &Machine) {
    let folder = Path::new("/dev/disk/by-id");
    let _ = std::fs::create_dir_all(folder);
    for disk in crate::collect::inventory(machine, 0).disks {
        if let Some(name) = steady_name(&disk.name, &disk.serial, &disk.wwn, &disk.model) {
            let _ = symlink(format!("../../{}", disk.name), folder.join(name));
        }
    }
}

/// As udev would call it.
fn steady_name(name: &str, serial: &str, wwn: &str, model: &str) -> Option<String> {
    let plain = |text: &str| {
        text.trim()
            .replace(|c: char| !c.is_ascii_alphanumeric() && !".-_".contains(c), "_")
    };
    if !wwn.is_empty() {
        return Some(format!("wwn-{}", plain(wwn)));
    }
    if serial.is_empty() {
        return None;
    }
    let bus = match name {
        _ if name.starts_with("vd") => return Some(format!("virtio-{}", plain(serial))),
        _ if name.starts_with("nvme") => "nvme",
        _ if name.starts_with("sd") => "scsi",
        _ => return None,
    };
    Some(format!("{bus}-{}_{}", plain(model), plain(serial)))
}

fn configure_network(machine: &Machine) {
    let _ = power::link_up("lo");
    let cards: Vec<String> = machine
        .list("sys/class/net")
        .into_iter()
        .filter(|name| machine.exists(&format!("sys/class/net/{name}/device")))
        .collect();
    for card in &cards {
        if let Err(error) = power::link_up(card) {
            note!("{card} does not come up: {error}");
        }
    }
    let has_link = |card: &String| machine.is_set(&format!("sys/class/net/{card}/carrier"));
    let start = Instant::now();
    while !cards.iter().any(has_link) && start.elapsed() < LINK_WAIT {
        Real.sleep(Duration::from_millis(100));
    }
    for card in cards.iter().filter(|card| has_link(card)) {
        if let Err(error) = address(machine, card) {
            note!("{card} has no address: {error:#}");
        }
    }
}

fn address(machine: &Machine, card: &str) -> anyhow::Result<()> {
    if let Some(program) = UDHCPC.iter().find(|path| Path::new(path).exists()) {
        let status = Command::new(program).args(["-n", "-q", "-i", card]).status()?;
        anyhow::ensure!(status.success(), "udhcpc ended with {status}");
        return Ok(());
    }
    let mac = machine.text(&format!("sys/class/net/{card}/address"));
    let mac = crate::probe::arp::parse_mac(&mac).ok_or_else(|| anyhow::anyhow!("{mac} is not a MAC"))?;
    let lease = dhcp::obtain(card, mac)?;
    dhcp::apply(card, &lease)?;
    dhcp::keep(card.to_owned(), mac, lease);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_get_the_names_udev_would_give() {
        assert_eq!(
            steady_name("vda", "disk-one", "", "").as_deref(),
            Some("virtio-disk-one")
        );
        assert_eq!(
            steady_name("sda", "S1", "0x5000c5", "M").as_deref(),
            Some("wwn-0x5000c5")
        );
        assert_eq!(
            steady_name("nvme0n1", "S 1", "", "Fast 1T").as_deref(),
            Some("nvme-Fast_1T_S_1")
        );
        assert_eq!(steady_name("vda", "", "", ""), None);
        assert_eq!(steady_name("sr0", "x", "", ""), None);
    }
}
