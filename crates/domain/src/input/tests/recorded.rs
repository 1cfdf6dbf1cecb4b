//! One row for each refused create or update of the reference's recorded error paths that a value can cause.
//!
//! Unknown fields and wrong JSON types are refused by the strict decoder at the door.

use super::{ED25519, SECRET, TOY_DSS, ip, network_setting, text, unit};
use crate::catalog::Catalog;
use crate::infra_env::{ImageType, Proxy};
use crate::input::Shape::{Rule, Schema};
use crate::input::kernel_arguments::KernelArgument;
use crate::input::platform::NetworkTypeSetting;
use crate::input::vip::VipSetting;
use crate::input::*;

type Row = (&'static str, Checked, &'static str, Shape);

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
            "an image that needs no hub",
            image::offered(ImageType::DisconnectedIso),
            "image_type",
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
