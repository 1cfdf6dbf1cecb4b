//! Names, secrets, proxies, keys and configs.

use super::{SECRET, text};
use crate::infra_env::Proxy;
use crate::input::Shape::Schema;
use crate::input::kernel_arguments::KernelArgument;
use crate::input::static_network::{MacInterface, StaticNetwork};
use crate::input::*;
use serde_json::{Value, json};

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
    for (arguments, right) in [
        (&["--append-karg=a=b"][..], true),
        (&["-n"], true),
        (&["--append-karg", "a b"], false),
        (&["--append-karg", "a;b"], true),
        (&["--append-karg", "a|b"], false),
        (&["--append-karg", ""], false),
        (&[""], false),
        (&["--x=1"], false),
        (
            &["--save-partindex", "5", "-n", "--append-karg", "console=ttyS0"],
            true,
        ),
        (&["/dev/sda"], false),
        (&["-n", "/dev/sda"], false),
        (&["--append-karg", "quiet", "/dev/sda"], false),
        (&["--copy-network=/dev/sda"], false),
        (&["--append-karg"], false),
        (&["--append-karg", "--image-url"], false),
        (&["--", "/dev/sda"], false),
    ] {
        assert_eq!(
            installer_args::installer_args(&text(arguments)).is_ok(),
            right,
            "{arguments:?}"
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

#[test]
fn every_list_of_an_ignition_override_has_a_bound() {
    let count = ignition::ENTRIES_MAX;
    let places: [fn(Value) -> Value; 3] = [
        |items| json!({ "storage": { "files": items } }),
        |items| json!({ "systemd": { "units": [{ "name": "a", "dropins": items }] } }),
        |items| json!({ "anything": [items] }),
    ];
    for place in places {
        let refused = |count| {
            let items: Vec<_> = (0..count).map(|n| json!({ "path": format!("/{n}") })).collect();
            let mut config = place(items.into());
            config["ignition"] = json!({ "version": "3.1.0" });
            ignition::ignition("config", &config.to_string()).err()
        };
        assert_eq!(refused(count), None);
        let no = refused(count + 1).unwrap();
        assert_eq!(no.fix, "give at most 4096 in each list");
    }
}

/// A throw-away authority made for this test.
const CA: &str = include_str!("../../../testdata/authority.pem");

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
