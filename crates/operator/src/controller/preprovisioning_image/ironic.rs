//! Ironic's agent beside discovery: what has to be in an image so that the bare metal operator finds its machine again.
//!
//! The image starts Ironic's agent only. Discovery's own service stays off until the deploy step starts it.

use crate::crd::keys::{annotation, data};
use crate::crd::{AgentClusterInstall, InfraEnv};
use crate::key::Key;
use crate::runtime::secret::Found;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt;
use serde_json::{Value, json};
use std::net::IpAddr;

/// The service that runs Ironic's agent.
pub const UNIT: &str = "ironic-agent.service";
/// The service of discovery; Ironic's agent knows it by this name.
const DISCOVERY: &str = "agent.service";
const CONFIG: &str = "/etc/ironic-python-agent.conf";

/// Where Ironic and its inspector listen when nobody says otherwise.
const PORT: u16 = 6385;
const INSPECTOR_PORT: u16 = 5050;
/// Where the inspector takes what the agent found.
const REPORT: &str = "/v1/continue";

/// Where Ironic is, and its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ironic {
    pub url: String,
    /// Where the agent sends what it found; Ironic itself when there is no inspector.
    pub inspector: Option<String>,
    /// The container image of the agent.
    pub image: String,
}

/// From what it is known where Ironic is.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The Secret of Ironic's operator.
    pub config: Option<Found>,
    /// Where Ironic runs, as Kubernetes knows it; read only when the Secret does not tell.
    pub addresses: Vec<IpAddr>,
    /// What hosts of the InfraEnv speak, if they do not speak both.
    pub family: Option<Family>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }
}

/// What the annotation says, else what networks the cluster of the InfraEnv has.
pub fn family(infra_env: &InfraEnv, install: Option<&AgentClusterInstall>) -> Option<Family> {
    if let Some(words) = infra_env.annotations().get(annotation::IP_FAMILY) {
        return match words.trim() {
            "v4" => Some(Family::V4),
            "v6" => Some(Family::V6),
            _ => None,
        };
    }
    let install = install?;
    let status = install.status.as_ref();
    let networks = install.spec.networking.machine_network.iter();
    let networks = networks.chain(status.iter().flat_map(|status| &status.machine_network));
    let addresses = install.spec.api_vips.iter().map(String::as_str);
    let all: Vec<Family> = networks
        .filter_map(|network| network.cidr.split('/').next())
        .chain(addresses)
        .filter_map(|text| text.parse().ok().map(Family::of))
        .collect();
    let first = *all.first()?;
    all.iter().all(|one| *one == first).then_some(first)
}

impl Sources {
    /// Without spaces around it; an empty text is none.
    fn value(&self, name: &str) -> Option<String> {
        let text = self.config.as_ref()?.value(name)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// The Secret tells it all.
    pub fn tells(&self) -> bool {
        self.value(data::IRONIC_URL).is_some()
    }

    /// Ironic and its inspector.
    fn urls(&self) -> Option<(String, Option<String>)> {
        if let Some(url) = self.value(data::IRONIC_URL) {
            return Some((url, self.value(data::IRONIC_INSPECTOR_URL)));
        }
        let speaks = |address: &&IpAddr| self.family.is_none_or(|family| family == Family::of(**address));
        let address = self.addresses.iter().find(speaks).or(self.addresses.first())?;
        let url = match address {
            IpAddr::V4(address) => format!("https://{address}"),
            IpAddr::V6(address) => format!("https://[{address}]"),
        };
        Some((url.clone(), Some(url)))
    }
}

/// What is known of Ironic and what the InfraEnv says, or what is missing.
pub fn settings(infra_env: &InfraEnv, sources: &Sources, secret: &Key) -> Result<Ironic, String> {
    let (url, inspector) = sources.urls().ok_or_else(|| {
        missing(
            infra_env,
            &format!("Secret {secret} with {} says where Ironic is", data::IRONIC_URL),
        )
    })?;
    let named = infra_env
        .annotations()
        .get(annotation::IRONIC_AGENT_IMAGE)
        .cloned();
    // The image that Ironic's operator names runs on machines like its own.
    let same = architecture(&infra_env.spec.cpu_architecture) == architecture(std::env::consts::ARCH);
    let image = named.or_else(|| sources.value(data::IRONIC_AGENT_IMAGE).filter(|_| same));
    let image = image.ok_or_else(|| {
        let how = format!("annotation {} names its image", annotation::IRONIC_AGENT_IMAGE);
        missing(infra_env, &how)
    })?;
    let ironic = Ironic {
        url: each(&url, |url| with_port(url, PORT)),
        inspector: inspector.map(|urls| each(&urls, |url| with_port(url, INSPECTOR_PORT))),
        image,
    };
    let texts = [Some(&ironic.url), ironic.inspector.as_ref(), Some(&ironic.image)];
    if let Some(text) = texts.into_iter().flatten().find(|text| !is_one_word(text)) {
        return Err(format!("{text:?} can be neither an address nor an image."));
    }
    Ok(ironic)
}

/// Machines that boot live images share the InfraEnv, so its image cannot be changed for one that does not.
pub fn only_converged(infra_env: &InfraEnv) -> String {
    missing(infra_env, "the operator runs with --converged")
}

fn missing(infra_env: &InfraEnv, how: &str) -> String {
    format!(
        "The image of InfraEnv {} does not contain Ironic's agent. It gets it when {how}; or write a unit {UNIT} into \
         ignitionConfigOverride.",
        infra_env.name_any()
    )
}

/// Several addresses are separated by commas.
fn each(urls: &str, change: impl Fn(&str) -> String) -> String {
    let all: Vec<String> = urls
        .split(',')
        .filter(|url| !url.is_empty())
        .map(change)
        .collect();
    all.join(",")
}

/// What cannot be read is left as it is.
fn with_port(url: &str, port: u16) -> String {
    let Ok(parts) = url.parse::<http::Uri>() else {
        return url.to_owned();
    };
    match (parts.scheme_str(), parts.host(), parts.port()) {
        (Some(scheme), Some(host), None) => {
            let path = parts.path().trim_end_matches('/');
            format!("{scheme}://{host}:{port}{path}")
        }
        _ => url.to_owned(),
    }
}

fn is_one_word(text: &str) -> bool {
    !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// One name for each architecture, whoever wrote it.
pub fn architecture(word: &str) -> &str {
    match word {
        "" | "amd64" => "x86_64",
        "aarch64" => "arm64",
        word => word,
    }
}

/// Whether an image with this override starts Ironic's agent.
pub fn is_in(ignition: &str) -> bool {
    let config: Value = serde_json::from_str(ignition).unwrap_or_default();
    let mut units = config["systemd"]["units"].as_array().into_iter().flatten();
    units.any(|unit| unit["name"] == UNIT && unit["contents"].is_string() && unit["enabled"] == true)
}

/// Whether the agent in this override looks for Ironic where it is.
pub fn finds(ignition: &str, ironic: &Ironic) -> bool {
    ignition.contains(&BASE64_STANDARD.encode(agent_config(ironic)))
}

/// The override with Ironic's agent in it. What people wrote themselves under the same names stays.
pub fn add_to(ignition: &str, ironic: &Ironic, infra_env: &InfraEnv) -> Result<String, String> {
    let mut config = match ignition {
        "" => json!({ "ignition": { "version": "3.1.0" } }),
        text => serde_json::from_str(text).map_err(|error| error.to_string())?,
    };
    let source = format!("data:;base64,{}", BASE64_STANDARD.encode(agent_config(ironic)));
    let file = json!({ "path": CONFIG, "mode": 0o644, "overwrite": true, "contents": { "source": source } });
    let unit = json!({ "name": UNIT, "enabled": true, "contents": unit(ironic, infra_env) });
    let off = json!({ "name": DISCOVERY, "enabled": false });
    let added = push(&mut config, ["storage", "files"], "path", file)
        .and_then(|()| push(&mut config, ["systemd", "units"], "name", unit))
        .and_then(|()| push(&mut config, ["systemd", "units"], "name", off));
    match added {
        Some(()) => Ok(config.to_string()),
        None => Err("storage.files or systemd.units is not a list".into()),
    }
}

/// The override with the agent that is in another one: where Ironic is cannot be told for a while, and no machine should
/// be rebooted for that.
pub fn carry_over(from: &str, ignition: &str) -> Option<String> {
    let before: Value = serde_json::from_str(from).ok().filter(|_| is_in(from))?;
    let mut config = match ignition {
        "" => json!({ "ignition": { "version": "3.1.0" } }),
        text => serde_json::from_str(text).ok()?,
    };
    let parts = [
        (["storage", "files"], "path", CONFIG),
        (["systemd", "units"], "name", UNIT),
        (["systemd", "units"], "name", DISCOVERY),
    ];
    for (place, key, name) in parts {
        let mut items = before[place[0]][place[1]].as_array().into_iter().flatten();
        if let Some(item) = items.find(|item| item[key] == name) {
            push(&mut config, place, key, item.clone())?;
        }
    }
    Some(config.to_string())
}

fn push(config: &mut Value, [section, list]: [&str; 2], name: &str, item: Value) -> Option<()> {
    let section = config
        .as_object_mut()?
        .entry(section)
        .or_insert_with(|| json!({}));
    let list = section.as_object_mut()?.entry(list).or_insert_with(|| json!([]));
    let list = list.as_array_mut()?;
    if !list.iter().any(|other| other[name] == item[name]) {
        list.push(item);
    }
    Some(())
}

/// Ironic signs its certificate itself, hence `insecure`.
fn agent_config(ironic: &Ironic) -> String {
    let report = match &ironic.inspector {
        Some(inspector) => each(inspector, |url| {
            let url = url.trim_end_matches('/');
            format!("{}{REPORT}", url.strip_suffix(REPORT).unwrap_or(url))
        }),
        None => each(&ironic.url, |url| {
            format!("{}/v1/continue_inspection", url.trim_end_matches('/'))
        }),
    };
    format!(
        "[DEFAULT]\napi_url = {}\ninspection_callback_url = {report}\ninsecure = True\nenable_vlan_interfaces = all\n",
        ironic.url
    )
}

/// It sees the machine as if it were not in a container, and speaks to the machine's systemd.
fn unit(ironic: &Ironic, infra_env: &InfraEnv) -> String {
    const MOUNTS: [(&str, &str); 6] = [
        (CONFIG, "/etc/ironic-python-agent/ignition.conf"),
        ("/dev", "/dev"),
        ("/sys", "/sys"),
        ("/run/udev", "/run/udev"),
        ("/run/dbus/system_bus_socket", "/run/dbus/system_bus_socket"),
        ("/", "/mnt/coreos"),
    ];
    let mounts = MOUNTS.map(|(from, to)| format!("--mount type=bind,src={from},dst={to}"));
    // A percent sign begins a specifier of systemd.
    let image = ironic.image.replace('%', "%%");
    let mut lines = vec![
        "[Unit]".to_owned(),
        "Description=Ironic's agent".into(),
        "Wants=network-online.target".into(),
        "After=network-online.target".into(),
        "[Service]".into(),
        "TimeoutStartSec=0".into(),
        "Restart=on-failure".into(),
        "RestartSec=5".into(),
    ];
    let proxy = infra_env.spec.proxy.clone().unwrap_or_default();
    let proxies = [
        ("HTTP_PROXY", proxy.http_proxy),
        ("HTTPS_PROXY", proxy.https_proxy),
        ("NO_PROXY", proxy.no_proxy),
    ];
    let set = proxies.into_iter().filter(|(_, value)| !value.is_empty());
    lines.extend(set.map(|(name, value)| format!("Environment=\"{name}={}\"", value.replace('%', "%%"))));
    lines.extend([
        "ExecStartPre=-/usr/bin/podman rm --force --ignore ironic-agent".into(),
        format!("ExecStartPre=/usr/bin/podman pull --authfile /root/.docker/config.json {image}"),
        format!(
            "ExecStart=/usr/bin/podman run --rm --name ironic-agent --privileged --network host --ipc host --uts host \
             {} {image}",
            mounts.join(" ")
        ),
        "[Install]".into(),
        "WantedBy=multi-user.target".into(),
    ]);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn secret() -> Key {
        Key::new("machines", "ironic")
    }

    fn told(values: &[(&str, &str)]) -> Sources {
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

    fn seen(addresses: &[&str], family: Option<Family>) -> Sources {
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
                told(&[("IRONIC_BASE_URL", "https://ironic:6385")]),
                annotation::IRONIC_AGENT_IMAGE,
            ),
            (seen(&["192.0.2.1"], None), annotation::IRONIC_AGENT_IMAGE),
        ];
        for (sources, expected) in cases {
            let why = settings(&infra_env(None), &sources, &secret()).unwrap_err();
            assert!(why.contains(expected) && why.contains("InfraEnv lab"), "{why}");
        }
        let bad = told(&[("IRONIC_BASE_URL", "https://ironic:6385\nExecStart=evil")]);
        assert!(settings(&infra_env(Some("ipa")), &bad, &secret()).is_err());
    }

    #[test]
    fn the_image_of_ironics_operator_is_taken_for_machines_of_its_architecture_and_the_annotation_for_all() {
        let config = told(&[
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
    fn an_image_gets_ironics_agent_once_and_leaves_discovery_to_it() {
        let ironic = Ironic {
            url: "https://ironic:6385".into(),
            inspector: None,
            image: "registry/ipa:1".into(),
        };
        let own = r#"{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"mine.service","enabled":true}]}}"#;
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
    }

    #[test]
    fn ironic_is_told_where_to_report_with_an_inspector_and_without() {
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
            let ironic = found(&seen(addresses, family));
            assert_eq!(ironic.url, format!("{host}:6385"), "{addresses:?} {family:?}");
            assert_eq!(ironic.inspector, Some(format!("{host}:5050")));
            assert!(
                agent_config(&ironic)
                    .contains(&format!("inspection_callback_url = {host}:5050/v1/continue\n"))
            );
        }
        let mut secret_wins = told(&[("IRONIC_BASE_URL", "https://ironic.example.com:1234/api")]);
        secret_wins.addresses = seen(&both, None).addresses;
        assert!(secret_wins.tells() && !seen(&both, None).tells());
        let ironic = found(&secret_wins);
        assert_eq!(
            (ironic.url.as_str(), ironic.inspector),
            ("https://ironic.example.com:1234/api", None)
        );
    }

    #[test]
    fn addresses_get_the_port_they_lack() {
        let sources = told(&[
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
    fn what_hosts_speak_is_told_by_the_annotation_and_else_by_the_networks_of_their_cluster() {
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
        let ironic = found(&seen(&["192.0.2.1"], None));
        let before = add_to("", &ironic, &infra_env(None)).unwrap();
        let own = r#"{"ignition":{"version":"3.2.0"},"systemd":{"units":[{"name":"mine.service","enabled":true}]}}"#;
        for text in ["", own] {
            let kept = carry_over(&before, text).unwrap();
            assert_eq!(kept, add_to(text, &ironic, &infra_env(None)).unwrap());
        }
        assert_eq!(carry_over(own, ""), None, "there was none");
    }
}
