//! What the agent of a simulated machine finds in it.

use crate::machine::{GATEWAY, Machine, NETWORK, PREFIX};
use crate::profile::{Bus, DiskSpec, Profile};
use muster_contract::v2::agent::inventory::{
    Boot, Cpu, Disk, DiskEligibility, Gpu, Interface, Inventory, Memory, Route, SystemVendor,
};

const X86_FLAGS: &str = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse \
    sse2 ss ht syscall nx pdpe1gb rdtscp lm constant_tsc arch_perfmon rep_good nopl xtopology cpuid pni pclmulqdq vmx \
    ssse3 fma cx16 pdcm pcid sse4_1 sse4_2 x2apic movbe popcnt tsc_deadline_timer aes xsave avx f16c rdrand lahf_lm abm \
    3dnowprefetch cpuid_fault ssbd ibrs ibpb stibp tpr_shadow vnmi flexpriority ept vpid ept_ad fsgsbase tsc_adjust \
    bmi1 avx2 smep bmi2 erms invpcid avx512f avx512dq rdseed adx smap clflushopt clwb avx512cd avx512bw avx512vl \
    xsaveopt xsavec xgetbv1 xsaves arat pku ospke avx512_vnni md_clear arch_capabilities";
const ARM_FLAGS: &str =
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs";

const GIB: i64 = 1 << 30;

/// A bit of a revision: the disks are too small for anything.
pub const SHRUNK: u64 = 2;
/// Less than any system needs.
const SHRUNK_BYTES: i64 = 8_000_000_000;

/// The whole inventory. An odd `revision` is the other face of a machine whose inventory flaps.
pub fn of(machine: &Machine, revision: u64) -> Inventory {
    let spec = machine.profile.spec();
    let flapped = revision % 2 == 1;
    Inventory {
        hostname: machine.hostname(),
        bmc_address: "0.0.0.0".into(),
        bmc_v6address: "::/0".into(),
        tpm_version: spec.tpm.into(),
        boot: Some(boot()),
        cpu: Some(cpu(machine.profile)),
        memory: Some(memory(spec.memory_gib, flapped)),
        system_vendor: Some(SystemVendor {
            manufacturer: spec.manufacturer.into(),
            product_name: spec.product.into(),
            serial_number: machine.serial(),
            r#virtual: spec.is_virtual,
        }),
        disks: disks(machine, revision & SHRUNK != 0),
        interfaces: (0..spec.nics).map(|nic| interface(machine, nic)).collect(),
        gpus: (0..spec.gpus).map(gpu).collect(),
        routes: routes(machine),
        truncation: None,
    }
}

/// The name of the interface that has the machine's address.
pub fn nic_name(profile: Profile, nic: u8) -> String {
    if profile.spec().is_virtual {
        format!("ens{}", 192 + 32 * u16::from(nic))
    } else {
        format!("ens1f{nic}")
    }
}

fn boot() -> Boot {
    Boot {
        current_boot_mode: "uefi".into(),
        pxe_interface: String::new(),
        command_line: "BOOT_IMAGE=/images/pxeboot/vmlinuz coreos.liveiso=simulated ignition.firstboot ignition.platform.id=metal".into(),
        secure_boot_state: "Disabled".into(),
        device_type: "ephemeral".into(),
    }
}

fn cpu(profile: Profile) -> Cpu {
    let spec = profile.spec();
    let flags = if spec.architecture == "x86_64" {
        X86_FLAGS
    } else {
        ARM_FLAGS
    };
    Cpu {
        count: spec.cores,
        architecture: spec.architecture.into(),
        model_name: spec.cpu_model.into(),
        frequency: spec.mhz,
        flags: flags.split_ascii_whitespace().map(Into::into).collect(),
    }
}

fn memory(gib: i64, flapped: bool) -> Memory {
    let physical = gib * GIB;
    // Firmware and kernel keep about 2 %; a flapping machine loses another 64 MiB now and then.
    let usable = physical - physical / 50 - if flapped { 64 << 20 } else { 0 };
    Memory {
        physical_bytes: physical,
        usable_bytes: usable,
        physical_bytes_method: "dmidecode".into(),
    }
}

fn disks(machine: &Machine, shrunk: bool) -> Vec<Disk> {
    let specs = machine.profile.spec().disks;
    let mut disks: Vec<Disk> = specs
        .iter()
        .enumerate()
        .map(|(at, spec)| disk(machine, at, spec))
        .collect();
    for disk in disks.iter_mut().filter(|_| shrunk) {
        disk.size_bytes = disk.size_bytes.min(SHRUNK_BYTES);
    }
    if machine.profile.spec().is_virtual {
        disks.push(media());
    }
    disks
}

fn disk(machine: &Machine, at: usize, spec: &DiskSpec) -> Disk {
    let number = machine.disk_number(at);
    let letter = char::from(b'a' + at as u8);
    let (name, by_path, wwn, drive_type) = match spec.bus {
        Bus::Ata => (
            format!("sd{letter}"),
            format!("pci-0000:00:1f.2-ata-{}", at + 1),
            format!("0x5002538{number:09x}"),
            "SSD",
        ),
        Bus::Nvme => (
            format!("nvme{at}n1"),
            format!("pci-0000:{:02x}:00.0-nvme-1", 0x5e + at),
            format!("eui.0025385{number:09x}"),
            "SSD",
        ),
        Bus::Sas => (
            format!("sd{letter}"),
            format!("pci-0000:18:00.0-scsi-0:0:{at}:0"),
            format!("0x5000c50{number:09x}"),
            "HDD",
        ),
        Bus::Virtual => (
            format!("sd{letter}"),
            format!("pci-0000:03:00.0-scsi-0:0:{at}:0"),
            format!("0x6000c29{number:09x}"),
            "HDD",
        ),
    };
    let by_id = match spec.bus {
        Bus::Nvme => format!("/dev/disk/by-id/nvme-{wwn}"),
        Bus::Ata | Bus::Sas | Bus::Virtual => format!("/dev/disk/by-id/wwn-{wwn}"),
    };
    let serial = format!("SIM{number:010X}");
    Disk {
        id: by_id.clone(),
        path: format!("/dev/{name}"),
        name,
        by_id,
        by_path: format!("/dev/disk/by-path/{by_path}"),
        smart: smart(spec, &serial).into(),
        wwn,
        serial,
        model: spec.model.into(),
        vendor: spec.vendor.into(),
        hctl: if spec.bus == Bus::Nvme {
            String::new()
        } else {
            format!("{at}:0:0:0")
        },
        size_bytes: spec.size_bytes,
        bootable: at == 0,
        has_uuid: true,
        drive_type: drive_type.into(),
        installation_eligibility: DiskEligibility {
            eligible: true,
            not_eligible_reasons: Vec::new(),
        },
        ..Disk::default()
    }
}

fn smart(spec: &DiskSpec, serial: &str) -> String {
    if spec.bus == Bus::Virtual {
        return r#"{"json_format_version":[1,0],"smartctl":{"version":[7,2],"exit_status":4}}"#.to_owned();
    }
    format!(
        r#"{{"json_format_version":[1,0],"smartctl":{{"version":[7,2],"exit_status":0}},"model_name":"{}","serial_number":"{serial}","user_capacity":{{"bytes":{}}},"smart_status":{{"passed":true}},"power_on_time":{{"hours":8760}},"temperature":{{"current":31}}}}"#,
        spec.model, spec.size_bytes
    )
}

/// The virtual drive that holds the discovery image.
fn media() -> Disk {
    Disk {
        id: "/dev/sr0".into(),
        name: "sr0".into(),
        path: "/dev/sr0".into(),
        by_path: "/dev/disk/by-path/pci-0000:02:01.0-ata-1".into(),
        model: "VMware_SATA_CD00".into(),
        vendor: "NECVMWar".into(),
        hctl: "30:0:0:0".into(),
        size_bytes: 1_200_000_000,
        removable: true,
        has_uuid: true,
        drive_type: "ODD".into(),
        is_installation_media: true,
        installation_eligibility: DiskEligibility {
            eligible: false,
            not_eligible_reasons: vec!["Holds the discovery image".into(), "Can be removed".into()],
        },
        ..Disk::default()
    }
}

fn interface(machine: &Machine, nic: u8) -> Interface {
    let spec = machine.profile.spec();
    let addresses = if nic == 0 {
        vec![format!("{}/{PREFIX}", machine.address())]
    } else {
        Vec::new()
    };
    Interface {
        name: nic_name(machine.profile, nic),
        mac_address: machine.mac(nic),
        r#type: "physical".into(),
        mtu: 1500,
        speed_mbps: spec.nic_mbps,
        // Cables are in the first two ports.
        has_carrier: nic < 2,
        ipv4_addresses: addresses,
        ipv6_addresses: Vec::new(),
        flags: vec!["up".into(), "broadcast".into(), "multicast".into()],
        vendor: if spec.is_virtual { "0x15ad" } else { "0x8086" }.into(),
        product: if spec.is_virtual { "0x07b0" } else { "0x1572" }.into(),
        biosdevname: format!("em{}", nic + 1).into(),
        client_id: String::new(),
    }
}

fn gpu(at: u8) -> Gpu {
    Gpu {
        vendor: "NVIDIA Corporation".into(),
        vendor_id: "10de".into(),
        device_id: "20b2".into(),
        name: "GA100 [A100 SXM4 80GB]".into(),
        address: format!("0000:{:02x}:00.0", 0x85 + at),
    }
}

fn routes(machine: &Machine) -> Vec<Route> {
    let interface = nic_name(machine.profile, 0);
    let route = |destination: String, gateway: String| Route {
        interface: interface.clone(),
        gateway,
        destination,
        family: 4,
        metric: 100,
    };
    vec![
        route("0.0.0.0".into(), GATEWAY.to_string()),
        route(NETWORK.to_string(), String::new()),
    ]
}
