//! Every outcome of every check can be reached through the door: no check lives on a fact that nobody ever gives it.

use crate::door::{Door, PULL_SECRET, V2};
use crate::place::Place;
use axum::http::{Method, StatusCode};
use jiff::{SignedDuration, Timestamp};
use muster_domain::checks::CheckId as HostCheck;
use muster_domain::cluster::checks::CheckId as ClusterCheck;
use muster_hub::Clock;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

type Seen = BTreeMap<String, BTreeSet<String>>;

/// What each check of a host can say: success, failure, pending, error.
const OF_HOSTS: [(&str, &str); 38] = [
    ("connected", "sf"),
    ("media-connected", "sf"),
    ("has-inventory", "sf"),
    ("inventory-not-partially-truncated", "sfp"),
    ("inventory-not-fully-truncated", "sfp"),
    ("has-min-cpu-cores", "sfp"),
    ("has-min-memory", "sfp"),
    ("has-min-valid-disks", "sfpe"),
    ("has-cpu-cores-for-role", "sfp"),
    ("has-memory-for-role", "sfp"),
    ("hostname-unique", "sfp"),
    ("hostname-valid", "sf"),
    ("machine-cidr-defined", "sf"),
    ("belongs-to-machine-cidr", "sfp"),
    ("ignition-downloadable", "sfp"),
    ("belongs-to-majority-group", "sfp"),
    ("mtu-valid", "sfp"),
    ("valid-platform-network-settings", "sfp"),
    ("ntp-synced", "sfp"),
    ("time-synced-between-host-and-service", "sfp"),
    ("container-images-available", "sf"),
    ("sufficient-network-latency-requirement-for-role", "sfp"),
    ("sufficient-packet-loss-requirement-for-role", "sfp"),
    ("has-default-route", "sfp"),
    ("api-domain-name-resolved-correctly", "sfp"),
    ("api-int-domain-name-resolved-correctly", "sfp"),
    ("apps-domain-name-resolved-correctly", "sfp"),
    ("dns-wildcard-not-configured", "sfp"),
    ("non-overlapping-subnets", "sfp"),
    ("no-ip-collisions-in-network", "sf"),
    ("no-iscsi-nic-belongs-to-machine-cidr", "sfp"),
    ("sufficient-installation-disk-speed", "sfe"),
    ("compatible-with-cluster-platform", "sfp"),
    ("vsphere-disk-uuid-enabled", "sf"),
    ("disk-encryption-requirements-satisfied", "sfp"),
    ("compatible-agent", "sf"),
    ("no-skip-installation-disk", "sf"),
    ("no-skip-missing-disk", "sfp"),
];

const OF_CLUSTERS: [(&str, &str); 19] = [
    ("platform-requirements-satisfied", "sf"),
    ("pull-secret-set", "sf"),
    ("all-hosts-are-ready-to-install", "sf"),
    ("sufficient-masters-count", "sf"),
    ("api-vips-defined", "sfp"),
    ("api-vips-valid", "sfp"),
    ("cluster-cidr-defined", "sf"),
    ("custom-manifests-requirements-satisfied", "sf"),
    ("dns-domain-defined", "sf"),
    ("ingress-vips-defined", "sfp"),
    ("ingress-vips-valid", "sfp"),
    ("machine-cidr-defined", "sfp"),
    ("machine-cidr-equals-to-calculated-cidr", "sfp"),
    ("network-prefix-valid", "sfp"),
    ("network-type-valid", "sf"),
    ("networks-same-address-families", "sfp"),
    ("no-cidrs-overlapping", "sfpe"),
    ("ntp-server-configured", "sf"),
    ("service-cidr-defined", "sf"),
];

/// Outcomes that the door does not let come about: the check is a second bolt behind a door that is locked.
const BEHIND_THE_DOOR: &[(&str, &str, &str)] = &[(
    "cluster pull-secret-set",
    "failure",
    "no cluster is made without one or loses it; those that are imported have none and are not checked",
)];

/// A cluster whose hosts join it as they register.
struct Lab {
    door: Door,
    clock: Clock,
    cluster: Uuid,
    pool: Uuid,
}

impl Lab {
    async fn new(wish: Value) -> Self {
        let mut body = json!({ "name": "lab", "openshift_version": "4.20", "pull_secret": PULL_SECRET,
            "base_dns_domain": "example.com" });
        merge(&mut body, wish);
        Self::of("/clusters", body).await
    }

    async fn of(path: &str, body: Value) -> Self {
        let clock = Clock::manual(Timestamp::from_second(1_800_000_000).unwrap());
        let door = Door::with(Place::new().await, clock.clone(), |settings| {
            settings.checks.wanted_agent = Some("registry.example.com/agent:wanted".into());
        })
        .await;
        let made = door.post(&format!("{V2}{path}"), body.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{body} {}", made.text);
        let cluster: Uuid = made.body["id"].as_str().unwrap().parse().unwrap();
        let pool = json!({ "name": "pool", "pull_secret": PULL_SECRET, "cluster_id": cluster });
        let made = door.post(&format!("{V2}/infra-envs"), pool).await;
        let pool = made.body["id"].as_str().unwrap().parse().unwrap();
        Self {
            door,
            clock,
            cluster,
            pool,
        }
    }

    fn path(&self, host: u8) -> String {
        let id = Uuid::from_u128(host.into());
        format!("{V2}/infra-envs/{}/hosts/{id}", self.pool)
    }

    async fn register(&self, hosts: u8, agent: &str) {
        for host in 1..=hosts {
            let body = json!({ "host_id": Uuid::from_u128(host.into()), "discovery_agent_version": agent });
            let path = format!("{V2}/infra-envs/{}/hosts", self.pool);
            let made = self.door.post(&path, body).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
    }

    async fn say(&self, host: u8, step: &str, exit_code: i64, output: Value) {
        let body = json!({ "step_type": step, "step_id": format!("{step}-1"), "exit_code": exit_code,
            "output": output.to_string(), "error": "" });
        let told = self
            .door
            .post(&format!("{}/instructions", self.path(host)), body)
            .await;
        assert_eq!(told.status, StatusCode::NO_CONTENT, "{step}: {}", told.text);
    }

    async fn inventories(&self, hosts: u8, change: impl Fn(u8, &mut Value)) {
        for host in 1..=hosts {
            let mut inventory = machine(host);
            change(host, &mut inventory);
            self.say(host, "inventory", 0, inventory).await;
        }
    }

    /// With its clock so many seconds ahead.
    async fn poll(&self, host: u8, ahead: i64) {
        let now = self.clock.now().as_second() + ahead;
        let path = format!("{}/instructions?timestamp={now}", self.path(host));
        assert_eq!(self.door.get(&path).await.status, StatusCode::OK);
    }

    async fn change(&self, wish: Value) {
        let path = format!("{V2}/clusters/{}", self.cluster);
        let changed = self.door.ask(Method::PATCH, &path, Some(&wish)).await;
        assert_eq!(changed.status, StatusCode::CREATED, "{wish}: {}", changed.text);
    }

    async fn change_host(&self, host: u8, wish: Value) {
        let changed = self.door.ask(Method::PATCH, &self.path(host), Some(&wish)).await;
        assert_eq!(changed.status, StatusCode::CREATED, "{wish}: {}", changed.text);
    }

    async fn look(&self, seen: &mut Seen) {
        self.door.settle().await;
        let view = self
            .door
            .get(&format!("{V2}/clusters/{}", self.cluster))
            .await
            .body;
        let hosts = view["hosts"].as_array().unwrap();
        let all = hosts
            .iter()
            .map(|host| ("host", host))
            .chain([("cluster", &view)]);
        for (kind, object) in all {
            let text = object["validations_info"].as_str().unwrap_or_default();
            let parts: BTreeMap<String, Vec<Value>> = serde_json::from_str(text).unwrap_or_default();
            for check in parts.values().flatten() {
                let id = format!("{kind} {}", check["id"].as_str().unwrap());
                let status = check["status"].as_str().unwrap().to_owned();
                seen.entry(id).or_default().insert(status);
            }
        }
    }
}

fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

const GIB: i64 = 1 << 30;

/// Fit for every role, at 192.168.7.20 and up.
fn machine(host: u8) -> Value {
    let disk = |name: &str| {
        json!({ "id": format!("/dev/disk/by-id/{name}"), "by_id": format!("/dev/disk/by-id/{name}"), "name": name,
            "path": format!("/dev/{name}"), "drive_type": "SSD", "size_bytes": 200 * GIB, "has_uuid": true,
            "installation_eligibility": { "eligible": true } })
    };
    json!({ "hostname": format!("host-{host}"), "bmc_address": "0.0.0.0", "tpm_version": "2.0",
        "boot": { "current_boot_mode": "uefi" },
        "cpu": { "architecture": "x86_64", "count": 16, "model_name": "test", "flags": ["vmx"] },
        "memory": { "physical_bytes": 64 * GIB, "usable_bytes": 64 * GIB },
        "system_vendor": { "manufacturer": "Example", "product_name": "Box", "serial_number": format!("S{host}") },
        "disks": [disk("sda"), disk("sdb")],
        "interfaces": [{ "name": "eth0", "mac_address": format!("52:54:00:00:00:{host:02x}"), "has_carrier": true,
            "mtu": 1500, "type": "physical", "ipv4_addresses": [format!("192.168.7.{}/24", 20 + host)],
            "ipv6_addresses": [] }],
        "routes": [{ "destination": "0.0.0.0", "gateway": "192.168.7.1", "interface": "eth0", "family": 2 }] })
}

/// What a host found when it tried to reach the others.
fn paths(host: u8, reached: bool, rtt: f64, loss: f64, large: bool, macs: &[&str]) -> Value {
    let others = (1..=3_u8).filter(|other| *other != host).map(|other| {
        let ip = format!("192.168.7.{}", 20 + other);
        let layer2: Vec<_> = macs
            .iter()
            .map(|mac| json!({ "outgoing_nic": "eth0", "remote_ip_address": ip, "remote_mac": mac, "successful": reached }))
            .collect();
        json!({ "host_id": Uuid::from_u128(other.into()), "l2_connectivity": layer2,
            "l3_connectivity": [{ "outgoing_nic": "eth0", "remote_ip_address": ip, "successful": reached,
                "average_rtt_ms": rtt, "packet_loss_percentage": loss }],
            "mtu_report": [{ "outgoing_nic": "eth0", "remote_ip_address": ip, "mtu_successful": large }] })
    });
    json!({ "remote_hosts": others.collect::<Vec<_>>() })
}

fn resolved(names: &[&str], address: &str) -> Value {
    let addresses: Vec<&str> = Some(address)
        .filter(|text| !text.is_empty())
        .into_iter()
        .collect();
    let one = |name: &&str| {
        json!({ "domain_name": format!("{name}lab.example.com"), "cnames": [],
            "ipv4_addresses": addresses, "ipv6_addresses": [] })
    };
    json!({ "resolutions": names.iter().map(one).collect::<Vec<_>>() })
}

const WILDCARD: &str = "validateNoWildcardDNS.";
const NAMES: [&str; 3] = ["api.", "api-int.", "console-openshift-console.apps."];

fn vips(api: &str, ingress: &str) -> Value {
    json!({ "api_vips": [{ "ip": api }], "ingress_vips": [{ "ip": ingress }] })
}

/// Three hosts from their registration until nothing is left to complain about.
async fn all_is_well(seen: &mut Seen) {
    let mut wish = vips("192.168.7.100", "192.168.7.101");
    merge(
        &mut wish,
        json!({ "disk_encryption": { "enable_on": "all", "mode": "tpmv2" } }),
    );
    let lab = Lab::new(wish).await;
    lab.look(seen).await;
    lab.register(3, "registry.example.com/agent:wanted").await;
    lab.look(seen).await;
    lab.inventories(3, |_, _| ()).await;
    lab.look(seen).await;
    for host in 1..=3 {
        lab.poll(host, 0).await;
        lab.say(
            host,
            "connectivity-check",
            0,
            paths(host, true, 1.0, 0.0, true, &["52:54:00:00:00:aa"]),
        )
        .await;
        lab.say(
            host,
            "ntp-synchronizer",
            0,
            json!({ "ntp_sources": [{ "source_name": "a", "source_state": "synced" }] }),
        )
        .await;
        lab.say(host, "domain-resolution", 0, resolved(&[WILDCARD], ""))
            .await;
    }
    lab.look(seen).await;
    // And then two go silent, one of them for lack of its media.
    lab.say(1, "inventory", 256, Value::Null).await;
    lab.look(seen).await;
    for _ in 0..4 {
        lab.clock.advance(SignedDuration::from_mins(1));
        lab.poll(3, 0).await;
        lab.look(seen).await;
    }
}

async fn hardware_and_network_are_bad(seen: &mut Seen) {
    let mut wish = vips("192.168.7.21", "192.168.7.101");
    merge(
        &mut wish,
        json!({ "disk_encryption": { "enable_on": "all", "mode": "tpmv2" } }),
    );
    let lab = Lab::new(wish).await;
    lab.register(3, "registry.example.com/agent:old").await;
    lab.inventories(3, |_, machine| {
        merge(
            machine,
            json!({ "hostname": "localhost", "cpu": { "count": 1 }, "memory": { "physical_bytes": GIB, "usable_bytes": GIB },
                "routes": [], "tpm_version": "none", "truncation": { "type": "partial", "reasons": ["disks"] } }),
        );
        let mut second = machine["interfaces"][0].clone();
        merge(&mut second, json!({ "name": "eth1", "mac_address": "52:54:00:00:01:01" }));
        machine["interfaces"].as_array_mut().unwrap().push(second);
        for disk in machine["disks"].as_array_mut().unwrap() {
            merge(disk, json!({ "size_bytes": GIB }));
        }
    })
    .await;
    for host in 1..=3 {
        lab.poll(host, i64::from(host) * 4000).await;
        lab.say(
            host,
            "connectivity-check",
            0,
            paths(
                host,
                false,
                1.0,
                0.0,
                false,
                &["52:54:00:00:00:aa", "52:54:00:00:00:bb"],
            ),
        )
        .await;
        lab.say(host, "ntp-synchronizer", 0, json!({ "ntp_sources": [] }))
            .await;
        lab.say(host, "domain-resolution", 0, resolved(&[WILDCARD], "192.0.2.1"))
            .await;
        let image = json!({ "images": [{ "name": "quay.io/x", "result": "failure" }] });
        lab.say(host, "container-image-availability", 0, image).await;
    }
    lab.look(seen).await;
    lab.inventories(3, |_, machine| {
        merge(
            machine,
            json!({ "disks": [], "truncation": { "type": "full", "reasons": ["all"] } }),
        );
    })
    .await;
    lab.look(seen).await;
    // Good enough to have a role, but far away from each other, and with a slow disk.
    lab.inventories(3, |_, _| ()).await;
    lab.look(seen).await;
    for host in 1..=3 {
        lab.say(
            host,
            "connectivity-check",
            0,
            paths(host, true, 5000.0, 50.0, true, &["52:54:00:00:00:aa"]),
        )
        .await;
        lab.say(
            host,
            "installation-disk-speed-check",
            1,
            json!({ "io_sync_duration": 50, "path": "" }),
        )
        .await;
    }
    lab.look(seen).await;
}

async fn networks_are_wrong(seen: &mut Seen) {
    let lab = Lab::new(json!({})).await;
    lab.register(3, "").await;
    lab.inventories(3, |_, _| ()).await;
    lab.look(seen).await;
    // Nobody is in this network.
    let mut wish = vips("10.9.0.5", "10.9.0.6");
    merge(
        &mut wish,
        json!({ "machine_networks": [{ "cidr": "10.9.0.0/24" }] }),
    );
    lab.change(wish).await;
    lab.look(seen).await;
    for wish in [
        json!({ "machine_networks": [], "api_vips": [{ "ip": "192.168.7.22" }], "ingress_vips": [{ "ip": "192.168.7.23" }] }),
        json!({ "cluster_networks": [], "service_networks": [] }),
        json!({ "cluster_networks": [{ "cidr": "10.128.0.0/23", "host_prefix": 24 }] }),
    ] {
        lab.change(wish).await;
        lab.look(seen).await;
    }
    // What is set is judged at the door; the machine network may follow from the addresses later.
    let pods = |cidr: &str| json!([{ "cidr": cidr, "host_prefix": 24 }]);
    let six = json!([{ "cidr": "fd01::/48", "host_prefix": 64 }]);
    let both =
        json!([{ "cidr": "10.128.0.0/14", "host_prefix": 23 }, { "cidr": "fd01::/48", "host_prefix": 64 }]);
    for wish in [
        json!({ "cluster_networks": pods("192.168.0.0/16") }),
        json!({ "cluster_networks": pods("10.128.0.0/23") }),
        json!({ "cluster_networks": six, "service_networks": [{ "cidr": "fd02::/112" }] }),
        json!({ "cluster_networks": both }),
        json!({ "cluster_networks": [], "service_networks": [] }),
        json!({ "base_dns_domain": null }),
    ] {
        let lab = Lab::new(wish).await;
        lab.register(3, "").await;
        lab.inventories(3, |_, _| ()).await;
        lab.change(vips("192.168.7.100", "192.168.7.101")).await;
        lab.look(seen).await;
    }
    let lab = Lab::new(json!({ "vip_dhcp_allocation": true })).await;
    lab.register(1, "").await;
    lab.look(seen).await;
    let lab = Lab::new(json!({ "network_type": "Cilium" })).await;
    lab.look(seen).await;
    let platform = json!({ "platform": { "type": "external",
        "external": { "platform_name": "oci", "cloud_controller_manager": "External" } } });
    let lab = Lab::new(platform).await;
    lab.look(seen).await;
}

async fn networks_are_left_to_their_users(seen: &mut Seen) {
    let lab = Lab::new(json!({ "user_managed_networking": true, "platform": { "type": "none" } })).await;
    lab.register(3, "").await;
    lab.inventories(3, |_, _| ()).await;
    lab.look(seen).await;
    for address in ["", "192.0.2.7"] {
        for host in 1..=3 {
            lab.say(host, "domain-resolution", 0, resolved(&NAMES, address))
                .await;
        }
        lab.look(seen).await;
    }
}

async fn hosts_join_a_running_cluster(seen: &mut Seen) {
    let wish = json!({ "name": "lab", "api_vip_dnsname": "api.lab.example.com",
        "openshift_cluster_id": Uuid::from_u128(7), "openshift_version": "4.20.1" });
    let lab = Lab::of("/clusters/import", wish).await;
    lab.register(1, "").await;
    lab.inventories(1, |_, _| ()).await;
    lab.look(seen).await;
    for is_success in [false, true] {
        let report = json!({ "is_success": is_success, "url": "http://x", "ignition": "" });
        lab.say(1, "api-vip-connectivity-check", 0, report).await;
        lab.look(seen).await;
    }
}

async fn platforms_and_disks_do_not_fit(seen: &mut Seen) {
    let lab = Lab::new(vips("192.168.7.100", "192.168.7.101")).await;
    lab.register(2, "").await;
    lab.inventories(2, |host, machine| {
        merge(
            machine,
            json!({ "system_vendor": { "product_name": "OpenStack Compute" } }),
        );
        let address = if host == 1 { "192.168.7.9" } else { "10.1.1.1" };
        merge(
            &mut machine["disks"][0],
            json!({ "drive_type": "iSCSI", "iscsi": { "host_ip_address": address } }),
        );
    })
    .await;
    for host in 1..=2 {
        let choice = json!({ "disks_selected_config": [{ "id": "/dev/disk/by-id/sda", "role": "install" }] });
        lab.change_host(host, choice).await;
    }
    lab.look(seen).await;
    let kept = |disk: &str| {
        let id = format!("/dev/disk/by-id/{disk}");
        json!({ "disks_skip_formatting": [{ "disk_id": id, "skip_formatting": true }] })
    };
    lab.change_host(2, kept("sda")).await;
    lab.change_host(1, kept("sdb")).await;
    lab.inventories(1, |_, machine| {
        machine["disks"].as_array_mut().unwrap().pop();
    })
    .await;
    lab.look(seen).await;

    let mut wish = vips("192.168.7.100", "192.168.7.101");
    merge(&mut wish, json!({ "platform": { "type": "vsphere" } }));
    let lab = Lab::new(wish).await;
    lab.register(3, "").await;
    lab.inventories(3, |host, machine| {
        if host > 1 {
            merge(
                machine,
                json!({ "system_vendor": { "manufacturer": "VMware, Inc.", "virtual": true } }),
            );
            merge(&mut machine["disks"][0], json!({ "has_uuid": host > 2 }));
        }
    })
    .await;
    lab.look(seen).await;
}

#[tokio::test]
async fn every_outcome_of_every_check_comes_about() {
    let mut seen = Seen::new();
    all_is_well(&mut seen).await;
    hardware_and_network_are_bad(&mut seen).await;
    networks_are_wrong(&mut seen).await;
    networks_are_left_to_their_users(&mut seen).await;
    hosts_join_a_running_cluster(&mut seen).await;
    platforms_and_disks_do_not_fit(&mut seen).await;
    let hosts = OF_HOSTS.iter().map(|(id, says)| (format!("host {id}"), *says));
    let clusters = OF_CLUSTERS
        .iter()
        .map(|(id, says)| (format!("cluster {id}"), *says));
    let mut wrong = Vec::new();
    for (id, says) in hosts.chain(clusters) {
        let found = seen.get(&id).cloned().unwrap_or_default();
        for (letter, status) in [
            ('s', "success"),
            ('f', "failure"),
            ('p', "pending"),
            ('e', "error"),
        ] {
            let behind = BEHIND_THE_DOOR
                .iter()
                .any(|(of, what, _)| *of == id && *what == status);
            match (says.contains(letter), found.contains(status)) {
                (true, false) if !behind => wrong.push(format!("{id} is never {status}")),
                (false, true) => wrong.push(format!("{id} can be {status}: say so here")),
                (true, true) if behind => wrong.push(format!("{id} can be {status} after all")),
                (true, _) | (false, false) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_check_is_missing_here() {
    let listed = |list: &[(&str, &str)]| {
        list.iter()
            .map(|(id, _)| (*id).to_owned())
            .collect::<BTreeSet<_>>()
    };
    let hosts = HostCheck::CORE
        .iter()
        .filter(|id| **id != HostCheck::ReleaseDomainName)
        .map(|id| id.as_str().to_owned());
    assert_eq!(listed(&OF_HOSTS), hosts.collect());
    let clusters = ClusterCheck::CORE.iter().map(|id| id.as_str().to_owned());
    assert_eq!(listed(&OF_CLUSTERS), clusters.collect());
}
