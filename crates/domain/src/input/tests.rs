//! Tables of what is refused and what is taken.
//!
//! The first table has one row for each refused create or update of the reference's recorded error paths that a
//! value can cause. Unknown fields and wrong JSON types are refused by the strict decoder at the door.

use super::Shape::{Rule, Schema};
use super::*;
use crate::catalog::Catalog;
use crate::infra_env::Proxy;
use kernel_arguments::KernelArgument;
use platform::{NetworkTypeSetting, Platform};
use static_network::{MacInterface, StaticNetwork};
use vip::VipSetting;

type Row = (&'static str, Checked, &'static str, Shape);

fn text(list: &[&str]) -> Vec<String> {
    list.iter().map(|item| (*item).to_owned()).collect()
}

fn unit<T>(answer: Checked<T>) -> Checked {
    answer.map(|_| ())
}

fn ip(text: &str) -> std::net::IpAddr {
    text.parse().unwrap()
}

const SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZAo=","email":"a@example.com"}}}"#;
const ED25519: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA a@example.com";
const TOY_DSS: &str = "ssh-dss AAAAB3NzaC1kc3MAAAAEAAAABwAAAAQAAAAHAAAABAAAAAcAAAAEAAAABw== dummy";

fn network_setting() -> NetworkTypeSetting<'static> {
    NetworkTypeSetting {
        version: "4.20.33",
        single_node: false,
        vip_dhcp_allocation: false,
        user_managed_networking: false,
        any_ipv6: false,
    }
}

fn recorded_cluster_refusals() -> Vec<Row> {
    let catalog = Catalog::default();
    let proxied = vip::vip_pair(
        &[ip("10.0.0.1"), ip("10.0.0.2")],
        &[ip("10.0.0.3")],
        VipSetting::default(),
    );
    vec![
        (
            "create without name",
            unit(schema::required::<str>("name", None)),
            "name",
            Schema,
        ),
        (
            "create without version",
            unit(schema::required::<str>("openshift_version", None)),
            "openshift_version",
            Schema,
        ),
        (
            "create without pull secret",
            unit(schema::required::<str>("pull_secret", None)),
            "pull_secret",
            Schema,
        ),
        ("empty name", name::cluster_name("", false), "name", Schema),
        (
            "upper case name",
            name::cluster_name("Upper_Case", false),
            "name",
            Rule,
        ),
        (
            "name of 60",
            name::cluster_name(&"a".repeat(60), false),
            "name",
            Schema,
        ),
        (
            "version 1.2",
            unit(catalog.release("1.2", "x86_64")),
            "openshift_version",
            Rule,
        ),
        (
            "pull secret no JSON",
            pull_secret::pull_secret("nope"),
            "pull_secret",
            Rule,
        ),
        (
            "pull secret without auths",
            pull_secret::pull_secret("{}"),
            "pull_secret",
            Rule,
        ),
        (
            "api vip banana",
            unit(vip::vips("api_vips", &text(&["banana"]))),
            "api_vips.0.ip",
            Schema,
        ),
        ("two api vips, one ingress", proxied, "api_vips", Rule),
        (
            "nine masters",
            unit(control_plane::control_plane(Some(9), None, "4.20.33")),
            "control_plane_count",
            Rule,
        ),
        (
            "mode Maybe",
            unit(control_plane::control_plane(None, Some("Maybe"), "4.20")),
            "high_availability_mode",
            Schema,
        ),
        (
            "ssh key nope",
            unit(ssh_key::ssh_keys("ssh_public_key", "nope")),
            "ssh_public_key",
            Rule,
        ),
        (
            "cpu z80",
            unit(image::cpu_architecture(
                Some("z80"),
                &image::CLUSTER_ARCHITECTURES,
            )),
            "cpu_architecture",
            Schema,
        ),
        (
            "network without prefix",
            unit(network::machine_networks(&text(&["10.0.0.0"]), false)),
            "machine_networks.0.cidr",
            Schema,
        ),
        (
            "ntp with a blank",
            unit(ntp::ntp_sources("additional_ntp_source", "a b")),
            "additional_ntp_source",
            Rule,
        ),
        (
            "domain -x-",
            name::base_dns_domain("-x-"),
            "base_dns_domain",
            Rule,
        ),
        (
            "network type Token-Ring",
            unit(platform::network_type(Some("Token-Ring"), &network_setting())),
            "network_type",
            Schema,
        ),
        (
            "update: bad name",
            name::cluster_name("Bad_Name", false),
            "name",
            Rule,
        ),
        (
            "update: api vip zz",
            unit(vip::vips("api_vips", &text(&["zz"]))),
            "api_vips.0.ip",
            Schema,
        ),
        (
            "update: API name on day 1",
            name::api_vip_dns_name_update("x.example.com", false),
            "api_vip_dns_name",
            Rule,
        ),
        (
            "update: pull secret",
            pull_secret::pull_secret("nope"),
            "pull_secret",
            Rule,
        ),
        (
            "update: ssh key x",
            unit(ssh_key::ssh_keys("ssh_public_key", "x")),
            "ssh_public_key",
            Rule,
        ),
        (
            "update: unknown operator",
            operator::operators(&["nope"]),
            "olm_operators",
            Rule,
        ),
        (
            "manifest a.txt",
            manifest::manifest_file_name("a.txt"),
            "file_name",
            Schema,
        ),
        (
            "manifest no base64",
            unit(manifest::manifest_content("!!")),
            "content",
            Rule,
        ),
        (
            "install config",
            install_config::install_config_overrides("not: [valid"),
            "install_config_overrides",
            Rule,
        ),
        (
            "import without API name",
            unit(schema::required::<str>("api_vip_dnsname", None)),
            "api_vip_dnsname",
            Schema,
        ),
        (
            "cluster id zzz",
            unit(schema::uuid("cluster_id", "zzz")),
            "cluster_id",
            Schema,
        ),
    ]
}

fn recorded_infra_env_refusals() -> Vec<Row> {
    let catalog = Catalog::default();
    let replace = KernelArgument {
        operation: "replace".into(),
        value: "a=b".into(),
    };
    let https = Proxy {
        http: "https://x".into(),
        ..Proxy::default()
    };
    let both = ntp::not_both(
        ("additional_ntp_sources", "x.example.com"),
        ("ntp_sources", "y.example.com"),
    );
    vec![
        (
            "cluster id z",
            unit(schema::uuid("cluster_id", "z")),
            "cluster_id",
            Schema,
        ),
        (
            "pull secret",
            pull_secret::pull_secret("nope"),
            "pull_secret",
            Rule,
        ),
        (
            "ssh key nope",
            unit(ssh_key::ssh_keys("ssh_authorized_key", "nope")),
            "ssh_authorized_key",
            Rule,
        ),
        (
            "arm64 for an x86_64 cluster",
            image::same_architecture("arm64", "x86_64"),
            "cpu_architecture",
            Rule,
        ),
        (
            "cpu z80",
            unit(image::cpu_architecture(Some("z80"), &image::IMAGE_ARCHITECTURES)),
            "cpu_architecture",
            Schema,
        ),
        (
            "ntp with a blank",
            unit(ntp::ntp_sources("additional_ntp_sources", "a b")),
            "additional_ntp_sources",
            Rule,
        ),
        ("both ntp fields", both, "ntp_sources", Rule),
        (
            "karg replace",
            kernel_arguments::kernel_arguments(&[replace]),
            "kernel_arguments.0.operation",
            Rule,
        ),
        (
            "rendezvous ip on a full ISO",
            image::rendezvous_ip("10.0.0.1", "full-iso"),
            "rendezvous_ip",
            Rule,
        ),
        (
            "ignition without version",
            unit(ignition::ignition("ignition_config_override", "{}")),
            "ignition_config_override",
            Rule,
        ),
        (
            "ignition no JSON",
            unit(ignition::ignition("ignition_config_override", "xx")),
            "ignition_config_override",
            Rule,
        ),
        (
            "floppy",
            unit(image::image_type(Some("floppy"), "x86_64", "full-iso")),
            "image_type",
            Schema,
        ),
        (
            "version 1.2",
            unit(catalog.os_image(Some("1.2"), "x86_64")),
            "openshift_version",
            Rule,
        ),
        (
            "http proxy over https",
            proxy::proxy("proxy.", &https),
            "proxy.http_proxy",
            Rule,
        ),
        (
            "trust bundle xx",
            unit(trust_bundle::trust_bundle("xx")),
            "additional_trust_bundle",
            Rule,
        ),
        (
            "toy dss key",
            unit(ssh_key::ssh_keys("ssh_authorized_key", TOY_DSS)),
            "ssh_authorized_key",
            Rule,
        ),
        (
            "without pull secret",
            unit(schema::required::<str>("pull_secret", None)),
            "pull_secret",
            Schema,
        ),
        (
            "without name",
            unit(schema::required::<str>("name", None)),
            "name",
            Schema,
        ),
        (
            "download passwd",
            image::download(Some("passwd"), None),
            "file_name",
            Schema,
        ),
        (
            "download nothing",
            image::download(None, None),
            "file_name",
            Schema,
        ),
    ]
}

fn recorded_host_refusals() -> Vec<Row> {
    let disk = |role: &str| disk::disks_selected(&[("/dev/sdb".to_owned(), Some(role.to_owned()))]);
    let label = |key: &str| unit(node_label::node_labels(&[(key.to_owned(), "x".to_owned())]));
    let skip = disk::disks_skip_formatting(&[("/dev/nope".to_owned(), true)], &["/dev/sda"]);
    vec![
        ("name -bad-", name::hostname("-bad-"), "host_name", Rule),
        ("name localhost", name::hostname("localhost"), "host_name", Rule),
        ("empty name", name::hostname(""), "host_name", Rule),
        ("name of 64", name::hostname(&"a".repeat(64)), "host_name", Rule),
        ("role king", cluster::host_role("king"), "host_role", Schema),
        (
            "role bootstrap",
            cluster::host_role("bootstrap"),
            "host_role",
            Schema,
        ),
        (
            "disk role boot",
            disk("boot"),
            "disks_selected_config.0.role",
            Schema,
        ),
        ("skip unknown disk", skip, "disks_skip_formatting", Rule),
        ("label -bad-", label("-bad-"), "node_labels", Rule),
        (
            "flag --rm-rf",
            installer_args::installer_args(&text(&["--rm-rf"])),
            "args",
            Rule,
        ),
        (
            "ignition xx",
            unit(ignition::ignition("config", "xx")),
            "config",
            Rule,
        ),
    ]
}

fn all_refused(rows: Vec<Row>) {
    for (case, answer, field, shape) in rows {
        let no = answer.expect_err(case);
        assert_eq!((no.field.as_str(), no.shape), (field, shape), "{case}: {no}");
        let sentence = no.to_string();
        assert!(
            sentence.starts_with(&format!("`{field}` ")) && sentence.ends_with('.'),
            "{sentence}"
        );
    }
}

#[test]
fn every_recorded_refusal_has_its_field_and_shape() {
    all_refused(recorded_cluster_refusals());
    all_refused(recorded_infra_env_refusals());
    all_refused(recorded_host_refusals());
}

#[test]
fn what_the_recordings_show_accepted_is_accepted() {
    let pasted =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLEEXAMPLE test@example";
    let rows: Vec<(&str, Checked)> = vec![
        ("pull secret", pull_secret::pull_secret(SECRET)),
        (
            "two keys",
            unit(ssh_key::ssh_keys("k", &format!("{ED25519}\n\n{pasted}\n"))),
        ),
        ("no key", unit(ssh_key::ssh_keys("k", ""))),
        (
            "two masters",
            unit(control_plane::control_plane(Some(2), None, "4.20.33")),
        ),
        (
            "one master",
            unit(control_plane::control_plane(Some(1), Some("None"), "4.20")),
        ),
        ("dhcp with the default network", {
            let setting = NetworkTypeSetting {
                vip_dhcp_allocation: true,
                ..network_setting()
            };
            unit(platform::network_type(None, &setting))
        }),
        (
            "vips",
            vip::vip_pair(
                &[ip("192.168.111.5")],
                &[ip("192.168.111.4")],
                VipSetting::default(),
            ),
        ),
        (
            "machine network",
            unit(network::machine_networks(&text(&["192.168.111.0/24"]), false)),
        ),
        (
            "karg",
            installer_args::installer_args(&text(&["--append-karg", "nameserver=8.8.8.8"])),
        ),
        (
            "host ignition",
            unit(ignition::ignition(
                "config",
                r#"{"ignition":{"version":"3.2.0"}}"#,
            )),
        ),
        (
            "label",
            unit(node_label::node_labels(&[("ok".to_owned(), "v".to_owned())])),
        ),
        ("name", name::hostname("node-0")),
        ("domain", name::base_dns_domain("example.com")),
    ];
    for (case, answer) in rows {
        assert_eq!(answer, Ok(()), "{case}");
    }
}

#[test]
fn pull_secrets_are_refused_without_being_repeated() {
    let cases = [
        r#"{"auths":{}}"#,
        r#"{"auths":{"quay.io":{}}}"#,
        r#"{"auths":{"quay.io":{"auth":"c2VjcmV0"}}}"#,
        r#"{"auths":{"quay.io":{"auth":"!!secret"}}}"#,
        r#"["auths"]"#,
    ];
    for case in cases {
        let no = pull_secret::pull_secret(case).unwrap_err().to_string();
        assert!(!no.contains("secret\"") && !no.contains("c2VjcmV0"), "{no}");
    }
    assert_eq!(
        pull_secret::auth_of(SECRET, "quay.io").as_deref(),
        Some("dXNlcjpwYXNzd29yZAo=")
    );
}

#[test]
fn names_and_domains() {
    for (name, dots, right) in [
        ("a", false, true),
        ("cl-1", false, true),
        ("a-", false, false),
        ("a.b", false, false),
        ("a.b", true, true),
        ("a..b", true, false),
    ] {
        assert_eq!(name::cluster_name(name, dots).is_ok(), right, "{name}");
    }
    for (domain, right) in [
        ("", true),
        ("karmalabs.corp", true),
        ("example", false),
        ("10.0.0.1", false),
        ("Example.com", false),
        ("a.b", false),
        ("x-1.lab.example.com", true),
    ] {
        assert_eq!(name::base_dns_domain(domain).is_ok(), right, "{domain}");
    }
    for (name, right) in [
        ("node.example.com", true),
        ("localhost6", false),
        ("UPPER", false),
        ("a_b", false),
        ("a..b", false),
    ] {
        assert_eq!(name::hostname(name).is_ok(), right, "{name}");
    }
}

#[test]
fn proxies() {
    for (http, https, no, right) in [
        ("", "", "", true),
        (
            "http://user:p%40ss@proxy.example.com:3128",
            "https://[fd00::1]:3128/",
            ".example.com,10.0.0.0/8,fd00::1",
            true,
        ),
        ("", "http://10.0.0.1:8080", "*", true),
        ("proxy:3128", "", "", false),
        ("http://", "", "", false),
        ("http://a b", "", "", false),
        ("http://a$(reboot)", "", "", false),
        ("http://p:99999", "", "", false),
        ("http://p", "ftp://p", "", false),
        ("http://p", "", "a b", false),
        ("http://p", "", "ok,", false),
    ] {
        let given = Proxy {
            http: http.into(),
            https: https.into(),
            no: no.into(),
        };
        assert_eq!(proxy::proxy("", &given).is_ok(), right, "{given:?}");
    }
}

#[test]
fn kernel_arguments_are_single_words_or_quoted() {
    for (value, right) in [
        ("console=ttyS0", true),
        ("a=\"b c\"", true),
        ("a b", false),
        ("", false),
        ("a=\"b", false),
        ("a\nb", false),
    ] {
        let argument = KernelArgument {
            operation: "append".into(),
            value: value.into(),
        };
        assert_eq!(
            kernel_arguments::kernel_arguments(&[argument]).is_ok(),
            right,
            "{value:?}"
        );
    }
}

#[test]
fn static_networks_are_checked_and_put_in_order() {
    let item = |yaml: &str, macs: &[&str]| StaticNetwork {
        network_yaml: yaml.into(),
        mac_interface_map: macs
            .iter()
            .map(|mac| MacInterface {
                mac_address: (*mac).into(),
                logical_nic_name: "eth0".into(),
            })
            .collect(),
    };
    let good = [
        item("interfaces: [b]", &["52:54:00:AA:00:02"]),
        item("interfaces: [a]", &["52-54-00-aa-00-01"]),
    ];
    let stored = static_network::static_network(&good).unwrap();
    assert_eq!(stored[0].network_yaml, "interfaces: [a]");
    assert_eq!(stored[1].mac_interface_map[0].mac_address, "52:54:00:aa:00:02");
    assert_eq!(static_network::static_network(&stored).unwrap(), stored);
    for (case, bad) in [
        ("no yaml", item("interfaces: [", &["52:54:00:aa:00:01"])),
        ("no mapping", item("just text", &["52:54:00:aa:00:01"])),
        ("empty", item("", &["52:54:00:aa:00:01"])),
        ("no mac", item("interfaces: []", &[])),
        ("bad mac", item("interfaces: []", &["52:54:00:aa:00"])),
        (
            "same mac twice",
            item("interfaces: []", &["52:54:00:aa:00:01", "52:54:00:AA:00:01"]),
        ),
    ] {
        assert!(static_network::static_network(&[bad]).is_err(), "{case}");
    }
}

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
fn pod_networks() {
    let base = network_setting();
    let old = NetworkTypeSetting {
        version: "4.11.9",
        ..base.clone()
    };
    assert_eq!(platform::network_type(None, &base).unwrap(), "OVNKubernetes");
    assert_eq!(platform::network_type(None, &old).unwrap(), "OpenShiftSDN");
    assert_eq!(platform::network_type(Some("Cilium"), &base).unwrap(), "Cilium");
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
fn labels_arguments_headers_and_credentials() {
    let label =
        |key: &str, value: &str| node_label::node_labels(&[(key.to_owned(), value.to_owned())]).is_ok();
    for (key, value, right) in [
        ("node-role.kubernetes.io/infra", "", true),
        ("a/b/c", "", false),
        ("Bad_/x", "", false),
        ("/x", "", false),
        ("ok", "-v", false),
        ("ok", "v v", false),
        ("", "v", false),
    ] {
        assert_eq!(label(key, value), right, "{key} {value}");
    }
    for (argument, right) in [
        ("--append-karg=a=b", true),
        ("-n", true),
        ("a b", false),
        ("a;b", true),
        ("a|b", false),
        ("", false),
        ("--x=1", false),
    ] {
        assert_eq!(
            installer_args::installer_args(&text(&[argument])).is_ok(),
            right,
            "{argument}"
        );
    }
    let header =
        |key: &str, value: &str| ignition_endpoint::ignition_headers(&[(key.to_owned(), value.to_owned())]);
    assert!(header("X-Token", "t").is_ok());
    assert!(header("X Token", "t").is_err());
    let no = header("X-Token", "secret\r\nHost: evil").unwrap_err();
    assert!(!no.to_string().contains("secret"));
    let mut credentials = fencing::FencingCredentials {
        address: "redfish+https://10.0.0.9/redfish/v1/Systems/1".into(),
        username: "root".into(),
        password: "hidden-word".into(),
        certificate_verification: "Enabled".into(),
        mac_address: None,
    };
    assert!(fencing::fencing(&credentials).is_ok());
    assert!(!format!("{credentials:?}").contains("hidden-word"));
    credentials.certificate_verification = "Perhaps".into();
    assert_eq!(fencing::fencing(&credentials).unwrap_err().shape, Schema);
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
    ] {
        assert_eq!(manifest::manifest_file_name(name).is_ok(), right, "{name}");
    }
}

#[test]
fn ignition_overrides() {
    for (config, right) in [
        (r#"{"ignition":{"version":"3.5.0"}}"#, true),
        (r#"{"ignition":{"version":"2.2.0"}}"#, false),
        (r#"{"ignition":{"version":"3.9.0"}}"#, false),
        (
            r#"{"ignition":{"version":"3.1.0"},"storage":{"files":[{"mode":1}]}}"#,
            false,
        ),
        (
            r#"{"ignition":{"version":"3.1.0"},"systemd":{"units":{}}}"#,
            false,
        ),
    ] {
        assert_eq!(ignition::ignition("config", config).is_ok(), right, "{config}");
    }
}

/// A throw-away authority made for this test.
const CA: &str = include_str!("../../testdata/authority.pem");

#[test]
fn trust_bundles_hold_certificates_only() {
    assert_eq!(
        trust_bundle::trust_bundle(&format!("\n{CA}\n\n")).unwrap(),
        CA.trim()
    );
    assert_eq!(
        trust_bundle::trust_bundle(&format!("{CA}{CA}")).unwrap(),
        format!("{CA}{CA}").trim()
    );
    assert_eq!(trust_bundle::trust_bundle("  ").unwrap(), "");
    let broken = CA.replacen("MII", "AII", 1);
    let half = &CA[..CA.len() / 2];
    let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for (case, text) in [
        ("der", broken.as_str()),
        ("half", half),
        ("key", key),
        ("good then half", &format!("{CA}{half}")),
    ] {
        assert!(trust_bundle::trust_bundle(text).is_err(), "{case}");
    }
    assert_eq!(
        trust_bundle::trust_bundle(&"x".repeat(70_000)).unwrap_err().shape,
        Schema
    );
}
