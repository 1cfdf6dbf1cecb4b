//! Graphics and compute cards.

use super::Machine;
use muster_contract::v2::agent::inventory::Gpu;

/// Display controllers in the PCI classes.
const DISPLAY: &str = "0x03";
/// Processing accelerators.
const ACCELERATOR: &str = "0x12";

pub fn gpus(machine: &Machine) -> Vec<Gpu> {
    let devices = machine.list("sys/bus/pci/devices");
    let of = |address: &str, name: &str| machine.text(&format!("sys/bus/pci/devices/{address}/{name}"));
    let is_gpu = |class: String| class.starts_with(DISPLAY) || class.starts_with(ACCELERATOR);
    devices
        .into_iter()
        .filter(|address| is_gpu(of(address, "class")))
        .map(|address| {
            let vendor_id = of(&address, "vendor").trim_start_matches("0x").to_owned();
            let device_id = of(&address, "device").trim_start_matches("0x").to_owned();
            Gpu {
                vendor: vendor_name(&vendor_id).into(),
                name: of(&address, "label").into(),
                vendor_id: vendor_id.into(),
                device_id: device_id.into(),
                address,
            }
        })
        .collect()
}

/// Only those whose cards are looked for; a whole list of PCI ids would be larger than the agent.
fn vendor_name(id: &str) -> &'static str {
    match id {
        "10de" => "NVIDIA Corporation",
        "1002" => "Advanced Micro Devices, Inc. [AMD/ATI]",
        "8086" => "Intel Corporation",
        "102b" => "Matrox Electronics Systems Ltd.",
        "1a03" => "ASPEED Technology, Inc.",
        "15ad" => "VMware",
        "1234" => "QEMU",
        "1af4" => "Red Hat, Inc.",
        "1b36" => "Red Hat, Inc.",
        "1013" => "Cirrus Logic",
        _ => "",
    }
}
