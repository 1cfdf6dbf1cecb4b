//! What the hub knows of a host's hardware, as the Agent shows it and as labels.

use crate::crd::agent::{
    Boot, Cpu, Disk, Gpu, HostInterface, InstallationEligibility, Inventory, IoPerf, Memory, SystemVendor,
};
use crate::crd::keys::{label, label_value};
use muster_contract::v1::host::HostDetail;
use muster_contract::v2::agent::inventory as wire;
use muster_domain::input::bounds::place;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Nothing before the first report and while the host is handed over; an error when it cannot be read.
pub fn parse(row: &HostDetail) -> Result<Option<wire::Inventory>, String> {
    match row.host.inventory.as_str() {
        "" => Ok(None),
        text => serde_json::from_str(text)
            .map(Some)
            .map_err(|error| format!("The operator cannot read the inventory: {}.", place(&error))),
    }
}

pub fn shown(found: &wire::Inventory) -> Inventory {
    Inventory {
        report_time: None,
        hostname: found.hostname.clone(),
        bmc_address: found.bmc_address.clone(),
        bmc_v6_address: found.bmc_v6address.clone(),
        memory: found.memory.as_ref().map(memory).unwrap_or_default(),
        cpu: found.cpu.as_ref().map(cpu).unwrap_or_default(),
        interfaces: found.interfaces.iter().map(interface).collect(),
        disks: found.disks.iter().map(disk).collect(),
        boot: found.boot.as_ref().map(boot).unwrap_or_default(),
        system_vendor: found.system_vendor.as_ref().map(vendor).unwrap_or_default(),
        gpus: found.gpus.iter().map(gpu).collect(),
    }
}

fn memory(memory: &wire::Memory) -> Memory {
    Memory {
        physical_bytes: memory.physical_bytes,
        usable_bytes: memory.usable_bytes,
    }
}

fn cpu(cpu: &wire::Cpu) -> Cpu {
    Cpu {
        count: cpu.count,
        clock_megahertz: cpu.frequency as i64,
        flags: cpu.flags.iter().map(ToString::to_string).collect(),
        model_name: cpu.model_name.to_string(),
        architecture: cpu.architecture.to_string(),
    }
}

/// Whoever reads addresses counts on the length of their prefix; one without is a network of its own. What is no address
/// is left out.
fn addresses(found: &[String]) -> Vec<String> {
    let whole = |text: &String| {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.as_str(), None),
        };
        let longest = match address.parse().ok()? {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        let length = prefix.map_or(Some(longest), |prefix| prefix.parse::<u8>().ok())?;
        (length <= longest).then(|| format!("{address}/{length}"))
    };
    found.iter().filter_map(whole).collect()
}

fn interface(interface: &wire::Interface) -> HostInterface {
    HostInterface {
        ip_v4_addresses: addresses(&interface.ipv4_addresses),
        ip_v6_addresses: addresses(&interface.ipv6_addresses),
        vendor: interface.vendor.to_string(),
        name: interface.name.clone(),
        has_carrier: interface.has_carrier,
        product: interface.product.to_string(),
        mtu: interface.mtu,
        bios_dev_name: interface.biosdevname.to_string(),
        client_id: interface.client_id.clone(),
        mac_address: interface.mac_address.clone(),
        flags: interface.flags.iter().map(ToString::to_string).collect(),
        speed_mbps: interface.speed_mbps,
    }
}

fn disk(disk: &wire::Disk) -> Disk {
    let eligibility = &disk.installation_eligibility;
    Disk {
        id: disk.id.clone(),
        drive_type: disk.drive_type.to_string(),
        vendor: disk.vendor.to_string(),
        name: disk.name.clone(),
        path: disk.path.clone(),
        hctl: disk.hctl.clone(),
        by_path: disk.by_path.clone(),
        by_id: disk.by_id.clone(),
        model: disk.model.to_string(),
        wwn: disk.wwn.clone(),
        serial: disk.serial.clone(),
        size_bytes: disk.size_bytes,
        bootable: disk.bootable,
        smart: disk.smart.to_string(),
        installation_eligibility: InstallationEligibility {
            eligible: eligibility.eligible,
            not_eligible_reasons: eligibility.not_eligible_reasons.clone(),
        },
        io_perf: disk.io_perf.as_ref().map(|speed| IoPerf {
            sync_duration_milliseconds: speed.sync_duration,
        }),
    }
}

fn boot(boot: &wire::Boot) -> Boot {
    Boot {
        current_boot_mode: boot.current_boot_mode.clone(),
        pxe_interface: boot.pxe_interface.clone(),
        device_type: boot.device_type.to_string(),
    }
}

fn vendor(vendor: &wire::SystemVendor) -> SystemVendor {
    SystemVendor {
        serial_number: vendor.serial_number.clone(),
        product_name: vendor.product_name.to_string(),
        manufacturer: vendor.manufacturer.to_string(),
        is_virtual: vendor.r#virtual,
    }
}

fn gpu(gpu: &wire::Gpu) -> Gpu {
    Gpu {
        address: gpu.address.clone(),
        device_id: gpu.device_id.to_string(),
        name: gpu.name.to_string(),
        vendor: gpu.vendor.to_string(),
        vendor_id: gpu.vendor_id.to_string(),
    }
}

/// Those by which people and node pools choose hosts.
pub fn labels(found: &wire::Inventory) -> BTreeMap<String, String> {
    let cpu = found.cpu.clone().unwrap_or_default();
    let vendor = found.system_vendor.clone().unwrap_or_default();
    let has_ssd = found.disks.iter().any(|disk| disk.drive_type == "SSD");
    let virtualizes = cpu.flags.iter().any(|flag| flag == "vmx" || flag == "svm");
    let labels = [
        (label::HAS_NON_ROTATIONAL_DISK, Some(has_ssd.to_string())),
        (label::CPU_ARCHITECTURE, label_value(&cpu.architecture)),
        (label::CPU_VIRT_ENABLED, Some(virtualizes.to_string())),
        (label::HOST_MANUFACTURER, label_value(&vendor.manufacturer)),
        (label::HOST_PRODUCT_NAME, label_value(&vendor.product_name)),
        (label::HOST_IS_VIRTUAL, Some(vendor.r#virtual.to_string())),
    ];
    labels
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_with_the_length_of_their_prefix() {
        let found = ["192.0.2.7/24", "192.0.2.8", "2001:db8::1/64", "fe80::1"];
        let odd = ["", "dhcp", "192.0.2.9/33", "192.0.2.9/", "192.0.2/24"];
        let all: Vec<_> = found.iter().chain(&odd).map(ToString::to_string).collect();
        let shown = ["192.0.2.7/24", "192.0.2.8/32", "2001:db8::1/64", "fe80::1/128"];
        assert_eq!(addresses(&all), shown);
    }
}
