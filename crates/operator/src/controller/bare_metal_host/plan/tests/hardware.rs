//! The hardware details that the bare metal operator gets of machines that it does not inspect.

use super::*;
use crate::crd::agent::{Cpu, Memory, SystemVendor};

fn known() -> Agent {
    let mut agent = agent("known-unbound", "");
    let inventory = &mut agent.status.as_mut().unwrap().inventory;
    inventory.hostname = "found".into();
    inventory.memory = Memory {
        physical_bytes: 8 << 30,
        ..Memory::default()
    };
    inventory.cpu = Cpu {
        count: 4,
        clock_megahertz: 2000,
        architecture: "x86_64".into(),
        model_name: "Core".into(),
        flags: vec!["vmx".into()],
    };
    inventory.system_vendor = SystemVendor {
        manufacturer: "ACME".into(),
        ..SystemVendor::default()
    };
    inventory.interfaces = vec![HostInterface {
        name: "eth0".into(),
        vendor: "virtio".into(),
        mac_address: MAC.into(),
        speed_mbps: 10240,
        ip_v4_addresses: vec!["10.0.0.5/24".into()],
        ip_v6_addresses: vec!["fe80::1/64".into()],
        ..HostInterface::default()
    }];
    let disk = &mut inventory.disks[0];
    disk.by_path = "/dev/disk/by-path/1".into();
    disk.drive_type = "HDD".into();
    disk.size_bytes = 1000;
    agent
}

fn details_of(snapshot: &Snapshot) -> Option<Value> {
    let text = noted(snapshot, annotation::METAL3_HARDWARE_DETAILS)?;
    Some(serde_json::from_str(text).unwrap())
}

#[test]
fn the_inventory_is_written_in_the_words_of_the_bare_metal_operator() {
    let snapshot = reconciled(&live(booted_live("provisioned"), Some(known())));
    let details = details_of(&snapshot).unwrap();
    assert_eq!(details["hostname"], "found");
    assert_eq!(details["ramMebibytes"], 8192);
    assert_eq!(details["systemVendor"]["manufacturer"], "ACME");
    assert_eq!(
        details["cpu"],
        json!({ "arch": "x86_64", "model": "Core", "clockMegahertz": 2000, "flags": ["vmx"], "count": 4 })
    );
    let nic = |address: &str| json!({ "name": "eth0", "model": "virtio", "mac": MAC, "ip": address, "speedGbps": 10 });
    assert_eq!(details["nics"], json!([nic("fe80::1"), nic("10.0.0.5")]));
    assert_eq!(details["storage"][0]["name"], "/dev/disk/by-path/1");
    assert_eq!(details["storage"][0]["rotational"], true);
    assert_eq!(details["storage"][0]["sizeBytes"], 1000);
}

/// Fields that every version of the bare metal operator has, by where they stand.
const FIELDS: [(&str, &[&str]); 7] = [
    (
        "",
        &[
            "hostname",
            "systemVendor",
            "firmware",
            "ramMebibytes",
            "cpu",
            "nics",
            "storage",
        ],
    ),
    ("/systemVendor", &["manufacturer", "productName", "serialNumber"]),
    ("/firmware", &["bios"]),
    ("/firmware/bios", &["date", "vendor", "version"]),
    ("/cpu", &["arch", "model", "clockMegahertz", "flags", "count"]),
    (
        "/nics/*",
        &[
            "name",
            "model",
            "mac",
            "ip",
            "speedGbps",
            "vlans",
            "vlanId",
            "pxe",
        ],
    ),
    (
        "/storage/*",
        &[
            "name",
            "rotational",
            "sizeBytes",
            "vendor",
            "model",
            "serialNumber",
            "wwn",
            "wwnVendorExtension",
            "wwnWithExtension",
            "hctl",
        ],
    ),
];

/// Every field of a text with where it stands; those of all things in a list stand in the same place.
fn fields(place: &str, value: &Value) -> Vec<(String, String)> {
    match value {
        Value::Object(all) => all
            .iter()
            .flat_map(|(name, field)| {
                let mut found = fields(&format!("{place}/{name}"), field);
                found.push((place.to_owned(), name.clone()));
                found
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .flat_map(|item| fields(&format!("{place}/*"), item))
            .collect(),
        _ => Vec::new(),
    }
}

#[test]
fn no_field_is_written_that_a_strict_reader_does_not_know_however_deep_it_is() {
    let mut full = known();
    let inventory = &mut full.status.as_mut().unwrap().inventory;
    inventory.system_vendor.product_name = "rack".into();
    inventory.system_vendor.serial_number = "1".into();
    for disk in &mut inventory.disks {
        for text in [
            &mut disk.vendor,
            &mut disk.model,
            &mut disk.serial,
            &mut disk.wwn,
            &mut disk.hctl,
        ] {
            *text = "told".into();
        }
    }
    let snapshot = reconciled(&live(booted_live("provisioned"), Some(full)));
    let found = fields("", &details_of(&snapshot).unwrap());
    for (place, name) in &found {
        let known = FIELDS.iter().find(|(known, _)| known == place);
        let known = known.is_some_and(|(_, names)| names.contains(&name.as_str()));
        assert!(known, "{place}/{name} would make it refuse all");
    }
    for place in ["/systemVendor", "/cpu", "/nics/*", "/storage/*"] {
        assert!(found.iter().any(|(one, _)| one == place), "{place} is written");
    }
}

#[test]
fn the_name_that_was_asked_for_counts() {
    let mut named = known();
    named.spec.hostname = "wanted".into();
    let snapshot = reconciled(&live(booted_live("provisioned"), Some(named)));
    assert_eq!(details_of(&snapshot).unwrap()["hostname"], "wanted");
    let written = [(annotation::BMAC_HOSTNAME, "written")];
    let snapshot = reconciled(&live(
        annotated(booted_live("provisioned"), &written),
        Some(known()),
    ));
    assert_eq!(
        details_of(&snapshot).unwrap()["hostname"],
        "written",
        "also when it is written only now"
    );
}

#[test]
fn details_are_not_written_twice_or_too_early_or_where_ironic_inspects() {
    let mut consumed = booted_live("provisioned");
    consumed.status.as_mut().unwrap().0["hardware"] = json!({ "hostname": "found" });
    let mut nameless = known();
    nameless.status.as_mut().unwrap().inventory.hostname.clear();
    let mut bare = known();
    bare.status.as_mut().unwrap().inventory.interfaces.clear();
    let quiet = [
        live(consumed, Some(known())),
        live(booted_live("provisioned"), Some(nameless)),
        live(booted_live("provisioned"), Some(bare)),
        live(booted_live("provisioned"), None),
        converged(deployed("provisioning"), Some(known())),
    ];
    for snapshot in quiet {
        assert_eq!(details_of(&reconciled(&snapshot)), None);
    }
}
