//! Images made by `build`, read back by everything that serves them.

use crate::sample::{unpacked, whole};
use muster_image::base::areas::Family;
use muster_image::base::inspection::{Config, inspect};
use muster_image::base::{Base, import};
use muster_image::build::{self, BuildError, Built, KernelSource, Plan, Role};
use muster_image::iso::Iso;
use muster_image::{Layout, Payload, overlay};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Kernel and agent are nothing but their heads: these images are read, not booted.
fn plan(folder: &Path, role: Role, name: &str) -> Plan {
    let mut kernel = vec![7; 100_000];
    kernel[0x202..0x206].copy_from_slice(b"HdrS");
    kernel[0x20e..0x210].copy_from_slice(&[0x80, 0]);
    kernel[0x280..0x284].copy_from_slice(b"6.1\0");
    let mut agent = vec![0; 64];
    agent[..6].copy_from_slice(b"\x7fELF\x02\x01");
    agent[0x12] = 62;
    fs::write(folder.join("vmlinuz"), kernel).unwrap();
    fs::write(folder.join("agent"), agent).unwrap();
    Plan {
        role,
        agent: folder.join("agent"),
        kernel: KernelSource::Files {
            kernel: folder.join("vmlinuz"),
            modules: None,
        },
        append: "own.word=1".to_owned(),
        target: folder.join(name),
        date: 1_700_000_000,
    }
}

/// `None` where the distribution's programs are not installed; on CI they must be.
fn built(plan: &Plan) -> Option<Built> {
    match build::build(plan, &mut |_| {}) {
        Ok(built) => Some(built),
        Err(BuildError::Missing { packages, .. }) => {
            let text = format!(
                "\nSKIPPED building images: {} are not installed\n",
                packages.join(" ")
            );
            std::io::stderr().write_all(text.as_bytes()).unwrap();
            assert!(std::env::var_os("CI").is_none(), "CI must build images");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn payload() -> Payload {
    Payload {
        ignition: br#"{"ignition":{"version":"3.4.0"}}"#.to_vec().into(),
        ramdisk: None,
        kernel_arguments: vec!["console=ttyS1".into(), "x=y".into()],
    }
}

#[test]
fn a_discovery_image_takes_a_configuration_and_arguments_in_every_form() {
    let folder = TempDir::new().unwrap();
    let plan = plan(folder.path(), Role::Discovery, "d.iso");
    let Some(built) = built(&plan) else { return };
    let file = Arc::new(File::open(&plan.target).unwrap());
    let areas = import(&file).unwrap();
    assert_eq!(
        (areas.family, areas.volume.as_str()),
        (Family::Muster, "MUSTER-DISCOVERY")
    );
    assert_eq!((&areas.sha256, areas.len), (&built.sha256, built.bytes));
    assert_eq!(areas.payload.unwrap().len, 256 * 1024);
    let base = Base::open(file, areas).unwrap();

    let full = overlay::full(&base, &payload()).unwrap();
    let minimal = overlay::minimal(&base, &payload(), "http://hub/rootfs").unwrap();
    assert_eq!(whole(&full), whole(&minimal), "there is nothing to fetch");
    assert_eq!(full.len(), built.bytes);
    let iso = Iso::open(Layout::of_bytes(whole(&full))).unwrap();
    let read = |path: &str| iso.read(iso.find(path).unwrap(), 1 << 20).unwrap();
    let members = unpacked(&read("muster/config.img"));
    assert_eq!(members, [("config.ign".to_owned(), payload().ignition.to_vec())]);
    for menu in ["isolinux/isolinux.cfg", "boot/grub/grub.cfg"] {
        let text = String::from_utf8(read(menu)).unwrap();
        // The serial port of the InfraEnv instead of the image's own: Linux takes the first it is told.
        let own = built.kernel_arguments.replace(" console=ttyS0,115200n8", "");
        let line = format!("{own} console=ttyS1 x=y\n#");
        assert!(text.contains(&line), "{text}");
        assert!(
            text.contains("/muster/config.img") && text.contains("own.word=1"),
            "{text}"
        );
    }

    let initrd = whole(&overlay::initrd(&base, &payload()).unwrap());
    let members = unpacked(&initrd);
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    for name in [
        "init",
        "dev/console",
        "etc/muster/modules",
        "etc/muster/modules.dep",
        "config.ign",
    ] {
        assert!(names.contains(&name), "{name} is missing in {names:?}");
    }
    let kernel = base.part(base.areas.kernel, "kernel").unwrap();
    assert_eq!(whole(&kernel), fs::read(folder.path().join("vmlinuz")).unwrap());
}

#[test]
fn equal_input_gives_equal_images() {
    let folder = TempDir::new().unwrap();
    let Some(one) = built(&plan(folder.path(), Role::Discovery, "one.iso")) else {
        return;
    };
    let two = built(&plan(folder.path(), Role::Discovery, "two.iso")).unwrap();
    assert_eq!(one.sha256, two.sha256);
    let mut other = plan(folder.path(), Role::Discovery, "three.iso");
    other.append = "own.word=2".to_owned();
    assert_ne!(built(&other).unwrap().sha256, one.sha256);
}

#[test]
fn a_system_has_a_marked_place_for_its_configuration_and_is_no_base_image() {
    let folder = TempDir::new().unwrap();
    let plan = plan(folder.path(), Role::System, "system.img");
    let Some(built) = built(&plan) else { return };
    assert!(built.kernel_arguments.contains(" muster.system "));
    let file = Arc::new(File::open(&plan.target).unwrap());
    let error = import(&file).unwrap_err().to_string();
    assert!(error.contains("a system to be installed"), "{error}");

    let seen = inspect(&file, true).unwrap();
    assert_eq!(
        (seen.role, seen.config, seen.volume.as_str()),
        (Some(Role::System), Config::None, "MUSTER-SYSTEM")
    );
    assert_eq!(seen.sha256, Some(built.sha256));
    let area = seen.areas.iter().find(|area| area.name == "config").unwrap();
    assert_eq!((area.offset % 512, area.length), (0, 256 * 1024));
    let image = fs::read(&plan.target).unwrap();
    let start = usize::try_from(area.offset).unwrap();
    assert!(image[start..].starts_with(b"MUSTER-CONFIG-0\n\0\0\x04\0\0\0\0\0"));
    // Both ways to boot from a disk it is written to.
    assert_eq!(&image[510..512], [0x55, 0xaa]);
    assert_eq!(&image[512..520], b"EFI PART");
}

#[test]
fn a_failed_build_leaves_what_was_there() {
    let folder = TempDir::new().unwrap();
    let mut plan = plan(folder.path(), Role::Discovery, "d.iso");
    fs::write(&plan.target, b"old").unwrap();
    fs::write(folder.path().join("vmlinuz"), b"no kernel").unwrap();
    match build::build(&plan, &mut |_| {}).unwrap_err() {
        BuildError::Missing { .. } => {
            built(&plan);
        }
        error => assert!(error.to_string().contains("not a Linux kernel"), "{error}"),
    }
    assert_eq!(fs::read(&plan.target).unwrap(), b"old");
    plan.target = folder.path().to_owned();
    assert!(build::build(&plan, &mut |_| {}).is_err());
}
