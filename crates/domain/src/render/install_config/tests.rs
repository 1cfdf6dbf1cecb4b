//! Clusters of every shape, as the installer reads them.

use super::*;
use crate::cluster::ClusterNetwork;
use crate::{HostId, HostKey, InfraEnvId};
use jiff::Timestamp;
use muster_vocabulary::Word;
use uuid::Uuid;

fn cluster() -> Cluster {
    let mut cluster = crate::cluster::diagram::blank(Timestamp::UNIX_EPOCH);
    cluster.platform.kind = PlatformType::Baremetal;
    cluster.network_type = "OVNKubernetes".into();
    cluster.cluster_networks = vec![ClusterNetwork {
        cidr: "10.128.0.0/14".into(),
        host_prefix: 23,
    }];
    cluster.service_networks = vec!["172.30.0.0/16".into()];
    cluster.machine_networks = vec!["192.168.111.0/24".into()];
    let vip = |ip: &str| {
        vec![Vip {
            ip: ip.into(),
            verification: Word::default(),
        }]
    };
    (cluster.api_vips, cluster.ingress_vips) = (vip("192.168.111.5"), vip("192.168.111.6"));
    cluster.pull_secret = "{\"auths\":{}}".into();
    cluster.ssh_public_key = "ssh-ed25519 AAAA".into();
    cluster
}

fn host(n: u128, role: Role) -> Host {
    let key = HostKey {
        infra_env: InfraEnvId(Uuid::from_u128(1)),
        host: HostId(Uuid::from_u128(n)),
    };
    let mut host = Host::arriving(key, None, Timestamp::UNIX_EPOCH);
    host.role = role;
    host.digest.hostname = format!("node-{n}");
    host.digest.nics = ["10.0.0.1/8", "192.168.111.20/24"]
        .map(|address| Nic {
            name: "eth".into(),
            mac: format!("52:54:00:00:00:{:02x}", address.len()),
            addresses: vec![address.into()],
        })
        .to_vec();
    host.tenant.installation_disk_id = "/dev/disk/by-id/wwn-0x5".into();
    host
}

fn hosts(masters: u128, workers: u128) -> Vec<Host> {
    let masters = (1..=masters).map(|n| host(n, Role::Master));
    masters
        .chain((1..=workers).map(|n| host(10 + n, Role::Worker)))
        .collect()
}

fn render(cluster: &Cluster, hosts: &[Host]) -> Value {
    let text = install_config(cluster, hosts, &[]).unwrap();
    serde_norway::from_str(&text).unwrap()
}

#[test]
fn a_cluster_of_three_masters_and_two_workers() {
    let config = render(&cluster(), &hosts(3, 2));
    assert_eq!(
        config["networking"],
        json!({
            "networkType": "OVNKubernetes", "clusterNetwork": [{ "cidr": "10.128.0.0/14", "hostPrefix": 23 }],
            "serviceNetwork": ["172.30.0.0/16"], "machineNetwork": [{ "cidr": "192.168.111.0/24" }],
        })
    );
    assert_eq!(config["controlPlane"]["replicas"], 3);
    assert_eq!(config["compute"][0]["replicas"], 2);
    assert_eq!(config["compute"][0]["architecture"], "amd64");
    let platform = &config["platform"]["baremetal"];
    assert_eq!(
        (&platform["apiVIPs"], &platform["ingressVIPs"]),
        (&json!(["192.168.111.5"]), &json!(["192.168.111.6"]))
    );
    assert_eq!(platform["hosts"].as_array().unwrap().len(), 5);
    assert_eq!(platform["hosts"][0]["bootMACAddress"], "52:54:00:00:00:11");
    assert_eq!(config["pullSecret"], "{\"auths\":{}}");
    assert_eq!(
        (&config["sshKey"], config.get("proxy")),
        (&json!("ssh-ed25519 AAAA"), None)
    );
}

#[test]
fn a_single_node_is_its_own_bootstrap() {
    let mut cluster = cluster();
    cluster.control_plane_count = 1;
    let config = render(&cluster, &hosts(1, 0));
    assert_eq!(config["platform"], json!({ "none": {} }));
    assert_eq!(
        config["bootstrapInPlace"]["installationDisk"],
        "/dev/disk/by-id/wwn-0x5"
    );
    assert_eq!(
        (
            &config["controlPlane"]["replicas"],
            &config["compute"][0]["replicas"]
        ),
        (&json!(1), &json!(0))
    );
    cluster.platform.kind = PlatformType::External;
    cluster.platform.external_name = "oci".into();
    cluster.platform.external_cloud_controller = "External".into();
    assert_eq!(
        render(&cluster, &hosts(1, 0))["platform"],
        json!({ "external": { "platformName": "oci", "cloudControllerManager": "External" } })
    );
}

#[test]
fn platforms_in_the_installers_words() {
    let with = |change: fn(&mut Cluster)| {
        let mut cluster = cluster();
        change(&mut cluster);
        render(&cluster, &hosts(3, 0))["platform"].clone()
    };
    assert_eq!(
        with(|cluster| cluster.platform.kind = PlatformType::None),
        json!({ "none": {} })
    );
    assert_eq!(
        with(|cluster| cluster.user_managed_networking = true),
        json!({ "none": {} })
    );
    let external = with(|cluster| {
        cluster.platform.kind = PlatformType::External;
        cluster.platform.external_name = "oci".into();
        cluster.platform.external_cloud_controller = "External".into();
    });
    assert_eq!(
        external,
        json!({ "external": { "platformName": "oci", "cloudControllerManager": "External" } })
    );
    let vsphere = with(|cluster| cluster.platform.kind = PlatformType::Vsphere);
    assert_eq!(vsphere["vsphere"]["apiVIPs"], json!(["192.168.111.5"]));
    let balanced = with(|cluster| cluster.load_balancer = "user-managed".into());
    assert_eq!(balanced["baremetal"]["loadBalancer"]["type"], "UserManaged");
}

#[test]
fn arbiters_and_fencing_make_two_masters_possible() {
    let mut cluster = cluster();
    cluster.control_plane_count = 2;
    let mut list = hosts(2, 0);
    list.push(host(9, Role::Arbiter));
    assert_eq!(render(&cluster, &list)["arbiter"]["replicas"], 1);
    list.pop();
    for host in &mut list {
        host.tenant.fencing =
            r#"{"address":"redfish+https://10.0.0.9/redfish/v1","username":"admin","password":"p"}"#.into();
    }
    let config = render(&cluster, &list);
    assert_eq!(config.get("arbiter"), None);
    let credentials = &config["controlPlane"]["fencing"]["credentials"];
    assert_eq!(credentials.as_array().unwrap().len(), 2);
    assert_eq!(credentials[0]["hostName"], "node-1");
}

#[test]
fn hyperthreading_and_proxy() {
    let mut cluster = cluster();
    cluster.hyperthreading = "masters".into();
    cluster.proxy.http = "http://proxy.example.com:3128".into();
    cluster.proxy.no = ".example.com".into();
    let text = install_config(&cluster, &hosts(3, 1), &[]).unwrap();
    let config: Value = serde_norway::from_str(&text).unwrap();
    assert_eq!(
        (
            &config["controlPlane"]["hyperthreading"],
            &config["compute"][0]["hyperthreading"]
        ),
        (&json!("Enabled"), &json!("Disabled"))
    );
    assert_eq!(
        config["proxy"],
        json!({ "httpProxy": "http://proxy.example.com:3128", "noProxy": ".example.com" })
    );
    assert_eq!(config.get(TRUST), None);
}

#[test]
fn nodes_trust_whom_the_creator_names_and_whom_discovery_trusted_each_once() {
    let mut cluster = cluster();
    let config = |cluster: &Cluster, trusted: &[&str]| -> Value {
        serde_norway::from_str(&install_config(cluster, &hosts(3, 0), trusted).unwrap()).unwrap()
    };
    assert_eq!(
        config(&cluster, &["pool\n", "", "pool", "other"])[TRUST],
        "pool\nother"
    );
    cluster.install_config_overrides = r#"{"additionalTrustBundle":"pool\n"}"#.into();
    assert_eq!(config(&cluster, &["other", "pool"])[TRUST], "pool\nother");
}

#[test]
fn the_creators_changes_are_merged_deeply() {
    let mut cluster = cluster();
    cluster.install_config_overrides =
        r#"{"networking":{"networkType":"Calico"},"fips":true,"compute":[]}"#.into();
    let config = render(&cluster, &hosts(3, 0));
    assert_eq!(config["networking"]["networkType"], "Calico");
    assert_eq!(config["networking"]["serviceNetwork"], json!(["172.30.0.0/16"]));
    assert_eq!((&config["fips"], &config["compute"]), (&json!(true), &json!([])));
    cluster.install_config_overrides = "[]".into();
    assert!(install_config(&cluster, &hosts(3, 0), &[]).is_err());
}
