//! The kernel of an image: files that are given, or a package of the distribution that is fetched but never installed.

use super::error::BuildError;
use super::tools;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the kernel comes from.
#[derive(Clone, Debug)]
pub enum KernelSource {
    Files {
        kernel: PathBuf,
        /// The folder of this kernel's modules. Without it the kernel has all it needs built in.
        modules: Option<PathBuf>,
    },
    Package {
        name: String,
        /// Kernels stay here for the next time.
        cache: PathBuf,
    },
}

#[derive(Debug)]
pub(super) struct Kernel {
    pub content: Vec<u8>,
    pub version: String,
    pub modules: Option<PathBuf>,
    /// For people: a path or a package with its version.
    pub origin: String,
}

pub(super) fn kernel(source: &KernelSource, say: &mut dyn FnMut(&str)) -> Result<Kernel, BuildError> {
    match source {
        KernelSource::Files { kernel, modules } => {
            open(kernel, modules.clone(), kernel.display().to_string())
        }
        KernelSource::Package { name, cache } => {
            let folder = fetched(name, cache, say)?;
            let origin = folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let (kernel, modules) = inside(&folder)?;
            open(&kernel, Some(modules), origin)
        }
    }
}

fn open(path: &Path, modules: Option<PathBuf>, origin: String) -> Result<Kernel, BuildError> {
    let content = fs::read(path).map_err(BuildError::read(path))?;
    let version = version(&content).ok_or_else(|| {
        BuildError::input(format!(
            "{} is not a Linux kernel for PCs (bzImage)",
            path.display()
        ))
    })?;
    Ok(Kernel {
        content,
        version,
        modules,
        origin,
    })
}

/// The release, from the header boot loaders read.
fn version(kernel: &[u8]) -> Option<String> {
    if kernel.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let at = 0x200 + usize::from(u16::from_le_bytes([*kernel.get(0x20e)?, *kernel.get(0x20f)?]));
    let text = kernel.get(at..)?.split(|byte| *byte == 0).next()?;
    let text = std::str::from_utf8(text).ok()?;
    Some(text.split_whitespace().next()?.to_owned())
}

/// The newest kernel in an unpacked package, and its modules.
fn inside(folder: &Path) -> Result<(PathBuf, PathBuf), BuildError> {
    let boot = folder.join("boot");
    let names = fs::read_dir(&boot).map_err(BuildError::read(&boot))?;
    let mut kernels: Vec<String> = names
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with("vmlinuz-"))
        .collect();
    kernels.sort();
    let name = kernels
        .pop()
        .ok_or_else(|| BuildError::input(format!("there is no kernel in {}", boot.display())))?;
    let version = name.trim_start_matches("vmlinuz-");
    let modules = ["lib/modules", "usr/lib/modules"]
        .map(|place| folder.join(place).join(version))
        .into_iter()
        .find(|path| path.is_dir())
        .ok_or_else(|| {
            BuildError::input(format!("there are no modules for {name} in {}", folder.display()))
        })?;
    Ok((boot.join(&name), modules))
}

/// The folder of the unpacked package, from the cache when it is there.
fn fetched(name: &str, cache: &Path, say: &mut dyn FnMut(&str)) -> Result<PathBuf, BuildError> {
    if !is_plain(name) {
        return Err(BuildError::input(format!(
            "{name:?} is not the name of a package"
        )));
    }
    let last = cache.join(format!("{name}.last"));
    let packages = match resolved(name) {
        Ok(packages) => packages,
        // Package lists may be gone or the network away; what was fetched before is still good.
        Err(error) => {
            let known = fs::read_to_string(&last)
                .ok()
                .map(|known| cache.join(known.trim()));
            return match known.filter(|folder| folder.is_dir()) {
                Some(folder) => {
                    say(&format!(
                        "the package lists do not help ({error}); using the kernel of last time"
                    ));
                    Ok(folder)
                }
                None => Err(error),
            };
        }
    };
    let key = packages[0].key();
    let folder = cache.join(&key);
    if !folder.is_dir() {
        fs::create_dir_all(cache).map_err(BuildError::written(cache))?;
        say(&format!("fetching {key} (apt-get download; it is not installed)"));
        fetch(&packages, cache, &folder)?;
    }
    fs::write(&last, &key).map_err(BuildError::written(&last))?;
    Ok(folder)
}

fn fetch(packages: &[Package], cache: &Path, folder: &Path) -> Result<(), BuildError> {
    let work = tempfile::tempdir_in(cache).map_err(BuildError::written(cache))?;
    let names = packages
        .iter()
        .map(|package| format!("{}={}", package.name, package.version));
    tools::run(
        Command::new("apt-get")
            .arg("--quiet")
            .arg("download")
            .args(names)
            .current_dir(work.path()),
    )?;
    let tree = work.path().join("tree");
    for entry in fs::read_dir(work.path()).map_err(BuildError::read(work.path()))? {
        let path = entry.map_err(BuildError::read(work.path()))?.path();
        if path.extension().is_some_and(|ending| ending == "deb") {
            tools::run(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(&tree))?;
        }
    }
    match fs::rename(&tree, folder) {
        // Somebody else fetched the same meanwhile.
        Err(_) if folder.is_dir() => Ok(()),
        done => done.map_err(BuildError::written(folder)),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Package {
    name: String,
    version: String,
    depends: Vec<String>,
}

impl Package {
    fn key(&self) -> String {
        // Versions may have colons, which are no good in paths.
        format!("{}_{}", self.name, self.version.replace(':', "-"))
    }
}

/// The package with the kernel, behind any number of names that only point to it, and those with its modules where a
/// distribution keeps them apart.
fn resolved(name: &str) -> Result<Vec<Package>, BuildError> {
    let mut package = shown(name)?;
    for _ in 0..4 {
        match package
            .depends
            .iter()
            .find(|depend| depend.starts_with("linux-image-"))
        {
            Some(next) => package = shown(next)?,
            None => break,
        }
    }
    let modules = package
        .depends
        .iter()
        .filter(|name| name.starts_with("linux-modules-"));
    let modules = modules.map(|name| shown(name)).collect::<Result<Vec<_>, _>>()?;
    Ok([vec![package], modules].concat())
}

fn shown(name: &str) -> Result<Package, BuildError> {
    let text = tools::run(Command::new("apt-cache").args(["--no-all-versions", "show", name]));
    let unknown = || {
        BuildError::input(format!(
            "the package lists of this machine have no {name}; `apt-get update` fetches them, and --kernel takes a file"
        ))
    };
    let text = text.map_err(|_| unknown())?;
    parsed(&String::from_utf8_lossy(&text)).ok_or_else(unknown)
}

fn parsed(text: &str) -> Option<Package> {
    let field = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::to_owned)
    };
    // Alternatives and versions do not matter: kernels name one package exactly.
    let depends = field("Depends").unwrap_or_default();
    let first = |one: &str| one.split_whitespace().next().map(str::to_owned);
    Some(Package {
        name: field("Package")?,
        version: field("Version")?,
        depends: depends.split(',').filter_map(first).collect(),
    })
}

fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_only_points_to_the_kernel_is_read() {
        let text = "Package: linux-image-amd64\nSource: linux-signed-amd64 (6.1.140+1)\nVersion: 6.1.140-1\n\
                    Depends: linux-image-6.1.0-37-amd64 (= 6.1.140-1)\nDescription: Linux\n";
        let package = parsed(text).unwrap();
        assert_eq!(package.depends, ["linux-image-6.1.0-37-amd64"]);
        assert_eq!(package.key(), "linux-image-amd64_6.1.140-1");
        assert_eq!(parsed("N: no packages found"), None);
    }

    #[test]
    fn names_cannot_be_options_or_paths() {
        assert!(is_plain("linux-image-6.1.0-37-cloud-amd64"));
        for name in ["", "-o", "../x", "a/b", "a b"] {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn the_version_is_read_from_the_header() {
        let mut kernel = vec![0; 0x300];
        kernel[0x202..0x206].copy_from_slice(b"HdrS");
        kernel[0x20e] = 0x80;
        kernel[0x280..0x280 + 14].copy_from_slice(b"6.1.0-37 (me@x");
        assert_eq!(version(&kernel).as_deref(), Some("6.1.0-37"));
        assert_eq!(version(&kernel[..0x100]), None);
        assert_eq!(version(&vec![0; 0x300]), None);
    }

    #[test]
    fn kernel_and_modules_are_found_in_both_layouts() {
        for place in ["lib/modules", "usr/lib/modules"] {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("boot")).unwrap();
            fs::write(folder.path().join("boot/vmlinuz-6.1"), b"").unwrap();
            assert!(inside(folder.path()).is_err(), "no modules yet");
            fs::create_dir_all(folder.path().join(place).join("6.1")).unwrap();
            let (kernel, modules) = inside(folder.path()).unwrap();
            assert!(kernel.ends_with("boot/vmlinuz-6.1") && modules.ends_with(format!("{place}/6.1")));
        }
    }
}
