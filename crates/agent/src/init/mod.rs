//! The agent as the first process of an image: it makes the machine ready and looks after it.
//!
//! It mounts what programs expect, loads modules, names disks as udev would, brings up the network, and starts the agent
//! as its child. Devices, disks and cards that appear later are attended to as they come.

mod connection;
pub mod dhcp;
mod ipv6;
mod modules;
pub mod names;
pub mod network;
mod stack;

use crate::clock::{Clock, Real};
use crate::collect::Machine;
use crate::ignition::Config;
use crate::sys::{self, netlink};
use crate::{discovery, identity, log, note, system};
use modules::Modules;
use network::Network;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Set for the agent that the first process starts.
pub const IN_IMAGE: &str = "MUSTER_AGENT_IN_IMAGE";
/// An agent that ends at once should not keep the machine busy.
const RESTART: Duration = Duration::from_secs(5);
/// New drivers find their devices a moment later; when nothing new comes for five such looks, all is there.
const LOOK: Duration = Duration::from_millis(200);
const QUIET_LOOKS: u32 = 5;
/// Disks behind slow controllers.
const DISK_WAIT_LOOKS: u32 = 150;
/// Switches may forward nothing for half a minute after a link comes up.
const ADDRESS_WAIT: Duration = Duration::from_secs(60);
/// Between looks for devices that were plugged in.
const CARE: Duration = Duration::from_secs(5);

pub fn is_init() -> bool {
    std::process::id() == 1
}

/// Makes a bare kernel into a machine the agent can work on. What fails is noted; the agent goes on with what is there.
/// Returns what the agent is to find in its environment.
pub fn prepare() -> Vec<(String, String)> {
    mount();
    open_consoles();
    note!("muster-agent {} is the first process", env!("CARGO_PKG_VERSION"));
    let machine = Machine::at(Path::new("/"));
    let mut care = Care {
        modules: Modules::read(&machine),
        network: Network::new(&machine),
        disks: Vec::new(),
        machine,
    };
    care.start();
    let config = std::fs::read(care.machine.path(discovery::CONFIG)).unwrap_or_default();
    if system::is_it(&care.machine) {
        care.await_config();
    } else {
        write_network(&care.machine, &config);
    }
    name_host(&care.machine, false);
    care.network_up();
    name_host(&care.machine, true);
    std::thread::spawn(move || care.run());
    discovery::environment(&config)
}

fn mount() {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
        ("tmpfs", "/tmp"),
    ] {
        let _ = std::fs::create_dir_all(target);
        match sys::mount(kind, Path::new(target), kind, false) {
            // Kernels may mount /dev by themselves.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => note!("cannot mount {target}: {error}"),
            Ok(()) => {}
        }
    }
    let _ = std::fs::create_dir_all("/etc");
}

/// It tells whether Secure Boot is on; its file system may be a module.
fn mount_firmware() {
    let efi = Path::new("/sys/firmware/efi/efivars");
    if efi.exists()
        && let Err(error) = sys::mount("efivarfs", efi, "efivarfs", true)
    {
        note!("cannot mount the firmware's variables: {error}");
    }
}

/// An image without /dev/console starts its first process with nothing to write to.
fn open_consoles() {
    let console = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOCTTY)
        .open("/dev/console");
    if let Ok(console) = console {
        let _ = sys::become_console(&console);
    }
    show_on_consoles();
}

/// All consoles but the one that programs write to anyway.
pub fn show_on_consoles() {
    let active = std::fs::read_to_string("/sys/class/tty/console/active").unwrap_or_default();
    let mut names: Vec<&str> = active.split_ascii_whitespace().collect();
    names.pop();
    let open = |name: &&str| -> Option<File> {
        let path = format!("/dev/{name}");
        let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
        OpenOptions::new().write(true).custom_flags(flags).open(path).ok()
    };
    log::show_on(names.iter().filter_map(open).collect());
}

/// Full images have the network settings in their config; others have them as files already.
fn write_network(machine: &Machine, config: &[u8]) {
    let config = Config::parse(config).unwrap_or_default();
    let is_one = |path: &str| path.trim_start_matches('/').starts_with(network::SETTINGS);
    for file in config.files().filter(|file| is_one(&file.path)) {
        if let Err(error) = file.write(&machine.root) {
            note!("{} is not written: {error:#}", file.path);
        }
    }
}

/// A config names the machine, or DHCP does; as a last resort it is called after its first card, for hubs want names
/// that differ.
fn name_host(machine: &Machine, is_last: bool) {
    let set = machine.text("etc/hostname");
    let has_none = matches!(machine.hostname().as_str(), "" | "(none)" | "localhost");
    let name = if !set.is_empty() {
        set
    } else if is_last && has_none {
        identity::smallest_mac(machine)
            .unwrap_or_default()
            .replace(':', "-")
    } else {
        return;
    };
    if !name.is_empty()
        && let Err(error) = sys::set_hostname(&name)
    {
        note!("cannot name the machine {name}: {error}");
    }
}

/// What is looked after as long as the machine runs.
struct Care {
    machine: Machine,
    modules: Modules,
    network: Network,
    /// Those that have their names.
    disks: Vec<String>,
}

impl Care {
    fn start(&mut self) {
        self.modules.load_listed();
        mount_firmware();
        let mut quiet = 0;
        while quiet < QUIET_LOOKS {
            if self.modules.load_for_devices() {
                quiet = 0;
            } else {
                quiet += 1;
                Real.sleep(LOOK);
            }
        }
        self.name_disks();
    }

    fn await_config(&mut self) {
        for _ in 0..DISK_WAIT_LOOKS {
            match system::unpack(&self.machine) {
                Ok(Some(())) => return,
                Ok(None) => {}
                Err(error) => return note!("muster-system: {error:#}"),
            }
            self.modules.load_for_devices();
            Real.sleep(LOOK);
        }
        note!("muster-system: no disk holds a config for this host yet");
    }

    fn network_up(&mut self) {
        if let Err(error) = netlink::link_up("lo") {
            note!("lo does not come up: {error}");
        }
        // No device asks for tagged networks, bonds and bridges, only settings do.
        if [network::SETTINGS, network::KEPT]
            .iter()
            .any(|folder| self.machine.exists(folder))
        {
            for name in ["8021q", "bonding", "bridge"] {
                self.modules.load(name);
            }
        }
        self.network.attend();
        self.network.wait(ADDRESS_WAIT);
    }

    fn run(mut self) -> ! {
        loop {
            Real.sleep(CARE);
            while self.modules.load_for_devices() {
                Real.sleep(LOOK);
            }
            self.name_disks();
            self.network.attend();
        }
    }

    /// Without udev nobody names disks by what does not change.
    fn name_disks(&mut self) {
        let disks = self.machine.list("sys/block");
        if disks == self.disks {
            return;
        }
        self.disks = disks;
        let folder = Path::new("/dev/disk/by-id");
        let _ = std::fs::create_dir_all(folder);
        for disk in crate::collect::inventory(&self.machine, 0).disks {
            if let Some(name) = steady_name(&disk.name, &disk.serial, &disk.wwn, &disk.model) {
                let _ = symlink(format!("../../{}", disk.name), folder.join(name));
            }
        }
    }
}

/// Runs the agent as a child, again when it ends, and collects the orphans of programs that steps started. The first
/// process must not end, so it does as little as it can.
pub fn watch_over(program: &Path, environment: &[(String, String)]) -> ! {
    loop {
        let variables = environment.iter().map(|(name, value)| (name, value));
        match Command::new(program).envs(variables).env(IN_IMAGE, "1").spawn() {
            Ok(child) => while sys::wait_for_any().is_ok_and(|pid| pid != child.id()) {},
            Err(error) => note!("cannot start the agent: {error}"),
        }
        Real.sleep(RESTART);
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
