//! The genuine CoreOS images of every era are read and written right.

use crate::sample::{self, ERAS, unpacked, whole};
use muster_image::base::areas::{Area, Family};
use muster_image::iso::Iso;
use muster_image::{ImageError, Layout, Payload, overlay};

const IGNITION: &str = r#"{"ignition":{"version":"3.1.0"}}"#;
const ROOTFS: &str = "http://images.example.com/boot-artifacts/rootfs?arch=x86_64&version=4.20";

fn payload() -> Payload {
    Payload {
        ignition: IGNITION.into(),
        ramdisk: None,
        kernel_arguments: Vec::new(),
    }
}

#[test]
fn every_era_has_the_area_its_builder_meant() {
    let found: Vec<(&str, u64, u64)> = ERAS
        .iter()
        .map(|name| {
            let area = sample::era(name).areas.payload.unwrap();
            (*name, area.offset, area.len)
        })
        .collect();
    let expected = [
        ("2020-09", 45 * 2048, 262_144),
        ("2021-01", 0, 262_144),
        ("2021-09", 0, 262_144),
        ("2021-12", 0, 262_144),
        ("2022-02", 0, 262_144),
        ("2022-09", 0, 262_144),
        ("2023-03.s390x", 0, 262_144),
        ("2023-03.x86_64", 0, 262_144),
        ("2023-07.s390x", 0, 262_144),
        ("2023-07.x86_64", 68 * 2048, 262_144),
    ];
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!((found.0, found.2), (expected.0, expected.2));
        assert!(expected.1 == 0 || found.1 == expected.1, "{found:?}");
    }
}

#[test]
fn the_header_in_the_system_area_is_believed_when_there_is_no_named_file() {
    let bytes = sample::bytes("2020-09");
    let named = sample::base(&bytes).areas.payload;
    let hidden = renamed(bytes);
    assert_eq!(sample::base(&hidden).areas.payload, named);
    assert_eq!(sample::base(&hidden).areas.family, Family::Coreos);
}

/// The same image with `ignition.img` under another name.
fn renamed(mut bytes: Vec<u8>) -> Vec<u8> {
    for (old, new) in [("IGNITION.IMG", "IGNITIOX.IMG"), ("ignition.img", "ignitiox.img")] {
        for at in 0..bytes.len() - old.len() {
            if &bytes[at..at + old.len()] == old.as_bytes() {
                bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
            }
        }
    }
    bytes
}

#[test]
fn the_configuration_is_in_the_area_and_every_other_byte_stays() {
    for name in ERAS {
        let base = sample::era(name);
        let before = sample::bytes(name);
        let after = whole(&overlay::full(&base, &payload()).unwrap());
        let Area { offset, len } = base.areas.payload.unwrap();
        let (start, end) = (
            usize::try_from(offset).unwrap(),
            usize::try_from(offset + len).unwrap(),
        );
        assert_eq!(
            unpacked(&after[start..end]),
            [("config.ign".to_owned(), IGNITION.into())],
            "{name}"
        );
        assert!(
            before[..start] == after[..start] && before[end..] == after[end..],
            "{name}"
        );
    }
}

#[test]
fn kernel_arguments_are_appended_in_every_boot_menu() {
    for name in ERAS {
        let base = sample::era(name);
        let mut payload = payload();
        payload.kernel_arguments = vec!["console=ttyS7".into(), "p=1".into()];
        let made = overlay::full(&base, &payload);
        let Some(kargs) = &base.areas.kargs else {
            assert!(
                ["2020-09", "2023-03.s390x"].contains(name),
                "{name} should have room for arguments"
            );
            assert!(matches!(made, Err(ImageError::Absent(_))), "{name}");
            continue;
        };
        assert!(
            kargs.current.contains("ignition.firstboot"),
            "{name}: {}",
            kargs.current
        );
        let made = made.unwrap();
        let again = sample::base(&whole(&made)).areas;
        let expected = format!("{} console=ttyS7 p=1", kargs.current);
        assert_eq!(again.kargs.unwrap().current, expected, "{name}");
        assert_eq!(made.len(), base.areas.len);
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_the_numbers() {
    let base = sample::era("2023-07.x86_64");
    let mut payload = payload();
    payload.kernel_arguments = vec!["x".repeat(1200)];
    let error = overlay::full(&base, &payload).unwrap_err();
    assert!(
        matches!(error, ImageError::TooLarge { room: 1138, .. }),
        "{error}"
    );
    // Exactly full is still fine: the end mark takes one byte.
    let current = base.areas.kargs.as_ref().unwrap().current.len();
    payload.kernel_arguments = vec!["x".repeat(1138 - current - 1)];
    overlay::full(&base, &payload).unwrap();
    payload.kernel_arguments = vec!["x".repeat(1138 - current)];
    overlay::full(&base, &payload).unwrap_err();
}

#[test]
fn a_configuration_that_does_not_fit_is_refused_with_the_numbers() {
    let base = sample::era("2023-07.x86_64");
    let mut payload = payload();
    payload.ignition = sample::noise(300_000).into();
    let error = overlay::full(&base, &payload).unwrap_err();
    let ImageError::TooLarge { have, room, .. } = error else {
        panic!("{error}")
    };
    assert!(have > 262_144 && room == 262_144);
}

#[test]
fn the_minimal_image_of_the_builder_is_made_from_its_table() {
    for name in [
        "2021-12",
        "2022-02",
        "2022-09",
        "2023-03.x86_64",
        "2023-07.x86_64",
        "2023-07.s390x",
    ] {
        let base = sample::era(name);
        let made = overlay::minimal(&base, &payload(), ROOTFS).unwrap();
        let iso = Iso::open(made.clone()).unwrap();
        assert!(iso.find("images/pxeboot/rootfs.img").is_none(), "{name}");
        assert!(iso.find("images/pxeboot/vmlinuz").is_some(), "{name}");
        let again = sample::base(&whole(&made)).areas;
        let line = again.kargs.unwrap().current;
        assert!(
            line.contains(&format!("coreos.live.rootfs_url=\"{ROOTFS}\"")),
            "{name}: {line}"
        );
        assert!(!line.contains("coreos.liveiso="), "{name}: {line}");
        let area = whole(&made.slice(again.payload.unwrap().range()));
        assert_eq!(unpacked(&area), [("config.ign".to_owned(), IGNITION.into())]);
    }
}

#[test]
fn images_without_a_table_are_rewritten_without_their_root_file_system() {
    for name in ["2020-09", "2021-01", "2021-09"] {
        let base = sample::era(name);
        check_rewritten(
            name,
            &base,
            &overlay::minimal(&base, &payload(), ROOTFS).unwrap(),
            IGNITION.len(),
        );
    }
}

#[test]
fn a_payload_too_large_for_the_builders_minimal_image_gets_a_roomier_one() {
    let base = sample::era("2023-07.x86_64");
    let mut payload = payload();
    payload.ramdisk = Some(muster_image::cpio::archive("etc/net/x", &sample::noise(600_000)).into());
    let made = overlay::minimal(&base, &payload, ROOTFS).unwrap();
    let members = check_rewritten("2023-07.x86_64", &base, &made, IGNITION.len());
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["config.ign", "etc", "etc/net", "etc/net/x"]);
}

fn check_rewritten(
    name: &str,
    base: &muster_image::base::Base,
    made: &Layout,
    ignition_len: usize,
) -> Vec<(String, Vec<u8>)> {
    let old = Iso::open(Layout::of_file(&base.file, 0..base.areas.len)).unwrap();
    let new = Iso::open(made.clone()).unwrap();
    assert_eq!(new.find("images/pxeboot/rootfs.img").unwrap().len, 0, "{name}");
    for entry in old.entries.iter().filter(|entry| entry.len > 0) {
        let changed = ["rootfs.img", "ignition.img", ".cfg", "isolinux.bin", "boot.cat"];
        if changed.iter().any(|end| entry.path.ends_with(end)) {
            continue;
        }
        let moved = new.find(&entry.path).unwrap();
        assert_eq!(
            new.read(moved, 1 << 20).unwrap(),
            old.read(entry, 1 << 20).unwrap(),
            "{name} {}",
            entry.path
        );
    }
    for menu in old.entries.iter().filter(|entry| entry.path.ends_with(".cfg")) {
        let bytes = new.read(new.find(&menu.path).unwrap(), 1 << 20).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(
            text.contains(&format!("coreos.live.rootfs_url=\"{ROOTFS}\"")),
            "{name} {}",
            menu.path
        );
        assert!(!text.contains("coreos.liveiso="), "{name} {}", menu.path);
    }
    let area = new.find("images/ignition.img").unwrap();
    let members = unpacked(&whole(&made.slice(area.range())));
    assert_eq!(
        (members[0].0.as_str(), members[0].1.len()),
        ("config.ign", ignition_len),
        "{name}"
    );
    members
}

#[test]
fn the_network_boot_initrd_is_the_images_own_with_archives_behind_it() {
    let base = sample::era("2023-07.x86_64");
    let mut payload = payload();
    payload.ramdisk = Some(muster_image::cpio::packed(&muster_image::cpio::archive("etc/a", b"b")).into());
    let made = whole(&overlay::initrd(&base, &payload).unwrap());
    let own = whole(&base.part(base.areas.initrd, "initrd").unwrap());
    assert_eq!(&made[..own.len()], own);
    let members = unpacked(&made[own.len().next_multiple_of(4)..]);
    assert_eq!(members.len(), 3);
    assert_eq!(members[2], ("etc/a".to_owned(), b"b".to_vec()));
}

#[test]
fn a_mainframe_is_told_the_size_of_the_initrd_we_serve() {
    let base = sample::era("2023-07.s390x");
    let made = whole(&overlay::initrd_addrsize(&base, &payload()).unwrap());
    let initrd = overlay::initrd(&base, &payload()).unwrap();
    assert_eq!(made.len(), 16);
    assert_eq!(made[8..], initrd.len().to_be_bytes());
}

#[test]
fn an_image_without_an_embed_area_gets_one_behind_its_initrd() {
    let mut bytes = renamed(sample::bytes("2020-09"));
    bytes[32744..32768].fill(0);
    let base = sample::base(&bytes);
    assert_eq!(base.areas.family, Family::Generic);
    let mut payload = payload();
    payload.kernel_arguments = vec!["extra=1".into()];
    let made = overlay::full(&base, &payload).unwrap();
    let iso = Iso::open(made.clone()).unwrap();
    let initrd = whole(&made.slice(iso.find("images/pxeboot/initrd.img").unwrap().range()));
    let own = whole(&base.part(base.areas.initrd, "initrd").unwrap());
    assert_eq!(&initrd[..own.len()], own);
    let members = unpacked(&initrd[own.len().next_multiple_of(4)..]);
    assert_eq!(members.last().unwrap().0, "config.ign");
    let menu = iso
        .read(iso.find("EFI/redhat/grub.cfg").unwrap(), 1 << 20)
        .unwrap();
    assert!(String::from_utf8(menu).unwrap().contains("extra=1"));
}

#[test]
fn damaged_images_are_refused_and_never_panic() {
    let bytes = sample::bytes("2023-07.x86_64");
    for cut in (0..bytes.len()).step_by(30_011) {
        let file = sample::file(&bytes[..cut]);
        muster_image::base::import(&file).map(drop).unwrap_or_default();
    }
    let mut state = 7_usize;
    for _ in 0..300 {
        let mut bytes = bytes.clone();
        for _ in 0..20 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let at = 32_768 + (state >> 16) % 60_000;
            bytes[at] = state.to_le_bytes()[7];
        }
        let file = sample::file(&bytes);
        if let Ok(areas) = muster_image::base::import(&file) {
            let base = muster_image::base::Base::open(file, areas).unwrap();
            overlay::full(&base, &payload()).map(drop).unwrap_or_default();
            overlay::minimal(&base, &payload(), ROOTFS)
                .map(drop)
                .unwrap_or_default();
        }
    }
}
