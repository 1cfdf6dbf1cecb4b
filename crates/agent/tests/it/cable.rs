//! Steps that ask the network, between two machines with a cable: each is a thread with a network of its own, which only
//! root may make.

use crate::world::*;
use dhcproto::Decodable as _;
use dhcproto::v4::MessageType;
use muster_agent::sys::{broadcast_socket, netlink};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const OTHER: &str = "veth0";
const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];
/// No answer of a kernel, or of the server below, takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(unsafe_code, reason = "the standard library has no call for this")]
pub fn leave_network() -> bool {
    // SAFETY: it concerns this thread only.
    unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
}

/// Says loudly that a test is not run, on the terminal itself because the test runner swallows what is printed; where
/// everything must be tested, it fails.
pub fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let text = format!("\nSKIPPED {name}: {why}\n");
    std::io::stderr().write_all(text.as_bytes()).ok();
    assert!(std::env::var_os("CI").is_none(), "CI must run this test: {why}");
}

/// The other machine: it has 192.0.2.2, and gives addresses to who asks for them until it is told to end.
fn other(namespace: &Sender<File>, plugged: &Receiver<()>, ready: &Sender<()>, end: &Receiver<()>) {
    assert!(leave_network());
    namespace
        .send(File::open("/proc/thread-self/ns/net").unwrap())
        .unwrap();
    if plugged.recv().is_err() {
        return;
    }
    netlink::link_up(OTHER).unwrap();
    netlink::add_address(OTHER, "192.0.2.2".parse().unwrap(), 24).unwrap();
    let server = broadcast_socket(OTHER, 67).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    ready.send(()).unwrap();
    while end.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
        lease(&server);
    }
}

/// Answers one message: every card gets the address that ends like its MAC.
fn lease(server: &UdpSocket) {
    let mut packet = [0; 1500];
    let Ok(length) = server.recv(&mut packet) else {
        return;
    };
    let message = &packet[..length];
    let asked = dhcproto::v4::Message::from_bytes(message).unwrap();
    let kind = match asked.opts().msg_type() {
        Some(MessageType::Discover) => 2,
        _ => 5,
    };
    let mut answer = message[..240].to_vec();
    answer[0] = 2;
    answer[16..20].copy_from_slice(&[192, 0, 2, message[33]]);
    answer.extend_from_slice(&[
        53, 1, kind, 1, 4, 255, 255, 255, 0, 51, 4, 0, 0, 14, 16, 54, 4, 192, 0, 2, 2, 255,
    ]);
    server.send_to(&answer, (Ipv4Addr::BROADCAST, 68)).unwrap();
}

/// A world on a machine with the card `eth0` and 192.0.2.1, beside the other one.
fn beside_another(test: impl FnOnce(World) + Send + 'static) {
    let (namespace, its_namespace) = channel();
    let (plug, plugged) = channel();
    let (tell_ready, ready) = channel();
    let (end, its_end) = channel();
    let here = std::thread::spawn(move || {
        if !leave_network() {
            return skipped("this needs root");
        }
        let there = std::thread::spawn(move || other(&namespace, &plugged, &tell_ready, &its_end));
        netlink::link_up("lo").unwrap();
        netlink::add_link("eth0", "veth").unwrap();
        netlink::set_mac(OTHER, OTHER_MAC).unwrap();
        let namespace: File = its_namespace.recv_timeout(PATIENCE).unwrap();
        netlink::set_namespace(OTHER, namespace.as_fd()).unwrap();
        plug.send(()).unwrap();
        netlink::link_up("eth0").unwrap();
        netlink::add_address("eth0", "192.0.2.1".parse().unwrap(), 24).unwrap();
        ready.recv_timeout(PATIENCE).unwrap();
        let world = World::new().flag("--dry-run");
        let files = [
            ("address", "02:00:00:00:00:01"),
            ("carrier", "1"),
            ("mtu", "1500"),
            ("flags", "0x1043"),
        ];
        for (name, content) in files {
            world.file(&format!("sys/class/net/eth0/{name}"), content);
        }
        world.file("sys/class/net/eth0/device/vendor", "0x1af4");
        world.file("addresses", "eth0 192.0.2.1/24\n");
        netlink::set_mac("eth0", [2, 0, 0, 0, 0, 1]).unwrap();
        test(world);
        drop(end);
        there.join().unwrap();
    });
    here.join().unwrap();
}

fn one(world: &World, kind: &str, arg: Value) -> Value {
    world.script.say(steps(&[(kind, arg)])).after(1, steps(&[]));
    world.run();
    let told = world.replies()[0].clone();
    assert_eq!(told["exit_code"], 0, "{told}");
    serde_json::from_str(told["output"].as_str().unwrap()).unwrap()
}

#[test]
fn hosts_that_answer_are_told_from_those_that_do_not() {
    beside_another(|world| {
        let nic = |ip: &str, mac: &str| json!({"name": "eth0", "mac": mac, "ip_addresses": [ip]});
        let host = |id: u128, nic: Value| json!({"host_id": uuid::Uuid::from_u128(id), "nics": [nic]});
        let hosts = json!([
            host(1, nic("192.0.2.2/24", "02:00:00:00:00:02")),
            host(2, nic("192.0.2.77/24", "02:00:00:00:00:77")),
            // Another machine answers for this one's address.
            host(3, nic("192.0.2.2/24", "02:00:00:00:00:33")),
        ]);
        let told = one(&world, "connectivity-check", json!([hosts.to_string()]));
        let remote = |at: usize| &told["remote_hosts"][at];
        let l2 = &remote(0)["l2_connectivity"][0];
        assert_eq!(
            (&l2["outgoing_nic"], &l2["remote_mac"], &l2["successful"]),
            (&json!("eth0"), &json!("02:00:00:00:00:02"), &json!(true)),
            "{told}"
        );
        let l3 = &remote(0)["l3_connectivity"][0];
        assert_eq!(
            (&l3["remote_ip_address"], &l3["successful"]),
            (&json!("192.0.2.2"), &json!(true)),
            "{told}"
        );
        assert_eq!(remote(0)["mtu_report"][0]["mtu_successful"], true, "{told}");
        for layer in ["l2_connectivity", "l3_connectivity"] {
            let is_reached = remote(1)[layer][0]["successful"].as_bool().unwrap_or_default();
            assert!(!is_reached, "{told}");
        }
        let l2 = &remote(2)["l2_connectivity"][0];
        assert_eq!(l2["remote_mac"], "02:00:00:00:00:02", "{told}");
        assert!(!l2["successful"].as_bool().unwrap_or_default(), "{told}");
    });
}

#[test]
fn addresses_that_nobody_has_are_free() {
    beside_another(|world| {
        let told = one(
            &world,
            "free-network-addresses",
            json!([json!(["192.0.2.0/29"]).to_string()]),
        );
        let free = json!(["192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6"]);
        assert_eq!(told, json!([{"network": "192.0.2.0/29", "free_addresses": free}]));
    });
}

#[test]
fn an_address_for_a_cluster_is_good_when_nobody_has_it() {
    beside_another(|world| {
        let vip = |ip: &str, kind: &str| json!({"vip": ip, "vip_type": kind});
        let vips = json!([
            vip("192.0.2.2", "api"),
            vip("192.0.2.5", "ingress"),
            vip("198.51.100.1", "api")
        ]);
        let told = one(&world, "verify-vips", json!([vips.to_string()]));
        let words: Vec<&str> = told
            .as_array()
            .unwrap()
            .iter()
            .map(|vip| vip["verification"].as_str().unwrap())
            .collect();
        assert_eq!(words, ["failed", "succeeded", "unverified"]);
    });
}

#[test]
fn addresses_for_a_cluster_are_leased_in_the_name_of_its_own_cards() {
    beside_another(|world| {
        let args = json!({"interface": "eth0", "api_vip_mac": "02:00:00:00:00:32", "ingress_vip_mac": "02:00:00:00:00:33"});
        let told = one(&world, "dhcp-lease-allocate", args);
        assert_eq!(
            (&told["api_vip_address"], &told["ingress_vip_address"]),
            (&json!("192.0.2.50"), &json!("192.0.2.51")),
            "{told}"
        );
        let lease = told["api_vip_lease"].as_str().unwrap();
        assert!(lease.contains("fixed-address 192.0.2.50;"), "{lease}");
        assert!(lease.contains("option dhcp-lease-time 3600;"), "{lease}");
    });
}
