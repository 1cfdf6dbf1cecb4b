//! Static network settings: refused when they mean nothing, and on the machine that has the MAC when they do.

use crate::rest::{Door, PULL_SECRET, Reply, id};
use axum::http::StatusCode;
use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// A card with a fixed address, and a VLAN on it.
fn description(card: &str, address: &str) -> String {
    format!(
        "interfaces:\n\
         - name: {card}\n  type: ethernet\n  state: up\n  ipv4:\n    enabled: true\n    dhcp: false\n    address:\n    \
         - ip: {address}\n      prefix-length: 24\n\
         - name: {card}.1234\n  type: vlan\n  state: up\n  vlan:\n    base-iface: {card}\n    id: 1234\n"
    )
}

fn host(yaml: &str, macs: &[(&str, &str)]) -> Value {
    let map: Vec<Value> = macs
        .iter()
        .map(|(mac, name)| json!({ "mac_address": mac, "logical_nic_name": name }))
        .collect();
    json!({ "network_yaml": yaml, "mac_interface_map": map })
}

fn two_hosts() -> Value {
    json!([
        host(
            &description("eth0", "192.0.2.10"),
            &[("52:54:00:aa:00:01", "eth0")]
        ),
        host(
            &description("eth0", "192.0.2.11"),
            &[("52:54:00:AA:00:02", "eth0")]
        ),
    ])
}

async fn create(door: &Door, more: Value) -> Reply {
    let mut wish = json!({ "name": "pool", "pull_secret": PULL_SECRET });
    wish.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    door.ask("POST", "/infra-envs", Some(&wish)).await
}

#[tokio::test]
async fn a_description_that_means_nothing_is_refused_with_the_place_of_its_host() {
    let door = Door::open().await;
    let fine = host(
        &description("eth0", "192.0.2.10"),
        &[("52:54:00:aa:00:01", "eth0")],
    );
    let wrong = host(
        "interfaces:\n- name: eth0\n  type: ethernet\n  ipv5: {}\n",
        &[("52:54:00:aa:00:00", "eth0")],
    );
    // The wrong one would come first if places were counted after sorting.
    let settings = json!({ "static_network_config": [fine, wrong] });
    let check = |reply: &Reply| {
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text());
        let reason = reply.json()["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains("host 1") && reason.contains("ipv5"), "{reason}");
        assert!(
            reason.contains("static_network_config.1.network_yaml"),
            "{reason}"
        );
    };
    check(&create(&door, settings.clone()).await);
    let made = door.infra_env(json!({})).await;
    let path = format!("/infra-envs/{}", id(&made));
    check(&door.ask("PATCH", &path, Some(&settings)).await);
    assert!(
        door.get(&path)
            .await
            .json()
            .get("static_network_config")
            .is_none()
    );
}

#[tokio::test]
async fn captures_need_the_full_image() {
    let door = Door::open().await;
    let yaml = "capture:\n  gw: routes.running.destination==\"0.0.0.0/0\"\ndesired:\n  interfaces: []\n";
    let networks = json!([host(yaml, &[("52:54:00:aa:00:01", "eth0")])]);
    let minimal = json!({ "image_type": "minimal-iso", "static_network_config": networks });
    let refused = create(&door, minimal).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.text().contains("full-iso"), "{}", refused.text());
    let made = create(&door, json!({ "static_network_config": networks })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let path = format!("/infra-envs/{}", id(&made.json()));
    let smaller = json!({ "image_type": "minimal-iso" });
    let refused = door.ask("PATCH", &path, Some(&smaller)).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

/// Path, and content of files or target of links.
fn unpacked(reply: &Reply) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = Vec::new();
    GzDecoder::new(&reply.bytes[..])
        .read_to_end(&mut archive)
        .unwrap();
    let (mut at, mut found) = (0, BTreeMap::new());
    loop {
        let field = |number: usize| {
            let hex = std::str::from_utf8(&archive[at + 6 + number * 8..at + 14 + number * 8]).unwrap();
            usize::from_str_radix(hex, 16).unwrap()
        };
        let (mode, size, name_size) = (field(1), field(6), field(11));
        let name = String::from_utf8(archive[at + 110..at + 109 + name_size].to_vec()).unwrap();
        let start = (at + 110 + name_size).next_multiple_of(4);
        if name == "TRAILER!!!" {
            return found;
        }
        let content = archive[start..start + size].to_vec();
        found.insert(name, (u32::try_from(mode).unwrap(), content));
        at = (start + size).next_multiple_of(4);
    }
}

/// Writes the archive where a machine would have it, with these cards, and runs its script.
fn boot(files: &BTreeMap<String, (u32, Vec<u8>)>, cards: &[(&str, &str)], root: &Path) -> String {
    for (name, (mode, content)) in files {
        let path = root.join(name);
        if mode & 0o170_000 == 0o100_000 {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
    for (card, mac) in cards {
        let path = root.join("sys/class/net").join(card);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("address"), format!("{mac}\n")).unwrap();
    }
    let target = "/etc/coreos-firstboot-network";
    let ran = Command::new("bash")
        .arg(root.join("usr/local/bin/pre-network-manager-config.sh"))
        .args([Path::new(target), root])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    String::from_utf8(ran.stdout).unwrap()
}

fn connections(root: &Path) -> BTreeMap<String, String> {
    let list = std::fs::read_dir(root.join("etc/coreos-firstboot-network")).unwrap();
    list.map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    })
    .collect()
}

async fn initrd(door: &Door, settings: Value) -> Reply {
    let made = create(door, settings).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let path = format!("/infra-envs/{}/downloads/minimal-initrd", id(&made.json()));
    let reply = door.get(&path).await;
    assert_eq!(reply.status, StatusCode::OK);
    reply
}

#[tokio::test]
async fn a_machine_finds_its_own_keyfiles_in_the_initrd_under_the_names_of_its_cards() {
    let door = Door::open().await;
    let settings = json!({ "image_type": "minimal-iso", "static_network_config": two_hosts(),
        "proxy": { "http_proxy": "http://proxy.example.com:3128" } });
    let files = unpacked(&initrd(&door, settings).await);
    let wants = "etc/systemd/system/initrd.target.wants/pre-network-manager-config.service";
    let unit = "etc/systemd/system/pre-network-manager-config.service";
    assert_eq!(files[wants].1, format!("/{unit}").into_bytes());
    let text = String::from_utf8(files[unit].1.clone()).unwrap();
    assert!(
        text.contains("pre-network-manager-config.sh /etc/coreos-firstboot-network\n"),
        "{text}"
    );
    let proxy = "etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf";
    assert!(String::from_utf8_lossy(&files[proxy].1).contains("proxy.example.com:3128"));
    let names: Vec<&str> = files
        .keys()
        .filter_map(|name| name.strip_prefix("etc/assisted/network/host1/"))
        .collect();
    assert_eq!(
        names,
        ["eth0.1234.nmconnection", "eth0.nmconnection", "mac_interface.ini"]
    );

    let root = tempfile::tempdir().unwrap();
    let cards = [
        ("lo", "00:00:00:00:00:00"),
        ("enp129s0f1np1", "52:54:00:aa:00:02"),
    ];
    let said = boot(&files, &cards, root.path());
    assert!(said.contains("network/host1"), "{said}");
    let made = connections(root.path());
    // Linux takes 15 letters, so the card's name is cut in front of the VLAN's number.
    let names: Vec<&str> = made.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["enp129s0f1.1234.nmconnection", "enp129s0f1np1.nmconnection"]
    );
    let card = &made["enp129s0f1np1.nmconnection"];
    assert!(
        card.contains("interface-name=enp129s0f1np1\n") && card.contains("192.0.2.11/24"),
        "{card}"
    );
    let vlan = &made["enp129s0f1.1234.nmconnection"];
    assert!(vlan.contains("interface-name=enp129s0f1.1234\n"), "{vlan}");
    assert!(!vlan.contains("eth0"), "{vlan}");
}

#[tokio::test]
async fn cards_that_exchanged_names_get_each_others_settings_and_strangers_none() {
    let door = Door::open().await;
    let yaml = "interfaces:\n\
        - {name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.1, prefix-length: 24}]}}\n\
        - {name: eth1, type: ethernet, state: up, ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.2, prefix-length: 24}]}}\n";
    let macs = [("52:54:00:aa:00:01", "eth0"), ("52:54:00:aa:00:02", "eth1")];
    let settings = json!({ "static_network_config": [host(yaml, &macs)] });
    let files = unpacked(&initrd(&door, settings).await);
    let root = tempfile::tempdir().unwrap();
    let stale = root
        .path()
        .join("etc/coreos-firstboot-network/default_connection.nmconnection");
    std::fs::create_dir_all(stale.parent().unwrap()).unwrap();
    std::fs::write(&stale, "guessed").unwrap();
    boot(
        &files,
        &[("eth1", "52:54:00:aa:00:01"), ("eth0", "52:54:00:aa:00:02")],
        root.path(),
    );
    let made = connections(root.path());
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(made["eth1.nmconnection"].contains("192.0.2.1/24"));
    assert!(made["eth0.nmconnection"].contains("192.0.2.2/24"));
    let stranger = tempfile::tempdir().unwrap();
    let said = boot(&files, &[("eth0", "52:54:00:00:00:09")], stranger.path());
    assert!(said.contains("none is for this machine"), "{said}");
    assert!(connections(stranger.path()).is_empty());
}

#[tokio::test]
async fn the_full_image_has_the_keyfiles_in_its_configuration_and_the_minimal_one_has_not() {
    let door = Door::open().await;
    let made = create(&door, json!({ "static_network_config": two_hosts() }))
        .await
        .json();
    let path = format!(
        "/infra-envs/{}/downloads/files?file_name=discovery.ign",
        id(&made)
    );
    let config = door.get(&path).await.json();
    let files = config["storage"]["files"].as_array().unwrap();
    let file = |path: &str| files.iter().find(|file| file["path"] == path);
    let keyfile = file("/etc/assisted/network/host0/eth0.nmconnection").unwrap();
    assert_eq!(keyfile["mode"], 0o600);
    let data = keyfile["contents"]["source"].as_str().unwrap();
    let text = STANDARD.decode(data.split_once("base64,").unwrap().1).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("192.0.2.10/24"));
    let units = config["systemd"]["units"].to_string();
    assert!(units.contains("pre-network-manager-config.sh /etc/NetworkManager/system-connections"));
    let minimal = door
        .get(&format!("{path}&discovery_iso_type=minimal-iso"))
        .await
        .text();
    assert!(!minimal.contains("pre-network-manager-config"));
    let listing = path.replace("discovery.ign", "static-network-config");
    let listing = door.get(&listing).await.text();
    assert!(
        listing.contains("# /etc/assisted/network/host1/eth0.nmconnection\n"),
        "{listing}"
    );
}
