//! The order as recorded clients know it, and every rule that changes it.

use super::*;
use crate::HostKey;
use crate::cluster::Kind;
use crate::host::Nic;
use crate::host::Role;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

const MCO: &str = "registry.example.com/mco@sha256:35";
const GATHER: &str = "registry.example.com/gather@sha256:3c";

struct Fixture {
    host: Host,
    cluster: Cluster,
    pool: InfraEnv,
    images: Images,
    catalog: Catalog,
}

fn fixture() -> Fixture {
    let now = Timestamp::UNIX_EPOCH;
    let mut cluster = crate::cluster::diagram::blank(now);
    cluster.openshift_version = "4.20.33".into();
    cluster.ocp_release_image = "registry.example.com/release:4.20.33".into();
    cluster.machine_networks = vec!["192.168.111.0/24".into()];
    let pool: InfraEnv = serde_json::from_value(json!({
        "id": Uuid::from_u128(1), "name": "pool", "pull_secret": "{}", "openshift_version": "4.20",
        "cpu_architecture": "x86_64", "image_type": "full-iso", "image_token_key": "key",
        "created_at": now, "updated_at": now
    }))
    .unwrap();
    let key = HostKey {
        infra_env: pool.id,
        host: HostId(Uuid::from_u128(2)),
    };
    let mut host = Host::arriving(key, Some(cluster.id), now);
    host.role = Role::Master;
    host.tenant.installation_disk_id = "/dev/disk/by-id/wwn-0x5".into();
    host.tenant.installation_disk_path = "/dev/sda".into();
    host.disks_to_format = vec!["/dev/disk/by-id/wwn-0x5".into(), "/dev/disk/by-id/wwn-0x6".into()];
    host.digest.architecture = "x86_64".into();
    host.digest.nics = vec![
        Nic {
            name: "eth0".into(),
            mac: "52:54:00:00:00:3d".into(),
            addresses: vec!["192.168.111.20/24".into(), "fe80::1/64".into()],
        },
        Nic {
            name: "eth1".into(),
            mac: "52:54:00:00:00:3e".into(),
            addresses: vec!["10.0.0.20/24".into()],
        },
    ];
    Fixture {
        host,
        cluster,
        pool,
        images: Images::default(),
        catalog: Catalog::default(),
    }
}

impl Fixture {
    fn with<T>(&self, ask: impl FnOnce(&Ingredients<'_>) -> T) -> T {
        ask(&Ingredients {
            cluster: &self.cluster,
            pool: &self.pool,
            images: &self.images,
            release: ReleaseImages {
                machine_config_operator: MCO,
                must_gather: GATHER,
                coreos: "registry.example.com/coreos",
            },
            catalog: &self.catalog,
        })
    }

    fn order(&self) -> Value {
        let order = self.with(|with| InstallOrder::of(&self.host, with));
        serde_json::from_str(&order.to_json()).unwrap()
    }

    fn args(&self) -> Vec<String> {
        match self.order()["installer_args"].as_str() {
            None => Vec::new(),
            Some(text) => serde_json::from_str(text).unwrap(),
        }
    }
}

#[test]
fn the_recorded_order_comes_out() {
    let order = fixture().order();
    let (cluster, host, pool) = (Uuid::from_u128(3), Uuid::from_u128(2), Uuid::from_u128(1));
    let wanted = json!({
        "boot_device": "/dev/disk/by-id/wwn-0x5", "check_cvo": false, "cluster_id": cluster,
        "control_plane_count": 3,
        "controller_image": "quay.io/edge-infrastructure/assisted-installer-controller:latest",
        "disks_to_format": ["/dev/disk/by-id/wwn-0x5", "/dev/disk/by-id/wwn-0x6"],
        "enable_skip_mco_reboot": true, "host_id": host, "infra_env_id": pool,
        "installer_args": "[\"--append-karg\",\"ip=52-54-00-00-00-3d:dhcp\"]",
        "installer_image": "quay.io/edge-infrastructure/assisted-installer:latest",
        "mco_image": MCO, "must_gather_image": GATHER, "notify_num_reboots": true,
        "openshift_version": "4.20.33", "role": "master", "service_ips": null
    });
    assert_eq!(order, wanted);
}

#[test]
fn a_host_that_joins_a_cluster_installed_here_is_told_what_is_known_of_it() {
    let mut fixture = fixture();
    fixture.cluster.kind = Kind::AddHostsCluster;
    fixture.host.role = Role::Worker;
    let order = fixture.order();
    for absent in ["mco_image", "must_gather_image", "openshift_version"] {
        assert_eq!(order.get(absent), None, "{absent}");
    }
    assert_eq!(order["control_plane_count"], 3);
    assert_eq!(
        order["installer_args"],
        "[\"--append-karg\",\"ip=52-54-00-00-00-3d:dhcp\"]"
    );
}

#[test]
fn a_host_that_joins_an_imported_cluster_is_told_less() {
    let mut fixture = fixture();
    fixture.cluster.kind = Kind::AddHostsCluster;
    fixture.cluster.imported = true;
    fixture.host.role = Role::Worker;
    let order = fixture.order();
    for absent in [
        "mco_image",
        "must_gather_image",
        "openshift_version",
        "control_plane_count",
        "installer_args",
    ] {
        assert_eq!(order.get(absent), None, "{absent}");
    }
    assert_eq!(order["role"], "worker");
}

#[test]
fn the_bootstrap_host_is_called_that() {
    let mut fixture = fixture();
    fixture.host.bootstrap = true;
    assert_eq!(fixture.order()["role"], "bootstrap");
}

#[test]
fn disks_a_person_wants_kept_are_not_formatted() {
    let mut fixture = fixture();
    fixture.host.tenant.skip_formatting = vec!["/dev/disk/by-id/wwn-0x6".into()];
    assert_eq!(
        fixture.order()["disks_to_format"],
        json!(["/dev/disk/by-id/wwn-0x5"])
    );
}

#[test]
fn disks_that_compete_and_disks_that_are_kept_are_not_held_against_each_other() {
    let mut host = fixture().host;
    let disks = |from: u32| -> Vec<String> { (from..from + 40_000).map(|n| format!("/dev/sd{n}")).collect() };
    host.disks_to_format = disks(0);
    host.tenant.skip_formatting = disks(20_000);
    assert_eq!(disks_to_format(&host), disks(0)[..20_000]);
    let (wiped, spared) = wiped_and_spared(&host);
    assert_eq!((wiped.len(), spared.len()), (20_000, 20_000));
    assert_eq!(spared[0], "/dev/sd20000");
}

#[test]
fn the_network_of_the_discovered_system_is_kept() {
    let mut fixture = fixture();
    fixture.cluster.machine_networks = vec!["192.168.111.0/24".into(), "fe80::/64".into()];
    assert_eq!(
        fixture.args(),
        [
            "--append-karg",
            "ip=52-54-00-00-00-3d:dhcp",
            "--append-karg",
            "ip=52-54-00-00-00-3d:dhcp6"
        ]
    );
    fixture.host.tenant.installer_args = vec!["--append-karg".into(), "ip=eth0:dhcp".into()];
    assert_eq!(fixture.args(), ["--append-karg", "ip=eth0:dhcp"]);
    fixture.host.tenant.installer_args.clear();
    fixture.pool.static_network_config = "[]".into();
    assert_eq!(fixture.args(), ["--copy-network"]);
    fixture.host.tenant.installer_args = vec!["--copy-network".into()];
    assert_eq!(fixture.args(), ["--copy-network"]);
}

#[test]
fn a_host_discovered_with_another_build_fetches_the_clusters() {
    let mut fixture = fixture();
    fixture.pool.openshift_version = "4.18".into();
    let args = fixture.args();
    let at = args.iter().position(|arg| arg == "--image-url").unwrap();
    assert!(
        args[at + 1].ends_with("/4.20/4.20.13/rhcos-4.20.13-x86_64-metal.x86_64.raw.gz"),
        "{args:?}"
    );
    fixture.host.tenant.installer_args = vec!["--image-url".into(), "https://example.com/own.raw.gz".into()];
    assert_eq!(
        fixture.args().iter().filter(|arg| *arg == "--image-url").count(),
        1
    );
    fixture.host.digest.persistent_boot = true;
    assert_eq!(fixture.order()["coreos_image"], "registry.example.com/coreos");
}

#[test]
fn what_the_kernel_was_started_with_decides_before_what_the_pool_offered() {
    let mut fixture = fixture();
    let is_other = |fixture: &Fixture| fixture.args().contains(&"--image-url".to_owned());
    assert!(!is_other(&fixture), "the pool offers 4.20");
    fixture.host.booted_version = "4.19".into();
    assert!(is_other(&fixture), "it booted when the pool offered 4.19");
    fixture.host.digest.booted_version = "4.20".into();
    assert!(!is_other(&fixture), "its boot link was that of 4.20");
    fixture.host.digest.booted_build = "rhcos-418.94.202511191518-0".into();
    assert!(is_other(&fixture), "the label of its image is that of 4.18");
    fixture.host.digest.booted_build = "of-our-own-42".into();
    assert!(!is_other(&fixture), "a label that nobody knows says nothing");
}

#[test]
fn an_operating_system_that_cannot_be_named_is_told_unless_the_owner_chose_one() {
    let mut fixture = fixture();
    let told = |fixture: &Fixture| fixture.with(|with| System::of(&fixture.host, with));
    fixture.pool.openshift_version = "4.21".into();
    assert!(matches!(told(&fixture), System::Other(_)));
    for image in &mut fixture.catalog.os_images {
        image.url = "https://images.example.com/own.iso".into();
    }
    let System::Unnamed(text) = told(&fixture) else {
        panic!()
    };
    assert!(text.contains("4.21") && text.contains("4.20.33"), "{text}");
    fixture.cluster.openshift_version = "4.99.1".into();
    let System::Unnamed(text) = told(&fixture) else {
        panic!()
    };
    assert!(text.contains("4.99.1"), "{text}");
    fixture.host.tenant.installer_args = vec!["--image-url=https://example.com/own.raw.gz".into()];
    assert_eq!(told(&fixture), System::Running);
}

#[test]
fn images_of_the_release_come_from_the_catalogue() {
    let mut fixture = fixture();
    let json = json!([{ "openshift_version": "4.20.33", "url": "registry.example.com/release:4.20.33",
        "mco_image": MCO, "must_gather_image": GATHER, "coreos_image": "registry.example.com/coreos" }]);
    fixture.catalog = Catalog::from_json(None, Some(&json.to_string())).unwrap();
    let all = ReleaseImages::of(&fixture.catalog, &fixture.cluster);
    assert_eq!(
        (all.machine_config_operator, all.must_gather, all.coreos),
        (MCO, GATHER, "registry.example.com/coreos")
    );
    fixture.cluster.ocp_release_image = "mirror.example.com/release@sha256:1".into();
    assert_eq!(
        ReleaseImages::of(&fixture.catalog, &fixture.cluster),
        all,
        "by its version"
    );
    fixture.cluster.openshift_version = "4.19.1".into();
    assert_eq!(
        ReleaseImages::of(&fixture.catalog, &fixture.cluster),
        ReleaseImages::default()
    );
}

#[test]
fn a_map_of_must_gather_images_is_sent_whole_and_only_the_platforms_own_is_pulled() {
    let mut fixture = fixture();
    fixture.images.must_gather =
        r#"{"ocp":"registry.example.com/ocp","lso":"registry.example.com/lso"}"#.into();
    assert_eq!(fixture.order()["must_gather_image"], fixture.images.must_gather);
    let pulled = wanted_images(&fixture.cluster, &fixture.images, ReleaseImages::default());
    assert!(
        pulled.contains(&"registry.example.com/ocp".to_owned()),
        "{pulled:?}"
    );
    assert!(!pulled.iter().any(|image| image.contains("lso")), "{pulled:?}");
}

#[test]
fn kept_partitions_skip_the_cleaning_and_the_speed_test() {
    let mut fixture = fixture();
    assert_eq!(
        disk_speed(&fixture.host),
        Some(vec![
            "{\"path\":\"/dev/disk/by-id/wwn-0x5\"}".into(),
            "480.00".into()
        ])
    );
    fixture.host.tenant.installer_args = vec!["--save-partlabel".into(), "data".into()];
    assert_eq!(fixture.order()["skip_installation_disk_cleanup"], true);
    assert_eq!(disk_speed(&fixture.host), None);
    assert!(skips_disk_speed(&fixture.host));
    fixture.host.tenant.installer_args.clear();
    assert!(!skips_disk_speed(&fixture.host));
    fixture.host.digest.persistent_boot = true;
    assert!(skips_disk_speed(&fixture.host), "the system runs from a disk");
}

#[test]
fn the_reboot_is_not_skipped_where_it_is_needed() {
    let skips = |change: fn(&mut Fixture)| {
        let mut fixture = fixture();
        change(&mut fixture);
        fixture.order().get("enable_skip_mco_reboot").is_some()
    };
    assert!(skips(|_| {}));
    assert!(!skips(
        |fixture| fixture.cluster.openshift_version = "4.14.9".into()
    ));
    assert!(!skips(|fixture| fixture.host.digest.architecture = "s390x".into()));
    assert!(!skips(|fixture| {
        fixture.host.tenant.installation_disk_path = "/dev/dm-0".into();
    }));
}

#[test]
fn the_cluster_itself_is_never_reached_through_the_proxy() {
    let mut fixture = fixture();
    assert_eq!(fixture.order().get("proxy"), None);
    fixture.cluster.proxy.http = "http://proxy.example.com:3128".into();
    fixture.cluster.proxy.no = ".corp.example.com,localhost".into();
    assert_eq!(
        fixture.order()["proxy"],
        json!({
            "http_proxy": "http://proxy.example.com:3128",
            "no_proxy": ".corp.example.com,localhost,127.0.0.1,.svc,.cluster.local,api-int.alpha.example.com"
        })
    );
    fixture.cluster.proxy.no = "*".into();
    assert_eq!(fixture.order()["proxy"]["no_proxy"], "*");
}

#[test]
fn images_are_tested_once_each_and_an_uploaded_cluster_needs_none() {
    let mut fixture = fixture();
    let release = ReleaseImages {
        machine_config_operator: MCO,
        must_gather: MCO,
        coreos: "",
    };
    let images = wanted_images(&fixture.cluster, &fixture.images, release);
    assert_eq!(
        images,
        [
            "registry.example.com/release:4.20.33",
            MCO,
            fixture.images.installer.as_str()
        ]
    );
    let args = image_availability(&images).unwrap();
    assert!(args[0].ends_with("\"timeout\":960}"), "{args:?}");
    assert_eq!(image_availability(&[]), None);
    for source in [IgnitionSource::Uploaded, IgnitionSource::Endpoint] {
        fixture.cluster.ignition_source = source;
        assert_eq!(wanted_images(&fixture.cluster, &fixture.images, release), [""; 0]);
    }
}

#[test]
fn a_bootstrap_host_gathers_the_masters_logs_too() {
    let mut fixture = fixture();
    let ips = ["192.168.111.20".to_owned()];
    let args = |host: &Host| logs_gather(host, ClusterId(Uuid::from_u128(3)), Some(&ips)).remove(0);
    assert!(args(&fixture.host).ends_with("\"installer_gather\":true,\"master_ips\":null}"));
    fixture.host.bootstrap = true;
    assert!(args(&fixture.host).ends_with("\"master_ips\":[\"192.168.111.20\"]}"));
}
