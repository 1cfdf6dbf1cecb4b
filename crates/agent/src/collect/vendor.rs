//! Who made the machine, and whether it is a virtual one.

use super::Machine;
use muster_contract::v2::agent::inventory::SystemVendor;

/// Parts of manufacturer or product that only virtual machines have.
const VIRTUAL: &[&str] = &[
    "qemu",
    "kvm",
    "vmware",
    "virtualbox",
    "innotek",
    "xen",
    "bochs",
    "virtual machine",
    "google compute engine",
    "openstack",
    "ovirt",
    "rhev",
    "nutanix",
    "bhyve",
    "parallels",
    "hvm domu",
    "alibaba cloud ecs",
    "cloud-hypervisor",
];

pub fn vendor(machine: &Machine) -> SystemVendor {
    let of = |name: &str| machine.text(&format!("sys/class/dmi/id/{name}"));
    let manufacturer = of("sys_vendor");
    let product_name = of("product_name");
    SystemVendor {
        r#virtual: is_virtual(machine, &manufacturer, &product_name),
        serial_number: of("product_serial"),
        manufacturer: manufacturer.into(),
        product_name: product_name.into(),
    }
}

fn is_virtual(machine: &Machine, manufacturer: &str, product: &str) -> bool {
    let text = format!("{manufacturer} {product}").to_ascii_lowercase();
    if VIRTUAL.iter().any(|word| text.contains(word)) {
        return true;
    }
    // Amazon's machines without a hypervisor say so in their product.
    if text.contains("amazon ec2") {
        return !text.contains(".metal");
    }
    let cpu = machine.text("proc/cpuinfo");
    let flags = cpu.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}
