//! What a host boots with, word for word.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::ignition::{AGENT_START_TIMEOUT_SECONDS, Discovery, Mirror, PROXY_ENVIRONMENT, discovery};
use super::initrd::{MinimalInitrd, minimal_initrd};
use super::ipxe::{Boot, boot_script, chain_script};
use super::static_network::{HostNetwork, files, from_json};
use crate::InfraEnvId;
use crate::infra_env::{ImageType, Proxy};

const INFRA_ENV: InfraEnvId = InfraEnvId(uuid::Uuid::from_u128(0x431b_034d_b436_4a8d_8f84_0994_8d24_54dd));
const NETWORKS: &str = r#"[{"network_yaml":"interfaces:\n- name: eth0\n","mac_interface_map":[{"mac_address":"52:54:00:aa:00:01","logical_nic_name":"eth0"}]}]"#;

fn plain(proxy: &Proxy) -> Discovery<'_> {
    Discovery {
        service_url: "http://hub.example.com:8090",
        infra_env: INFRA_ENV,
        agent_image: "registry.example.com/agent:v1",
        agent_token: "",
        insecure: false,
        service_ca: "",
        agent_start_timeout_seconds: AGENT_START_TIMEOUT_SECONDS,
        pull_secret: r#"{"auths":{}}"#,
        ssh_authorized_key: "ssh-ed25519 AAAA one\nssh-ed25519 BBBB two\n",
        proxy,
        additional_ntp_sources: "",
        ntp_sources: "",
        trust_bundle: "",
        mirror: None,
        static_network: &[],
        image_type: ImageType::FullIso,
        ignition_override: "",
    }
}

fn proxy() -> Proxy {
    Proxy {
        http: "http://u:p%20w@proxy.example.com:3128".into(),
        https: "http://proxy.example.com:3128".into(),
        no: ".example.com, 10.0.0.0/8".into(),
    }
}

fn config(input: &Discovery<'_>) -> Value {
    serde_json::from_str(&discovery(input).unwrap()).unwrap()
}

fn content(file: &Value) -> String {
    let source = file["contents"]["source"].as_str().unwrap();
    let encoded = source
        .strip_prefix("data:text/plain;charset=utf-8;base64,")
        .unwrap();
    String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap()
}

/// A page a person can read: the config with file contents decoded.
fn page(config: &Value) -> String {
    let mut text = format!("ignition {}\npasswd {}\n", config["ignition"], config["passwd"]);
    for unit in config["systemd"]["units"].as_array().unwrap() {
        text += &format!(
            "== unit {} enabled={}\n{}",
            unit["name"],
            unit["enabled"],
            unit["contents"].as_str().unwrap_or("")
        );
    }
    for file in config["storage"]["files"].as_array().unwrap() {
        text += &format!(
            "== file {} {:o}\n{}\n",
            file["path"],
            file["mode"].as_u64().unwrap(),
            content(file)
        );
    }
    text
}

#[test]
fn the_plain_discovery_config() {
    insta::assert_snapshot!(page(&config(&plain(&Proxy::default()))));
}

#[test]
fn the_discovery_config_with_everything_set() {
    let proxy = proxy();
    let networks = from_json(NETWORKS, |_| None);
    let input = Discovery {
        agent_token: "tok%en",
        insecure: true,
        service_ca: "CA OF THE HUB\n",
        additional_ntp_sources: "clock1.example.com,10.0.0.1",
        trust_bundle: "BUNDLE\n",
        mirror: Some(Mirror {
            registries_conf: "unqualified-search-registries = []\n",
            ca: "CA OF THE MIRROR\n",
            policy: "",
        }),
        static_network: &networks,
        ..plain(&proxy)
    };
    insta::assert_snapshot!(page(&config(&input)));
}

#[test]
fn secrets_are_for_root_only_and_proxy_settings_for_all() {
    let proxy = proxy();
    let config = config(&plain(&proxy));
    let mode = |path: &str| {
        let files = config["storage"]["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).unwrap()["mode"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(mode("/root/.docker/config.json"), 0o600);
    assert_eq!(mode("/etc/profile.d/proxy.sh"), 420);
    assert_eq!(mode(PROXY_ENVIRONMENT), 0o600);
}

#[test]
fn units_read_proxy_settings_as_they_were_given() {
    let proxy = Proxy {
        http: r#"http://u:%24$p`"\'q@proxy.example.com"#.into(),
        https: String::new(),
        no: "a, b\n".into(),
    };
    let config = config(&plain(&proxy));
    let files = config["storage"]["files"].as_array().unwrap();
    let file = files
        .iter()
        .find(|file| file["path"] == PROXY_ENVIRONMENT)
        .unwrap();
    let http = r#""http://u:%24\$p\`\"\\'q@proxy.example.com""#;
    assert_eq!(
        content(file),
        format!("HTTP_PROXY={http}\nhttp_proxy={http}\nNO_PROXY=\"a, b\"\nno_proxy=\"a, b\"\n")
    );
}

#[test]
fn a_minimal_iso_has_its_network_in_the_initrd_not_in_the_config() {
    let (none, networks) = (Proxy::default(), from_json(NETWORKS, |_| None));
    let input = Discovery {
        static_network: &networks,
        image_type: ImageType::MinimalIso,
        ..plain(&none)
    };
    assert!(!discovery(&input).unwrap().contains("pre-network-manager"));
}

#[test]
fn an_override_adds_changes_and_replaces() {
    let none = Proxy::default();
    let wish = json!({
        "ignition": { "version": "3.4.0" },
        "passwd": { "users": [
            { "name": "core", "sshAuthorizedKeys": ["ssh-ed25519 CCCC three", "ssh-ed25519 AAAA one"] },
            { "name": "admin" },
        ] },
        "systemd": { "units": [
            { "name": "agent.service", "dropins": [{ "name": "10.conf", "contents": "[Service]\n" }] },
            { "name": "selinux.service", "enabled": false },
            { "name": "mine.service", "enabled": true },
        ] },
        "storage": {
            "files": [{ "path": "/etc/motd", "contents": { "source": "data:,hello" } }],
            "links": [{ "path": "/etc/multipath.conf", "target": "/dev/null" }],
        },
    })
    .to_string();
    let result = config(&Discovery {
        ignition_override: &wish,
        ..plain(&none)
    });
    let named = |list: &Value, key: &str, name: &str| {
        let found: Vec<Value> = list
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| item[key] == name)
            .cloned()
            .collect();
        assert!(found.len() < 2, "{name} twice");
        found.into_iter().next().unwrap_or_default()
    };
    assert_eq!(result["ignition"]["version"], "3.4.0");
    let core = named(&result["passwd"]["users"], "name", "core");
    assert_eq!(core["sshAuthorizedKeys"].as_array().unwrap().len(), 3);
    assert_eq!(core["groups"], json!(["sudo"]));
    assert!(named(&result["passwd"]["users"], "name", "admin").is_object());
    let agent = named(&result["systemd"]["units"], "name", "agent.service");
    assert!(agent["contents"].is_string() && agent["dropins"][0]["name"] == "10.conf");
    assert_eq!(
        named(&result["systemd"]["units"], "name", "selinux.service")["enabled"],
        false
    );
    assert!(named(&result["systemd"]["units"], "name", "mine.service").is_object());
    let motd = named(&result["storage"]["files"], "path", "/etc/motd");
    assert_eq!(
        (&motd["contents"]["source"], &motd["mode"]),
        (&json!("data:,hello"), &json!(420))
    );
    assert!(named(&result["storage"]["files"], "path", "/etc/multipath.conf").is_null());
}

#[test]
fn an_override_that_cannot_be_read_is_refused() {
    let none = Proxy::default();
    let no = discovery(&Discovery {
        ignition_override: "{}",
        ..plain(&none)
    })
    .unwrap_err();
    assert_eq!(no.field, "ignition_config_override");
}

#[test]
fn the_config_never_names_a_cluster() {
    let proxy = proxy();
    assert!(!page(&config(&plain(&proxy))).contains("cluster-id"));
}

fn boot() -> Boot<'static> {
    Boot {
        image_service_url: "http://images.example.com:8888/",
        infra_env: INFRA_ENV,
        version: "4.20",
        architecture: "x86_64",
        kernel_arguments: None,
        proof: None,
    }
}

#[test]
fn the_boot_script() {
    insta::assert_snapshot!(boot_script(&boot()), @r#"
    #!ipxe
    initrd --name initrd http://images.example.com:8888/images/431b034d-b436-4a8d-8f84-09948d2454dd/pxe-initrd?arch=x86_64&version=4.20
    kernel http://images.example.com:8888/boot-artifacts/kernel?arch=x86_64&version=4.20 initrd=initrd coreos.live.rootfs_url=http://images.example.com:8888/boot-artifacts/rootfs?arch=x86_64&version=4.20 random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal console=tty1 console=ttyS1,115200n8 coreos.inst.persistent-kargs="console=tty1 console=ttyS1,115200n8"
    boot
    "#);
}

#[test]
fn the_boot_script_of_a_mainframe_with_own_arguments_and_proof() {
    let kernel_arguments =
        Some(r#"[{"operation":"append","value":"ip=dhcp"},{"operation":"append","value":"a=\"b c\""}]"#);
    let boot = Boot {
        architecture: "s390x",
        kernel_arguments,
        proof: Some(("image_token", "a+b/c=")),
        ..boot()
    };
    insta::assert_snapshot!(boot_script(&boot), @r#"
    #!ipxe
    initrd --name initrd http://images.example.com:8888/images/431b034d-b436-4a8d-8f84-09948d2454dd/pxe-initrd?arch=s390x&version=4.20&image_token=a%2Bb%2Fc%3D
    kernel http://images.example.com:8888/boot-artifacts/kernel?arch=s390x&version=4.20 initrd=initrd coreos.live.rootfs_url=http://images.example.com:8888/boot-artifacts/rootfs?arch=s390x&version=4.20 random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal ip=dhcp a="b c"
    boot
    "#);
}

#[test]
fn the_chain_script_asks_again_with_the_mac() {
    insta::assert_snapshot!(chain_script("http://hub/files?file_name=ipxe-script&ipxe_script_type=boot-order-control"), @r"
    #!ipxe
    chain http://hub/files?file_name=ipxe-script&ipxe_script_type=boot-order-control&mac=${net0/mac}
    ");
}

#[test]
fn an_initrd_without_network_or_proxy_is_none() {
    let none = Proxy::default();
    let input = MinimalInitrd {
        static_network: &[],
        proxy: &none,
        network_discovery_delay_seconds: 30,
    };
    assert_eq!(minimal_initrd(&input), None);
}

#[test]
fn the_initrd_has_settings_script_unit_and_proxy() {
    let (proxy, networks) = (proxy(), from_json(NETWORKS, |_| None));
    let input = MinimalInitrd {
        static_network: &networks,
        proxy: &proxy,
        network_discovery_delay_seconds: 30,
    };
    let list = minimal_initrd(&input).unwrap();
    let lines: Vec<String> = list
        .iter()
        .map(|entry| format!("{} {:?}", entry.path, entry.kind))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    /etc/assisted/network/host0/mac_interface.ini File { mode: 384 }
    /etc/assisted/network/host0/ymlFile0.yml File { mode: 384 }
    /usr/local/bin/pre-network-manager-config.sh File { mode: 493 }
    /etc/systemd/system/pre-network-manager-config.service File { mode: 420 }
    /etc/systemd/system/initrd.target.wants/pre-network-manager-config.service Link
    /etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf File { mode: 384 }
    ");
    let unit = String::from_utf8(list[3].content.clone()).unwrap();
    assert!(
        unit.contains("sleep 30") && unit.contains("WantedBy=initrd.target"),
        "{unit}"
    );
}

#[test]
fn a_host_without_its_own_name_in_the_map_still_gets_a_line() {
    let networks: Vec<HostNetwork> = from_json(NETWORKS, |_| None);
    assert_eq!(files(&networks)[0].1, "52:54:00:aa:00:01=eth0\n");
    assert!(from_json("", |_| None).is_empty());
}
