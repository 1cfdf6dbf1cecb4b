//! Builds Muster's own images: a distribution's kernel, and the agent as init. Bootable by BIOS and UEFI, from a CD and,
//! written raw, from a disk.

mod disc;
mod elf;
mod error;
mod initramfs;
mod kernel;
pub mod menu;
mod modules;
mod tar;
mod tools;
mod wanted;

pub use crate::base::description::Role;
use crate::base::description::{Description, InFile};
use crate::base::{OWN_CONFIG_PATH, OWN_DESCRIPTION, hex};
use disc::Disc;
pub use error::BuildError;
use kernel::Kernel;
pub use kernel::KernelSource;
use menu::{CONFIG, CONFIG_BYTES, INITRD, KERNEL};
use modules::Modules;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// First bytes of the place where the installer leaves the configuration of a system, followed by the size of the
/// place. The agent knows them too; see its `install::area`.
pub const SYSTEM_AREA_MARK: &[u8; 16] = b"MUSTER-CONFIG-0\n";
/// The same with a configuration in it.
pub const SYSTEM_AREA_FILLED: &[u8; 16] = b"MUSTER-CONFIG-1\n";

/// What to build.
#[derive(Clone, Debug)]
pub struct Plan {
    pub role: Role,
    /// A static program, init of the image.
    pub agent: PathBuf,
    pub kernel: KernelSource,
    /// More kernel arguments.
    pub append: String,
    pub target: PathBuf,
    /// Every date in the image, in seconds since 1970: equal input gives equal bytes.
    pub date: u64,
}

/// What was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Built {
    pub file: PathBuf,
    pub role: Role,
    pub volume: String,
    pub kernel_version: String,
    /// A path, or a package with its version.
    pub kernel_origin: String,
    pub modules: usize,
    pub kernel_arguments: String,
    pub initrd_bytes: u64,
    pub bytes: u64,
    pub sha256: String,
}

/// Takes some seconds, and waits for programs; not for async code. `say` hears what is being done.
pub fn build(plan: &Plan, say: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
    // Small mistakes first: nothing is fetched before they are known.
    let menus = menu::menus(plan.role, &plan.append)?;
    let from_package = matches!(plan.kernel, KernelSource::Package { .. });
    let agent = agent(&plan.agent)?;
    let loaders = tools::check(from_package)?;
    let folder = folder(&plan.target)?;

    let kernel = kernel::kernel(&plan.kernel, say)?;
    say(&format!(
        "kernel {} from {}, {}",
        kernel.version,
        kernel.origin,
        mebibytes(kernel.content.len())
    ));
    let modules = match &kernel.modules {
        Some(folder) => Modules::read(folder, &kernel.version)?,
        None => Modules::default(),
    };
    let initrd = initramfs::initramfs(&agent, &modules);
    say(&format!(
        "initramfs with the agent ({}) and {} modules, {} packed",
        mebibytes(agent.len()),
        modules.len(),
        mebibytes(initrd.len())
    ));

    let work = tempfile::tempdir_in(&folder).map_err(BuildError::written(&folder))?;
    let disc = Disc {
        role: plan.role,
        loaders: &loaders,
        work: work.path(),
        date: plan.date,
    };
    let kernel_arguments = menus.kargs.default.clone();
    disc.put(KERNEL, &kernel.content)?;
    disc.put(INITRD, &initrd)?;
    disc.put(CONFIG, &config_area(plan.role))?;
    disc.put(OWN_DESCRIPTION, &described(plan.role, &kernel, &menus))?;
    let aside = work.path().join("image.iso");
    disc.write(&menus, &aside)?;
    let (bytes, sha256) = summed(&aside)?;
    fs::rename(&aside, &plan.target).map_err(BuildError::written(&plan.target))?;
    Ok(Built {
        file: plan.target.clone(),
        role: plan.role,
        volume: plan.role.volume().to_owned(),
        kernel_version: kernel.version,
        kernel_origin: kernel.origin,
        modules: modules.len(),
        kernel_arguments,
        initrd_bytes: initrd.len() as u64,
        bytes,
        sha256,
    })
}

fn agent(path: &Path) -> Result<Vec<u8>, BuildError> {
    let agent = fs::read(path).map_err(BuildError::read(path))?;
    let name = path.display();
    if !elf::is_program(&agent) {
        return Err(BuildError::input(format!(
            "{name} is not a Linux program for x86_64"
        )));
    }
    if !elf::is_static(&agent) {
        return Err(BuildError::input(format!(
            "{name} needs libraries, which the image does not have; build it for x86_64-unknown-linux-musl"
        )));
    }
    Ok(agent)
}

/// The image is made beside its final place, so that it appears whole or not at all.
fn folder(target: &Path) -> Result<PathBuf, BuildError> {
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        Some(_) | None => PathBuf::from("."),
    };
    if target.is_dir() || target.file_name().is_none() {
        return Err(BuildError::input(format!(
            "{} is not a name for a file",
            target.display()
        )));
    }
    fs::create_dir_all(&folder).map_err(BuildError::written(&folder))?;
    Ok(folder)
}

fn config_area(role: Role) -> Vec<u8> {
    let mut area = Vec::new();
    match role {
        Role::Discovery => {}
        Role::System => {
            area.extend_from_slice(SYSTEM_AREA_MARK);
            area.extend_from_slice(&CONFIG_BYTES.to_le_bytes());
        }
    }
    area.resize(usize::try_from(CONFIG_BYTES).unwrap_or_default(), 0);
    area
}

fn described(role: Role, kernel: &Kernel, menus: &menu::Menus) -> Vec<u8> {
    let payload = InFile {
        file: CONFIG.to_owned(),
        offset: 0,
        length: Some(CONFIG_BYTES),
    };
    let description = Description {
        role,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel_version: kernel.version.clone(),
        kernel: KERNEL.to_owned(),
        initrd: INITRD.to_owned(),
        payload: (role == Role::Discovery).then_some(payload),
        kargs: Some(menus.kargs.clone()),
        config_path: (role == Role::Discovery).then(|| OWN_CONFIG_PATH.to_owned()),
    };
    let mut text = serde_json::to_vec_pretty(&description).expect("texts and numbers are JSON");
    text.push(b'\n');
    text
}

fn summed(path: &Path) -> Result<(u64, String), BuildError> {
    let content = fs::read(path).map_err(BuildError::read(path))?;
    Ok((content.len() as u64, hex(&Sha256::digest(&content))))
}

fn mebibytes(bytes: usize) -> String {
    let tenths = bytes * 10 / (1024 * 1024);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
