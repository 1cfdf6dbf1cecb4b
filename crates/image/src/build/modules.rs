//! Chooses kernel modules with all they need, and writes the tables the agent loads them by.

use super::elf::{self, ModuleInfo};
use super::error::BuildError;
use super::wanted;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub(super) struct Modules {
    list: BTreeMap<String, Module>,
}

#[derive(Debug)]
pub(super) struct Module {
    /// The name of the file, not packed: `usb-storage.ko`.
    pub file: String,
    pub content: Vec<u8>,
    pub info: ModuleInfo,
    /// What must be loaded before, by name.
    needs: Vec<String>,
}

impl Modules {
    /// From the folder of one kernel, such as `/lib/modules/6.1.0-37-amd64`.
    pub fn read(folder: &Path, kernel_version: &str) -> Result<Modules, BuildError> {
        let mut files = BTreeMap::new();
        walk(folder, &mut files)?;
        if files.is_empty() {
            let text = format!("there is no kernel module below {}", folder.display());
            return Err(BuildError::input(text));
        }
        let relative = |path: &Path| {
            path.strip_prefix(folder)
                .unwrap_or(path)
                .to_string_lossy()
                .into_owned()
        };
        let mut waiting: Vec<String> = files
            .iter()
            .filter(|(name, path)| wanted::is_wanted(&relative(path), name))
            .map(|(name, _)| name.clone())
            .collect();
        let mut modules = Modules::default();
        while let Some(name) = waiting.pop() {
            if modules.list.contains_key(&name) {
                continue;
            }
            let path = files.get(&name).ok_or_else(|| {
                BuildError::input(format!("the kernel module {name} is needed but not there"))
            })?;
            let module = load(path, kernel_version)?;
            waiting.extend(module.needs.iter().cloned());
            modules.list.insert(name, module);
        }
        modules.grant_wishes();
        Ok(modules)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Module> {
        self.list.values()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The kernel would ask a helper program for these, which the image does not have: here they become needs. One that
    /// is neither carried nor known is in the kernel itself.
    fn grant_wishes(&mut self) {
        let wishes: Vec<(String, Vec<String>)> = self
            .list
            .iter()
            .filter(|(_, module)| !module.info.wishes.is_empty())
            .map(|(name, module)| (name.clone(), module.info.wishes.clone()))
            .collect();
        for (name, wishes) in wishes {
            let granted: Vec<String> = wishes.iter().flat_map(|wish| self.known_as(wish)).collect();
            for other in granted {
                let circle = other == name || self.before(&other).contains(&name);
                let module = self.list.get_mut(&name).expect("its name is from the list");
                if !circle && !module.needs.contains(&other) {
                    module.needs.push(other);
                }
            }
        }
    }

    fn known_as(&self, wish: &str) -> Vec<String> {
        let plain = wish.replace('-', "_");
        let is_it = |(name, module): &(&String, &Module)| {
            **name == plain || module.info.aliases.iter().any(|alias| alias == wish)
        };
        self.list
            .iter()
            .filter(is_it)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// All that must be loaded before this one, in the order of loading.
    fn before(&self, name: &str) -> Vec<String> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        self.visit(name, &mut seen, &mut order);
        order.pop();
        order
    }

    fn visit(&self, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<String>) {
        if !seen.insert(name.to_owned()) {
            return;
        }
        for need in self.list.get(name).into_iter().flat_map(|module| &module.needs) {
            self.visit(need, seen, order);
        }
        order.push(name.to_owned());
    }

    /// As `depmod` writes it: what is loaded first stands last.
    pub fn dep(&self) -> String {
        let mut text = String::new();
        for (name, module) in &self.list {
            let _ = write!(text, "{}:", module.file);
            for need in self.before(name).iter().rev() {
                let _ = write!(text, " {}", self.list[need].file);
            }
            text.push('\n');
        }
        text
    }

    /// As `depmod` writes it.
    pub fn alias(&self) -> String {
        let lines = self.list.iter().flat_map(|(name, module)| {
            let aliases = module.info.aliases.iter();
            aliases.map(move |alias| format!("alias {alias} {name}\n"))
        });
        lines.collect()
    }

    /// Paths in the image of what is loaded before everything else, in the order of loading.
    pub fn first(&self) -> String {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in wanted::FIRST.iter().filter(|name| self.list.contains_key(**name)) {
            self.visit(name, &mut seen, &mut order);
        }
        order
            .iter()
            .map(|name| format!("/{}/{}\n", super::initramfs::MODULES, self.list[name].file))
            .collect()
    }
}

/// Names with underscores and where each module is. Links are left alone: `build` and `source` lead far away.
fn walk(folder: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<(), BuildError> {
    let list = std::fs::read_dir(folder).map_err(BuildError::read(folder))?;
    for entry in list {
        let entry = entry.map_err(BuildError::read(folder))?;
        let kind = entry.file_type().map_err(BuildError::read(&entry.path()))?;
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if let Some((stem, _)) = kind.is_file().then(|| stem(&entry.path())).flatten() {
            files.insert(stem.replace('-', "_"), entry.path());
        }
    }
    Ok(())
}

/// How a module is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Xz,
    Zstd,
}

fn stem(path: &Path) -> Option<(String, Packing)> {
    let name = path.file_name()?.to_str()?;
    let forms = [
        (".ko", Packing::None),
        (".ko.gz", Packing::Gzip),
        (".ko.xz", Packing::Xz),
        (".ko.zst", Packing::Zstd),
    ];
    forms
        .into_iter()
        .find_map(|(ending, packing)| Some((name.strip_suffix(ending)?.to_owned(), packing)))
}

fn load(path: &Path, kernel_version: &str) -> Result<Module, BuildError> {
    let (stem, packing) = stem(path).expect("only modules are listed");
    let content = unpacked(path, packing).map_err(BuildError::read(path))?;
    let info = elf::module_info(&content)
        .ok_or_else(|| BuildError::input(format!("{} is not a kernel module", path.display())))?;
    if !kernel_version.is_empty() && info.kernel_version != kernel_version {
        return Err(BuildError::input(format!(
            "the modules are for the kernel {}, not for {kernel_version}",
            info.kernel_version
        )));
    }
    Ok(Module {
        file: format!("{stem}.ko"),
        needs: info.depends.iter().map(|name| name.replace('-', "_")).collect(),
        content,
        info,
    })
}

fn unpacked(path: &Path, packing: Packing) -> std::io::Result<Vec<u8>> {
    let raw = std::fs::read(path)?;
    let mut content = Vec::new();
    match packing {
        Packing::None => return Ok(raw),
        Packing::Gzip => flate2::read::MultiGzDecoder::new(&raw[..]).read_to_end(&mut content)?,
        Packing::Xz => lzma_rust2::XzReader::new(&raw[..], true).read_to_end(&mut content)?,
        Packing::Zstd => ruzstd::decoding::StreamingDecoder::new(&raw[..])
            .map_err(std::io::Error::other)?
            .read_to_end(&mut content)?,
    };
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::elf::tests::module;

    fn tree(modules: &[(&str, &[&str])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, info) in modules {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut info = info.to_vec();
            info.push("vermagic=6.1 SMP");
            std::fs::write(path, module(&info)).unwrap();
        }
        folder
    }

    fn sample() -> tempfile::TempDir {
        tree(&[
            (
                "kernel/drivers/net/virtio_net.ko",
                &["depends=net_failover,virtio", "alias=virtio:d00000001v*"],
            ),
            ("kernel/drivers/net/net_failover.ko", &["depends=failover"]),
            ("kernel/net/core/failover.ko", &["depends="]),
            ("kernel/drivers/virtio/virtio.ko", &["depends="]),
            (
                "kernel/drivers/usb/storage/usb-storage.ko",
                &["depends=usbcore", "softdep=pre: crc32c"],
            ),
            ("kernel/drivers/usb/core/usbcore.ko", &["depends="]),
            ("kernel/crypto/crc32c_generic.ko", &["depends=", "alias=crc32c"]),
            ("kernel/fs/isofs/isofs.ko", &["depends=cdrom"]),
            ("kernel/drivers/cdrom/cdrom.ko", &["depends="]),
            ("kernel/sound/snd.ko", &["depends="]),
        ])
    }

    #[test]
    fn modules_come_with_what_they_need_and_nothing_else() {
        let modules = Modules::read(sample().path(), "6.1").unwrap();
        assert!(modules.list.contains_key("failover") && !modules.list.contains_key("snd"));
        let dep = modules.dep();
        assert!(
            dep.contains("\nvirtio_net.ko: virtio.ko net_failover.ko failover.ko\n"),
            "{dep}"
        );
        assert!(
            dep.contains("\nusb-storage.ko: crc32c_generic.ko usbcore.ko\n"),
            "{dep}"
        );
        assert!(modules.alias().contains("alias virtio:d00000001v* virtio_net\n"));
        assert_eq!(
            modules.first(),
            "/lib/modules/crc32c_generic.ko\n/lib/modules/cdrom.ko\n/lib/modules/isofs.ko\n"
        );
    }

    #[test]
    fn modules_of_another_kernel_and_missing_ones_are_refused() {
        let error = Modules::read(sample().path(), "6.12").unwrap_err().to_string();
        assert!(error.contains("6.1, not for 6.12"), "{error}");
        let broken = tree(&[("kernel/drivers/virtio/virtio_pci.ko", &["depends=virtio_ring"])]);
        let error = Modules::read(broken.path(), "6.1").unwrap_err().to_string();
        assert!(error.contains("virtio_ring is needed"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        assert!(Modules::read(empty.path(), "6.1").is_err());
    }

    #[test]
    fn packed_modules_are_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let content = module(&["depends=", "vermagic=6.1 SMP"]);
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &content).unwrap();
        std::fs::write(folder.path().join("vfat.ko.gz"), packed.finish().unwrap()).unwrap();
        let modules = Modules::read(folder.path(), "6.1").unwrap();
        let vfat = &modules.list["vfat"];
        assert_eq!((vfat.file.as_str(), &vfat.content), ("vfat.ko", &content));
    }
}
