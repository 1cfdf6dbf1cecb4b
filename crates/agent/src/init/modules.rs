//! Loads the kernel modules that this machine's devices ask for.
//!
//! The image brings `/etc/muster/modules`, a list of what is loaded first because no device asks for it, and the tables
//! `modules.alias` and `modules.dep` of its kernel. Every device names what it is in `modalias`; the first table says
//! which module serves it, the second one what that module needs.

use crate::collect::Machine;
use crate::note;
use crate::sys;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

const LIST: &str = "etc/muster/modules";
const ALIASES: &str = "etc/muster/modules.alias";
const NEEDS: &str = "etc/muster/modules.dep";
const FOLDER: &str = "lib/modules";
const BUSES: &str = "sys/bus";

type Load = Box<dyn FnMut(&Path) -> io::Result<()> + Send>;

/// What can be loaded, and what was.
pub struct Modules {
    machine: Machine,
    /// Patterns of devices, each with the module for them.
    aliases: Vec<(String, String)>,
    files: BTreeMap<String, Module>,
    tried: HashSet<String>,
    /// Devices that were probed.
    seen: HashSet<String>,
    load: Load,
}

struct Module {
    path: String,
    needs: Vec<String>,
}

/// `virtio-pci.ko` and `virtio_pci` are the same.
fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file).replace('-', "_")
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

impl Modules {
    pub fn read(machine: &Machine) -> Self {
        let load = |path: &Path| {
            // By itself this one makes a bond that nobody asked for.
            let is_bonding = name_of(&path.to_string_lossy()) == "bonding";
            let options = if is_bonding { "max_bonds=0" } else { "" };
            File::open(path).and_then(|file| sys::load_module(&file, options))
        };
        Self::with(machine, Box::new(load))
    }

    fn with(machine: &Machine, load: Load) -> Self {
        let aliases = machine.text(ALIASES);
        let aliases = lines(&aliases).filter_map(|line| {
            let (pattern, module) = line.strip_prefix("alias ")?.rsplit_once(' ')?;
            Some((pattern.trim().to_owned(), name_of(module)))
        });
        let needs = machine.text(NEEDS);
        let files = lines(&needs).filter_map(|line| {
            let (path, needs) = line.split_once(':')?;
            let needs = needs.split_ascii_whitespace().map(name_of).collect();
            let path = path.to_owned();
            Some((name_of(&path), Module { path, needs }))
        });
        Self {
            machine: machine.clone(),
            aliases: aliases.collect(),
            files: files.collect(),
            tried: HashSet::new(),
            seen: HashSet::new(),
            load,
        }
    }

    /// What the image wants in any case, in its order.
    pub fn load_listed(&mut self) {
        let list = self.machine.text(LIST);
        for line in lines(&list) {
            if line.contains('/') {
                self.tried.insert(name_of(line));
                let path = self.file(line);
                self.load_file(&path);
            } else {
                self.load(&name_of(line));
            }
        }
    }

    /// One module, after all it needs. True when there was something to do.
    pub fn load(&mut self, name: &str) -> bool {
        let Some(module) = self.files.get(name) else {
            return false;
        };
        if !self.tried.insert(name.to_owned()) {
            return false;
        }
        let path = self.file(&module.path);
        // The table names the nearest first.
        for need in module.needs.clone().iter().rev() {
            self.load(need);
        }
        self.load_file(&path);
        true
    }

    fn load_file(&mut self, path: &Path) {
        match (self.load)(path) {
            // It looked, and what it is for is not in this machine.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => note!("cannot load the module {}: {error}", path.display()),
            Ok(()) => {}
        }
    }

    /// Tables name files from the folder of modules; images may keep them all in one folder.
    fn file(&self, path: &str) -> PathBuf {
        if path.starts_with('/') {
            return self.machine.path(path);
        }
        let file = path.rsplit('/').next().unwrap_or(path);
        let folder = self.machine.path(FOLDER);
        let whole = folder.join(path);
        if whole.exists() { whole } else { folder.join(file) }
    }

    /// Loads what devices ask for that were not there before. True when there was something to do: a new driver may
    /// bring new devices.
    pub fn load_for_devices(&mut self) -> bool {
        let mut any = false;
        for device in devices(&self.machine) {
            if !self.seen.insert(device.clone()) {
                continue;
            }
            let wanted: Vec<String> = self
                .aliases
                .iter()
                .filter(|(pattern, _)| matches(pattern.as_bytes(), device.as_bytes()))
                .map(|(_, module)| module.clone())
                .collect();
            for module in wanted {
                any |= self.load(&module);
            }
        }
        any
    }
}

fn devices(machine: &Machine) -> Vec<String> {
    let mut found = Vec::new();
    for bus in machine.list(BUSES) {
        for device in machine.list(&format!("{BUSES}/{bus}/devices")) {
            let text = machine.text(&format!("{BUSES}/{bus}/devices/{device}/modalias"));
            found.extend(lines(&text).map(str::to_owned));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// As shells match names: `*`, `?` and `[a-f]`.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on when the rest does not match: behind the last star, one letter later.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            None if t == text.len() => return true,
            None => None,
            Some(_) => text.get(t).and_then(|c| one(&pattern[p..], *c)),
        };
        match (step, retry) {
            (Some(length), _) => {
                p += length;
                t += 1;
            }
            (None, Some((after, from))) if from < text.len() => {
                retry = Some((after, from + 1));
                (p, t) = (after, from + 1);
            }
            (None, _) => return false,
        }
    }
}

/// How much of the pattern stands for this letter; nothing when it does not.
fn one(pattern: &[u8], c: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|byte| *byte == b']')?;
            let mut set = &rest[..end];
            let mut inside = false;
            while let [first, more @ ..] = set {
                (inside, set) = match more {
                    [b'-', last, after @ ..] => (inside || (*first..=*last).contains(&c), after),
                    after => (inside || *first == c, after),
                };
            }
            inside.then_some(end + 2)
        }
        [letter, ..] => (*letter == c).then_some(1),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn patterns_match_as_the_kernel_means_them() {
        let is = |pattern: &str, text: &str| matches(pattern.as_bytes(), text.as_bytes());
        assert!(is(
            "pci:v00001AF4d*sv*sd*bc*sc*i*",
            "pci:v00001AF4d00001000sv00001AF4sd00000001bc02sc00i00"
        ));
        assert!(!is("pci:v00001AF4d*sv*", "pci:v00008086d00001000sv00001AF4"));
        assert!(is("virtio:d00000002v*", "virtio:d00000002v00001AF4"));
        assert!(is("acpi*:PNP0[5-7]0?:*", "acpi:PNP0601:PNP0600:"));
        assert!(!is("acpi*:PNP0[5-7]0?:*", "acpi:PNP0801:"));
        assert!(is("*", "") && is("a*b*c", "a-b-b-c") && !is("a*b*c", "a-b-b-d") && !is("", "a"));
    }

    fn world() -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, content: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        file(LIST, "# first\n/lib/modules/isofs.ko\nnls-utf8\n");
        file(
            ALIASES,
            "# made by depmod\nalias pci:v00001AF4d* virtio_pci\nalias virtio:d00000001v* virtio_net\n\
             alias virtio:d00000001v* failover\nalias fs-iso9660 isofs\n",
        );
        file(
            NEEDS,
            "kernel/drivers/virtio/virtio-pci.ko: kernel/drivers/virtio/virtio_ring.ko kernel/drivers/virtio/virtio.ko\n\
             virtio_ring.ko: virtio.ko\nvirtio.ko:\nvirtio_net.ko: net_failover.ko failover.ko\nnet_failover.ko: failover.ko\n\
             failover.ko:\nnls_utf8.ko:\nisofs.ko:\n",
        );
        file("lib/modules/kernel/drivers/virtio/virtio.ko", "");
        file(
            "sys/bus/pci/devices/0000:00:01.0/modalias",
            "pci:v00001AF4d00001000\n",
        );
        let machine = Machine::at(root.path());
        (root, machine)
    }

    #[test]
    fn devices_get_their_modules_after_all_they_need_and_each_once() {
        let (root, machine) = world();
        let loaded: Arc<Mutex<Vec<String>>> = Arc::default();
        let own = loaded.clone();
        let load = move |path: &Path| {
            own.lock().unwrap().push(name_of(path.to_str().unwrap()));
            Ok(())
        };
        let mut modules = Modules::with(&machine, Box::new(load));
        modules.load_listed();
        assert_eq!(*loaded.lock().unwrap(), ["isofs", "nls_utf8"]);
        assert!(modules.load_for_devices());
        assert_eq!(
            loaded.lock().unwrap()[2..],
            ["virtio", "virtio_ring", "virtio_pci"]
        );
        assert!(!modules.load_for_devices(), "nothing new");
        let bus = root.path().join("sys/bus/virtio/devices/virtio0");
        std::fs::create_dir_all(&bus).unwrap();
        std::fs::write(bus.join("modalias"), "virtio:d00000001v00001AF4\n").unwrap();
        assert!(modules.load_for_devices());
        assert_eq!(
            loaded.lock().unwrap()[5..],
            ["failover", "net_failover", "virtio_net"]
        );
        let whole = modules.file("kernel/drivers/virtio/virtio.ko");
        assert!(whole.ends_with("lib/modules/kernel/drivers/virtio/virtio.ko"));
        let flat = modules.file("kernel/drivers/virtio/virtio-pci.ko");
        assert!(flat.ends_with("lib/modules/virtio-pci.ko"));
    }

    #[test]
    fn a_module_that_cannot_be_loaded_does_not_stop_the_others() {
        let (_root, machine) = world();
        let mut modules = Modules::with(&machine, Box::new(|_: &Path| Err(io::Error::other("no"))));
        modules.load_listed();
        assert!(modules.load_for_devices());
        assert!(!modules.load("virtio"), "tried once");
        assert!(!modules.load("nothing"));
    }
}
