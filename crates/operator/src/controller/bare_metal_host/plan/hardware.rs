//! Hardware details for the bare metal operator of a machine that it must not inspect: the inventory of its Agent.
//!
//! It refuses a text with a field that it does not know, so only those are written that every version has.

use super::{Draft, Go, has, waits_to_be_fetched};
use crate::controller::bare_metal_host::snapshot::Snapshot;
use crate::crd::Agent;
use crate::crd::agent::{Disk, HostInterface, Inventory};
use crate::crd::keys::annotation;
use crate::options::MetalBoot;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

const MEBIBYTE: i64 = 1024 * 1024;

/// Once: what was consumed is in the status, and is known by its hostname there.
pub(super) fn stage(snapshot: &Snapshot, draft: &mut Draft) -> Go {
    // With the name that it has just been given.
    let Some(agent) = draft.agent.as_ref() else {
        return Go::Stop;
    };
    let known = !snapshot.host.hardware_hostname().is_empty()
        || has(&draft.host, annotation::METAL3_HARDWARE_DETAILS);
    // An Agent that has yet to come back describes the machine as it was.
    let comes_back = waits_to_be_fetched(Some(agent)).is_some();
    if snapshot.way() == MetalBoot::Converged || known || comes_back {
        return Go::On;
    }
    if let Some(details) = details(agent) {
        draft
            .host
            .annotations_mut()
            .insert(annotation::METAL3_HARDWARE_DETAILS.into(), details.to_string());
    }
    Go::On
}

/// `None` before the machine is known.
pub(super) fn details(agent: &Agent) -> Option<Value> {
    let inventory = &agent.status.as_ref()?.inventory;
    let hostname = match agent.spec.hostname.as_str() {
        "" => &inventory.hostname,
        wanted => wanted,
    };
    // Without a name nothing would show afterwards that it was consumed.
    if inventory.interfaces.is_empty() || hostname.is_empty() {
        return None;
    }
    Some(json!({
        "hostname": hostname,
        "systemVendor": {
            "manufacturer": inventory.system_vendor.manufacturer,
            "productName": inventory.system_vendor.product_name,
            "serialNumber": inventory.system_vendor.serial_number,
        },
        "ramMebibytes": inventory.memory.physical_bytes / MEBIBYTE,
        "cpu": cpu(inventory),
        "nics": inventory.interfaces.iter().flat_map(nics).collect::<Vec<_>>(),
        "storage": inventory.disks.iter().map(storage).collect::<Vec<_>>(),
    }))
}

fn cpu(inventory: &Inventory) -> Value {
    let cpu = &inventory.cpu;
    json!({
        "arch": cpu.architecture, "model": cpu.model_name, "clockMegahertz": cpu.clock_megahertz,
        "flags": cpu.flags, "count": cpu.count,
    })
}

/// One for each address, without the length of its network.
fn nics(interface: &HostInterface) -> Vec<Value> {
    let addresses = interface.ip_v6_addresses.iter().chain(&interface.ip_v4_addresses);
    let nic = |address: &String| {
        let address = address.split('/').next().unwrap_or_default();
        json!({
            "name": interface.name, "model": interface.vendor, "mac": interface.mac_address, "ip": address,
            "speedGbps": interface.speed_mbps / 1024,
        })
    };
    addresses.map(nic).collect()
}

fn storage(disk: &Disk) -> Value {
    let name = match disk.by_path.as_str() {
        "" => &disk.path,
        path => path,
    };
    let mut all = Map::new();
    all.insert("name".into(), json!(name));
    all.insert("rotational".into(), json!(disk.drive_type == "HDD"));
    all.insert("sizeBytes".into(), json!(disk.size_bytes));
    let texts = [
        ("vendor", &disk.vendor),
        ("model", &disk.model),
        ("serialNumber", &disk.serial),
        ("wwn", &disk.wwn),
        ("hctl", &disk.hctl),
    ];
    let set = texts.into_iter().filter(|(_, text)| !text.is_empty());
    all.extend(set.map(|(name, text)| (name.to_owned(), json!(text))));
    Value::Object(all)
}
