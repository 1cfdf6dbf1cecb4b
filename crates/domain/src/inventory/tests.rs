//! How inventories are read and written.

use super::*;
use serde_json::{Value, json};

fn written(text: &str) -> Value {
    serde_json::from_str(&Inventory::parse(text).unwrap().to_json()).unwrap()
}

#[test]
fn an_empty_object_is_an_inventory_without_anything() {
    assert_eq!(
        written("{}"),
        json!({"disks": [], "gpus": [], "interfaces": [], "routes": []})
    );
}

#[test]
fn null_sub_objects_are_read_as_absent() {
    let inventory = Inventory::parse(r#"{"cpu":null,"memory":null,"disks":null,"hostname":null}"#).unwrap();
    assert_eq!(
        (
            inventory.cpu_count(),
            inventory.physical_bytes(),
            inventory.hostname.as_str()
        ),
        (None, None, "")
    );
}

#[test]
fn zero_values_are_left_out_and_reasons_are_null_when_there_are_none() {
    let disk = written(
        r#"{"disks":[{"name":"sda","bootable":false,"size_bytes":0,"surprise":1,
            "installation_eligibility":{"eligible":true,"not_eligible_reasons":[]}}]}"#,
    );
    assert_eq!(
        disk["disks"][0],
        json!({"name": "sda", "installation_eligibility": {"eligible": true, "not_eligible_reasons": null}})
    );
}

#[test]
fn lists_of_an_interface_and_cpu_flags_are_always_there() {
    let value = written(r#"{"interfaces":[{"name":"eth0","type":"physical"}],"cpu":{"count":4}}"#);
    assert_eq!(
        value["interfaces"][0],
        json!({"name": "eth0", "type": "physical", "flags": [], "ipv4_addresses": [], "ipv6_addresses": []})
    );
    assert_eq!(value["cpu"], json!({"count": 4, "flags": []}));
}

#[test]
fn odd_spellings_of_the_wire_survive_a_round_trip() {
    let value = written(
        r#"{"bmc_v6address":"::/0","disks":[{"partitionTypes":"gpt"}],"system_vendor":{"virtual":true}}"#,
    );
    assert_eq!(value["disks"][0]["partitionTypes"], "gpt");
    assert_eq!(value["bmc_v6address"], "::/0");
    assert_eq!(value["system_vendor"]["virtual"], true);
}

#[test]
fn nonsense_is_an_error_not_a_panic() {
    for text in ["", "  ", "not json", "[]", r#"{"cpu":7}"#, r#"{"disks":{}}"#] {
        assert!(Inventory::parse(text).is_err(), "{text}");
    }
}

#[test]
fn tunnels_and_bridges_are_dropped() {
    let mut inventory =
        Inventory::parse(r#"{"interfaces":[{"name":"a","type":"bond"},{"name":"b","type":"tun"}]}"#).unwrap();
    inventory.keep_real_interfaces();
    assert_eq!(inventory.interfaces.len(), 1);
}

#[test]
fn a_default_route_needs_a_gateway() {
    let route = |destination: &str, gateway: &str| Route {
        destination: destination.into(),
        gateway: gateway.into(),
        ..Route::default()
    };
    assert!(route("0.0.0.0", "10.0.0.1").is_default());
    assert!(route("::", "fe80::1").is_default());
    assert!(!route("0.0.0.0", "").is_default());
    assert!(!route("10.0.0.0", "10.0.0.1").is_default());
}

#[test]
fn the_command_line_of_the_kernel_tells_what_was_booted() {
    let digest = |line: &str, device: &str| {
        let text = serde_json::json!({ "boot": { "command_line": line, "device_type": device } }).to_string();
        Inventory::parse(&text).unwrap().digest()
    };
    let media = digest(
        "BOOT_IMAGE=/images/pxeboot/vmlinuz coreos.liveiso=rhcos-9.6.20251023-0 ignition.firstboot",
        "ephemeral",
    );
    assert_eq!(media.booted_build, "rhcos-9.6.20251023-0");
    assert!(!media.persistent_boot);
    let network = digest(
        "initrd=initrd coreos.live.rootfs_url=http://hub/boot-artifacts/rootfs?arch=x86_64&version=4.20 quiet",
        "persistent",
    );
    assert_eq!(
        (network.booted_build.as_str(), network.booted_version.as_str()),
        ("", "4.20")
    );
    assert!(network.persistent_boot);
    assert_eq!(digest("quiet coreos.liveiso", "").booted_build, "");
}
