//! The shape of a cluster: networks, virtual addresses, control plane, platform, small options.

use super::{ip, network_setting, text};
use crate::input::Shape::Rule;
use crate::input::platform::{NetworkTypeSetting, Platform};
use crate::input::vip::VipSetting;
use crate::input::*;
use muster_vocabulary::NetworkType;

#[test]
fn networks_and_their_sizes() {
    for (cidr, prefix, right) in [
        ("10.128.0.0/14", Some(23), true),
        ("10.128.0.0/14", None, true),
        ("10.128.0.0/14", Some(13), false),
        ("10.128.0.0/14", Some(26), false),
        ("10.128.0.0/14", Some(-1), false),
        ("10.128.0.1/14", Some(23), false),
        ("10.128.0.0/26", None, false),
        ("fd01::/48", Some(64), true),
        ("0.0.0.0/1", None, false),
        ("300.0.0.0/8", None, false),
    ] {
        let items = [(cidr.to_owned(), prefix)];
        assert_eq!(
            network::cluster_networks(&items).is_ok(),
            right,
            "{cidr} {prefix:?}"
        );
    }
    assert!(network::machine_networks(&text(&["192.168.1.0/28"]), true).is_ok());
    assert!(network::machine_networks(&text(&["192.168.1.0/28"]), false).is_err());
    let pods = network::cluster_networks(&[("10.128.0.0/14".to_owned(), None)]).unwrap();
    let net = |text: &str| text.parse().unwrap();
    assert!(network::no_overlap(&pods, &[net("172.30.0.0/16")], &[net("192.168.1.0/24")]).is_ok());
    let no = network::no_overlap(&pods, &[net("172.30.0.0/16")], &[net("10.129.0.0/24")]).unwrap_err();
    assert_eq!(no.field, "machine_networks.0.cidr");
}

#[test]
fn virtual_addresses_come_in_pairs_of_one_per_family() {
    let (api4, in4, api6, in6) = (ip("10.0.0.5"), ip("10.0.0.6"), ip("fd00::5"), ip("fd00::6"));
    let plain = VipSetting::default();
    let umn = VipSetting {
        user_managed_networking: true,
        ..plain
    };
    let dhcp = VipSetting {
        vip_dhcp_allocation: true,
        ..plain
    };
    let own = VipSetting {
        user_managed_load_balancer: true,
        ..plain
    };
    for (api, ingress, setting, right) in [
        (vec![], vec![], umn, true),
        (vec![api4, api6], vec![in4, in6], plain, true),
        (vec![api4, in4], vec![in4, in6], plain, false),
        (vec![api4, api6], vec![in6, in4], plain, false),
        (vec![api4], vec![api4], plain, false),
        (vec![api4], vec![api4], own, true),
        (vec![api4], vec![in4], umn, false),
        (vec![api4], vec![in4], dhcp, false),
    ] {
        assert_eq!(
            vip::vip_pair(&api, &ingress, setting).is_ok(),
            right,
            "{api:?} {ingress:?} {setting:?}"
        );
    }
    assert!(vip::vips("api_vips", &text(&["10.0.0.1", "fd00::1", "10.0.0.2"])).is_err());
    assert_eq!(vip::vips("api_vips", &text(&[""])), Ok(vec![]));
    assert_eq!(
        vip::vips("api_vips", &text(&["300.0.0.1"])).unwrap_err().shape,
        Rule
    );
}

#[test]
fn control_planes_per_version() {
    for (count, mode, version, answer) in [
        (None, None, "4.20", Some(3)),
        (None, Some("None"), "4.20", Some(1)),
        (Some(5), None, "4.18.1", Some(5)),
        (Some(5), None, "4.17", None),
        (Some(2), None, "4.18", None),
        (Some(2), None, "4.19.0-ec.1", Some(2)),
        (Some(3), Some("None"), "4.20", None),
        (Some(1), Some("Full"), "4.20", None),
        (Some(0), None, "4.20", None),
    ] {
        assert_eq!(
            control_plane::control_plane(count, mode, version).ok(),
            answer,
            "{count:?} {mode:?} {version}"
        );
    }
}

#[test]
fn platforms_decide_who_manages_the_network() {
    use Platform::{Baremetal, External, None as NoPlatform, Nutanix, Vsphere};
    for (platform, umn, count, answer) in [
        (None, None, 3, Some((Baremetal, false))),
        (None, Some(true), 3, Some((NoPlatform, true))),
        (None, None, 1, Some((NoPlatform, true))),
        (None, Some(false), 1, None),
        (Some(Vsphere), None, 1, None),
        (Some(External), None, 1, Some((External, true))),
        (Some(NoPlatform), Some(false), 3, None),
        (Some(Baremetal), Some(true), 3, None),
        (Some(Nutanix), None, 3, Some((Nutanix, false))),
        (Some(Vsphere), Some(true), 3, Some((Vsphere, true))),
    ] {
        let got = platform::platform_and_networking(platform, umn, count).ok();
        assert_eq!(got, answer, "{platform:?} {umn:?} {count}");
    }
}

#[test]
fn an_external_platform_has_a_name_and_oracles_cloud_its_controller() {
    use Platform::{External, None as NoPlatform};
    for (platform, name, controller, answer) in [
        (External, "", "", Err("platform.external.platform_name")),
        (External, "", "External", Err("platform.external.platform_name")),
        (
            External,
            "oci",
            "",
            Err("platform.external.cloud_controller_manager"),
        ),
        (External, "oci", "External", Ok(())),
        (External, "mine", "", Ok(())),
        (NoPlatform, "", "", Ok(())),
        (NoPlatform, "oci", "", Ok(())),
    ] {
        let got = platform::external_platform(platform, name, controller).map_err(|invalid| invalid.field);
        assert_eq!(
            got,
            answer.map_err(str::to_owned),
            "{platform:?} {name:?} {controller:?}"
        );
    }
}

#[test]
fn pod_networks() {
    let base = network_setting();
    let old = NetworkTypeSetting {
        version: "4.11.9",
        ..base.clone()
    };
    assert_eq!(
        platform::network_type(None, &base).unwrap(),
        NetworkType::OVNKubernetes
    );
    assert_eq!(
        platform::network_type(None, &old).unwrap(),
        NetworkType::OpenShiftSDN
    );
    assert_eq!(
        platform::network_type(Some("Cilium"), &base).unwrap(),
        NetworkType::Cilium
    );
    assert!(platform::network_type(Some("OpenShiftSDN"), &base).is_err());
    assert!(platform::network_type(Some("OpenShiftSDN"), &old).is_ok());
    for setting in [
        NetworkTypeSetting {
            single_node: true,
            ..old.clone()
        },
        NetworkTypeSetting {
            any_ipv6: true,
            ..old.clone()
        },
    ] {
        assert!(platform::network_type(Some("OpenShiftSDN"), &setting).is_err());
    }
    let dhcp = NetworkTypeSetting {
        vip_dhcp_allocation: true,
        ..base
    };
    assert!(platform::network_type(Some("OVNKubernetes"), &dhcp).is_err());
    let both = NetworkTypeSetting {
        user_managed_networking: true,
        ..dhcp
    };
    assert_eq!(
        platform::network_type(None, &both).unwrap_err().field,
        "vip_dhcp_allocation"
    );
}

#[test]
fn addresses_that_nobody_would_lease_are_refused() {
    for network in NetworkType::ALL {
        assert!(platform::vip_dhcp_served(&(*network).into(), false).is_ok());
    }
    for word in ["OpenShiftSDN", "Cilium", "Calico", "CiscoACI", "None"] {
        let refused = platform::vip_dhcp_served(&word.into(), true).unwrap_err();
        assert_eq!(refused.field, "vip_dhcp_allocation", "{word}");
    }
    // The cluster's own check speaks of this one.
    assert!(platform::vip_dhcp_served(&NetworkType::OVNKubernetes.into(), true).is_ok());
}

#[test]
fn small_cluster_options() {
    assert!(cluster::hyperthreading("masters,workers").is_ok());
    assert!(cluster::hyperthreading("workers,masters").is_err());
    for (tags, right) in [
        ("", true),
        ("a,b c", true),
        ("a, b", false),
        ("a,,b", false),
        ("a!", false),
    ] {
        assert_eq!(cluster::tags(tags).is_ok(), right, "{tags}");
    }
    assert!(cluster::load_balancer("user-managed", Platform::Baremetal, false).is_ok());
    assert!(cluster::load_balancer("user-managed", Platform::None, false).is_err());
    let tang = r#"[{"url":"http://tang.example.com:7500","thumbprint":"abc"}]"#;
    assert!(disk::disk_encryption(Some("all"), Some("tang"), Some(tang)).is_ok());
    assert!(disk::disk_encryption(Some("all"), Some("tang"), None).is_err());
    assert!(disk::disk_encryption(Some("none"), Some("tang"), None).is_ok());
    assert_eq!(
        image::cpu_architecture(Some("aarch64"), &image::IMAGE_ARCHITECTURES).unwrap(),
        "arm64"
    );
    assert_eq!(
        image::cpu_architecture(None, &image::IMAGE_ARCHITECTURES).unwrap(),
        "x86_64"
    );
    assert_eq!(
        image::image_type(None, "s390x", "minimal-iso").unwrap(),
        "full-iso"
    );
    assert!(image::download(Some("discovery.ign"), Some("boot-order-control")).is_err());
    for (name, right) in [
        ("50-a.yaml", true),
        ("a.yml.patch_1", true),
        ("a.json", true),
        ("../a.yaml", false),
        ("a.json.patch", false),
        ("a.yaml.patch-1", false),
        ("yaml", false),
        ("a\r\nX-Evil: 1.yaml", false),
        ("a\n.yaml", false),
        ("a\t.yaml", false),
        ("a\u{7f}.yaml", false),
        ("a\u{2028}.yaml", false),
        ("a b.yaml", true),
        ("ä.yaml", true),
    ] {
        assert_eq!(manifest::manifest_file_name(name).is_ok(), right, "{name}");
    }
}
