//! Where Ironic is, and what an image gets of it.

use super::*;
use std::collections::BTreeMap;

fn secret() -> Key {
    Key::new("machines", "ironic")
}

fn secret_with(values: &[(&str, &str)]) -> Sources {
    let config = Found {
        values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        missing_labels: BTreeMap::new(),
    };
    Sources {
        config: Some(config),
        ..Sources::default()
    }
}

fn pod_with(addresses: &[&str], family: Option<Family>) -> Sources {
    Sources {
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        family,
        ..Sources::default()
    }
}

fn found(sources: &Sources) -> Ironic {
    settings(&infra_env(Some("ipa")), sources, &secret()).unwrap()
}

fn infra_env(image: Option<&str>) -> InfraEnv {
    let mut infra_env = InfraEnv::new("lab", Default::default());
    let noted = image.map(|image| (annotation::IRONIC_AGENT_IMAGE.to_owned(), image.to_owned()));
    infra_env.annotations_mut().extend(noted);
    infra_env
}

#[test]
fn what_is_missing_is_named_with_what_helps() {
    let cases = [
        (Sources::default(), "Secret machines/ironic with IRONIC_BASE_URL"),
        (
            secret_with(&[("IRONIC_BASE_URL", "https://ironic:6385")]),
            annotation::IRONIC_AGENT_IMAGE,
        ),
        (pod_with(&["192.0.2.1"], None), annotation::IRONIC_AGENT_IMAGE),
        (
            pod_with(&["192.0.2.1"], None),
            "--ironic-agent-image of the operator",
        ),
        (
            Sources {
                hidden: Some("no right to list pods".into()),
                ..Sources::default()
            },
            "no right to list pods",
        ),
    ];
    for (sources, expected) in cases {
        let why = settings(&infra_env(None), &sources, &secret()).unwrap_err();
        assert!(why.contains(expected) && why.contains("InfraEnv lab"), "{why}");
    }
    let bad = secret_with(&[("IRONIC_BASE_URL", "https://ironic:6385\nExecStart=evil")]);
    assert!(settings(&infra_env(Some("ipa")), &bad, &secret()).is_err());
}

#[test]
fn the_image_of_ironics_operator_is_taken_for_machines_of_its_architecture_and_the_annotation_for_all() {
    let config = secret_with(&[
        ("IRONIC_BASE_URL", "https://ironic:6385"),
        ("IRONIC_AGENT_IMAGE", "registry/ipa:1"),
    ]);
    let image = |infra_env: &InfraEnv| {
        let found = settings(infra_env, &config, &secret());
        found.map(|ironic| ironic.image)
    };
    let mut same = infra_env(None);
    same.spec.cpu_architecture = std::env::consts::ARCH.into();
    assert_eq!(image(&same).as_deref(), Ok("registry/ipa:1"));
    let mut other = infra_env(None);
    other.spec.cpu_architecture = "s390x".into();
    assert!(image(&other).is_err());
    let mut named = infra_env(Some("registry/ipa:z"));
    named.spec.cpu_architecture = "s390x".into();
    assert_eq!(image(&named).as_deref(), Ok("registry/ipa:z"));
}

#[test]
fn images_of_the_site_are_taken_by_architecture_when_nobody_else_names_one() {
    let of_site = |config: &[(&str, &str)]| {
        let images = [("x86_64", "site/ipa:x86"), ("arm64", "site/ipa:arm")];
        Sources {
            images: images
                .map(|(arch, image)| (arch.to_owned(), image.to_owned()))
                .into(),
            ..secret_with(config)
        }
    };
    let url = ("IRONIC_BASE_URL", "https://ironic:6385");
    let alone = of_site(&[url]);
    let image = |named: Option<&str>, arch: &str, sources: &Sources| {
        let mut infra_env = infra_env(named);
        infra_env.spec.cpu_architecture = arch.into();
        settings(&infra_env, sources, &secret()).map(|ironic| ironic.image)
    };
    for (arch, expected) in [
        ("", "site/ipa:x86"),
        ("x86_64", "site/ipa:x86"),
        ("aarch64", "site/ipa:arm"),
        ("arm64", "site/ipa:arm"),
    ] {
        assert_eq!(image(None, arch, &alone).as_deref(), Ok(expected), "{arch}");
        assert_eq!(image(Some("mine"), arch, &alone).as_deref(), Ok("mine"));
    }
    let both = of_site(&[url, ("IRONIC_AGENT_IMAGE", "registry/ipa:1")]);
    let own = std::env::consts::ARCH;
    assert_eq!(image(None, own, &both).as_deref(), Ok("registry/ipa:1"));
    let why = image(None, "s390x", &both).unwrap_err();
    for way in [
        "s390x",
        annotation::IRONIC_AGENT_IMAGE,
        "IRONIC_AGENT_IMAGE in Secret machines/ironic",
        "--ironic-agent-image",
    ] {
        assert!(why.contains(way), "{way}: {why}");
    }
}

#[test]
fn an_image_gets_ironics_agent_once_and_leaves_discovery_to_it() {
    let ironic = Ironic {
        url: "https://ironic:6385".into(),
        inspector: None,
        image: "registry/ipa:1".into(),
    };
    let own =
        r#"{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"mine.service","enabled":true}]}}"#;
    for text in ["", own] {
        assert!(!is_in(text));
        let with = add_to(text, &ironic, &infra_env(None)).unwrap();
        assert!(is_in(&with));
        assert_eq!(add_to(&with, &ironic, &infra_env(None)).unwrap(), with);
        let config: Value = serde_json::from_str(&with).unwrap();
        let units = config["systemd"]["units"].as_array().unwrap();
        let off = units.iter().find(|unit| unit["name"] == DISCOVERY).unwrap();
        assert_eq!(off["enabled"], false);
        assert_eq!(with.contains("mine.service"), !text.is_empty());
    }
    assert!(add_to(r#"{"systemd":{"units":{}}}"#, &ironic, &infra_env(None)).is_err());
    assert!(!is_in("not json"));
    let wrong = add_to("not json", &ironic, &infra_env(None));
    assert_eq!(wrong.unwrap_err(), "it goes wrong at line 1, column 2");
}

#[test]
fn the_agent_has_the_proxy_and_what_the_hub_shows_has_no_password() {
    let ironic = found(&pod_with(&["192.0.2.1"], None));
    let mut behind = infra_env(None);
    behind.spec.proxy = Some(crate::crd::infra_env::Proxy {
        http_proxy: "http://user:s3cr3t@proxy.example.com:3128".into(),
        https_proxy: "http://user:s3cr3t@proxy.example.com:3129".into(),
        no_proxy: ".example.com".into(),
    });
    let file = "EnvironmentFile=-/etc/muster/proxy.env\\n";
    let with = add_to("", &ironic, &behind).unwrap();
    assert!(with.contains(file) && !with.contains("s3cr3t"), "{with}");
    assert!(!add_to("", &ironic, &infra_env(None)).unwrap().contains(file));
}

#[test]
fn ironics_agent_gets_the_address_to_report_to_with_an_inspector_and_without() {
    let mut ironic = Ironic {
        url: "https://ironic:6385/".into(),
        inspector: None,
        image: "ipa".into(),
    };
    assert!(agent_config(&ironic).contains("https://ironic:6385/v1/continue_inspection\n"));
    ironic.inspector = Some("https://inspector:5050".into());
    assert!(agent_config(&ironic).contains("https://inspector:5050/v1/continue\n"));
}

#[test]
fn without_a_secret_ironic_is_where_kubernetes_sees_it() {
    let both = ["192.0.2.1", "2001:db8::1"];
    let cases = [
        (&both[..], None, "https://192.0.2.1"),
        (&both[..], Some(Family::V4), "https://192.0.2.1"),
        (&both[..], Some(Family::V6), "https://[2001:db8::1]"),
        (&both[..1], Some(Family::V6), "https://192.0.2.1"),
        (&both[1..], None, "https://[2001:db8::1]"),
    ];
    for (addresses, family, host) in cases {
        let ironic = found(&pod_with(addresses, family));
        assert_eq!(ironic.url, format!("{host}:6385"), "{addresses:?} {family:?}");
        assert_eq!(ironic.inspector, Some(format!("{host}:5050")));
        assert!(
            agent_config(&ironic).contains(&format!("inspection_callback_url = {host}:5050/v1/continue\n"))
        );
    }
    let mut secret_wins = secret_with(&[("IRONIC_BASE_URL", "https://ironic.example.com:1234/api")]);
    secret_wins.addresses = pod_with(&both, None).addresses;
    assert!(secret_wins.tells() && !pod_with(&both, None).tells());
    let ironic = found(&secret_wins);
    assert_eq!(
        (ironic.url.as_str(), ironic.inspector),
        ("https://ironic.example.com:1234/api", None)
    );
}

#[test]
fn addresses_get_the_port_they_lack() {
    let sources = secret_with(&[
        ("IRONIC_BASE_URL", "https://192.0.2.1,https://[2001:db8::1]"),
        ("IRONIC_INSPECTOR_BASE_URL", "https://192.0.2.1/v1/continue"),
    ]);
    let ironic = found(&sources);
    assert_eq!(ironic.url, "https://192.0.2.1:6385,https://[2001:db8::1]:6385");
    let config = agent_config(&ironic);
    assert!(
        config.contains("inspection_callback_url = https://192.0.2.1:5050/v1/continue\n"),
        "{config}"
    );
}

#[test]
fn the_ip_family_of_hosts_comes_from_the_annotation_and_else_from_the_networks_of_their_cluster() {
    let noted = |words: &str| {
        let mut infra_env = infra_env(None);
        infra_env
            .annotations_mut()
            .insert(annotation::IP_FAMILY.into(), words.into());
        infra_env
    };
    let install = |networks: &[&str]| {
        let mut install = AgentClusterInstall::default();
        install.spec.networking.machine_network = networks
            .iter()
            .map(|cidr| crate::crd::agent_cluster_install::MachineNetworkEntry { cidr: (*cidr).into() })
            .collect();
        install
    };
    let v6 = install(&["2001:db8::/64"]);
    assert_eq!(family(&noted("v4"), Some(&v6)), Some(Family::V4));
    assert_eq!(family(&noted("v6"), None), Some(Family::V6));
    assert_eq!(family(&noted("v4,v6"), Some(&v6)), None);
    let plain = infra_env(None);
    assert_eq!(family(&plain, Some(&v6)), Some(Family::V6));
    assert_eq!(
        family(&plain, Some(&install(&["192.0.2.0/24", "2001:db8::/64"]))),
        None
    );
    assert_eq!(family(&plain, Some(&install(&[]))), None);
    assert_eq!(family(&plain, None), None);
}

#[test]
fn an_image_keeps_its_agent_while_nobody_knows_where_ironic_is() {
    let ironic = found(&pod_with(&["192.0.2.1"], None));
    let before = add_to("", &ironic, &infra_env(None)).unwrap();
    let own =
        r#"{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"mine.service","enabled":true}]}}"#;
    for text in ["", own] {
        let kept = carry_over(&before, text).unwrap();
        assert_eq!(kept, add_to(text, &ironic, &infra_env(None)).unwrap());
    }
    assert_eq!(carry_over(own, ""), None, "there was none");
}
