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
use muster_domain::input::bounds::place;
use muster_domain::render::ignition::PROXY_ENVIRONMENT;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
    /// Where Ironic runs, as Kubernetes knows it; read only when the Secret does not say.
    pub addresses: Vec<IpAddr>,
    /// What hosts of the InfraEnv speak, if they do not speak both.
    pub family: Option<Family>,
    /// What the operator may not read.
    pub hidden: Option<String>,
    /// Images of the agent that the site has, by `architecture`.
    pub images: BTreeMap<String, String>,
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

    /// The Secret says it all.
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
    let (url, inspector) = sources
        .urls()
        .ok_or_else(|| missing(infra_env, &who_tells(sources, secret)))?;
    let image = image(infra_env, sources).ok_or_else(|| missing(infra_env, &who_names(infra_env, secret)))?;
    let ironic = Ironic {
        url: each(&url, |url| with_port(url, PORT)),
        inspector: inspector.map(|urls| each(&urls, |url| with_port(url, INSPECTOR_PORT))),
        image,
    };
    let texts = [Some(&ironic.url), ironic.inspector.as_ref(), Some(&ironic.image)];
    if let Some(text) = texts.into_iter().flatten().find(|text| !is_one_word(text)) {
        return Err(format!("{text:?} is neither an address nor an image."));
    }
    Ok(ironic)
}

fn who_tells(sources: &Sources, secret: &Key) -> String {
    let hidden = sources.hidden.iter();
    let hidden: String = hidden
        .map(|what| format!(" (the operator cannot find it elsewhere: {what})"))
        .collect();
    format!(
        "Secret {secret} with {} says where Ironic is{hidden}",
        data::IRONIC_URL
    )
}

/// What the InfraEnv says, else Ironic's operator, else the site.
fn image(infra_env: &InfraEnv, sources: &Sources) -> Option<String> {
    let own = architecture(&infra_env.spec.cpu_architecture);
    let named = infra_env
        .annotations()
        .get(annotation::IRONIC_AGENT_IMAGE)
        .cloned();
    // The image that Ironic's operator names runs on machines like its own.
    let same = own == architecture(std::env::consts::ARCH);
    let of_operator = || sources.value(data::IRONIC_AGENT_IMAGE).filter(|_| same);
    named
        .or_else(of_operator)
        .or_else(|| sources.images.get(own).cloned())
}

fn who_names(infra_env: &InfraEnv, secret: &Key) -> String {
    let own = architecture(&infra_env.spec.cpu_architecture);
    format!(
        "annotation {}, {} in Secret {secret} (for machines of the operator's own architecture, {}) or \
         --ironic-agent-image of the operator names its image for {own}",
        annotation::IRONIC_AGENT_IMAGE,
        data::IRONIC_AGENT_IMAGE,
        architecture(std::env::consts::ARCH),
    )
}

/// Machines that boot live images share the InfraEnv, so its image cannot be changed for one that does not.
pub fn only_converged(infra_env: &InfraEnv) -> String {
    missing(infra_env, "the operator runs with --converged")
}

fn missing(infra_env: &InfraEnv, how: &str) -> String {
    format!(
        "The image of InfraEnv {} does not contain Ironic's agent. The operator adds it when {how}. Or write a \
         unit {UNIT} into ignitionConfigOverride.",
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

/// Whether the agent in this override is the desired one, and uses Ironic where it is.
pub fn finds(ignition: &str, ironic: &Ironic) -> bool {
    let config: Value = serde_json::from_str(ignition).unwrap_or_default();
    let mut units = config["systemd"]["units"].as_array().into_iter().flatten();
    let runs_it = units.any(|unit| {
        let contents = unit["contents"].as_str().unwrap_or_default();
        unit["name"] == UNIT && contents.contains(&format!(" {}\n", in_unit(&ironic.image)))
    });
    runs_it && ignition.contains(&BASE64_STANDARD.encode(agent_config(ironic)))
}

/// The override with Ironic's agent in it. What people wrote themselves under the same names stays.
pub fn add_to(ignition: &str, ironic: &Ironic, infra_env: &InfraEnv) -> Result<String, String> {
    let mut config = match ignition {
        "" => json!({ "ignition": { "version": "3.1.0" } }),
        text => serde_json::from_str(text).map_err(|error| place(&error))?,
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

/// The override with the agent that is in another one: the operator does not know for a while where Ironic is, and no
/// machine should be rebooted for that.
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
    for (list, key, name) in parts {
        let mut items = before[list[0]][list[1]].as_array().into_iter().flatten();
        if let Some(item) = items.find(|item| item[key] == name) {
            push(&mut config, list, key, item.clone())?;
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

/// A percent sign begins a specifier of systemd.
fn in_unit(text: &str) -> String {
    text.replace('%', "%%")
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
    let image = in_unit(&ironic.image);
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
    // The hub shows this unit to whoever reads the InfraEnv; the file, with the proxy's password, only to machines.
    if infra_env.spec.proxy.is_some() {
        lines.push(format!("EnvironmentFile=-{PROXY_ENVIRONMENT}"));
    }
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
mod tests;
