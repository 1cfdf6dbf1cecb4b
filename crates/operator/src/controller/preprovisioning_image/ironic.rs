//! Ironic's agent beside discovery: what has to be in an image so that the bare metal operator finds its machine again.
//!
//! The image starts Ironic's agent only. Discovery's own service stays off until the deploy step starts it.

use crate::crd::InfraEnv;
use crate::crd::keys::{annotation, data};
use crate::key::Key;
use crate::runtime::secret::Found;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::ResourceExt;
use serde_json::{Value, json};

/// The service that runs Ironic's agent.
pub const UNIT: &str = "ironic-agent.service";
/// The service of discovery; Ironic's agent knows it by this name.
const DISCOVERY: &str = "agent.service";
const CONFIG: &str = "/etc/ironic-python-agent.conf";

/// Where Ironic is, and its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ironic {
    pub url: String,
    /// Where the agent sends what it found; Ironic itself when there is no inspector.
    pub inspector: Option<String>,
    /// The container image of the agent.
    pub image: String,
}

/// What the Secret and the InfraEnv say, or what is missing.
pub fn settings(infra_env: &InfraEnv, config: Option<&Found>, secret: &Key) -> Result<Ironic, String> {
    let value = |name: &str| {
        let text = config.and_then(|config| config.value(name)).unwrap_or_default();
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let url = value(data::IRONIC_URL).ok_or_else(|| {
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
    let image = named.or_else(|| value(data::IRONIC_AGENT_IMAGE).filter(|_| same));
    let image = image.ok_or_else(|| {
        let how = format!("annotation {} names its image", annotation::IRONIC_AGENT_IMAGE);
        missing(infra_env, &how)
    })?;
    let ironic = Ironic {
        url,
        inspector: value(data::IRONIC_INSPECTOR_URL),
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
        Some(inspector) => format!("{}/v1/continue", inspector.trim_end_matches('/')),
        None => format!("{}/v1/continue_inspection", ironic.url.trim_end_matches('/')),
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

    fn found(values: &[(&str, &str)]) -> Found {
        Found {
            values: values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            missing_labels: BTreeMap::new(),
        }
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
            (None, "Secret machines/ironic with IRONIC_BASE_URL"),
            (
                Some(found(&[("IRONIC_BASE_URL", "https://ironic:6385")])),
                annotation::IRONIC_AGENT_IMAGE,
            ),
        ];
        for (config, expected) in cases {
            let told = settings(&infra_env(None), config.as_ref(), &secret()).unwrap_err();
            assert!(told.contains(expected) && told.contains("InfraEnv lab"), "{told}");
        }
        let bad = found(&[("IRONIC_BASE_URL", "https://ironic:6385\nExecStart=evil")]);
        assert!(settings(&infra_env(Some("ipa")), Some(&bad), &secret()).is_err());
    }

    #[test]
    fn the_image_of_ironics_operator_is_taken_for_machines_of_its_architecture_and_the_annotation_for_all() {
        let config = found(&[
            ("IRONIC_BASE_URL", "https://ironic:6385"),
            ("IRONIC_AGENT_IMAGE", "registry/ipa:1"),
        ]);
        let image = |infra_env: &InfraEnv| {
            let found = settings(infra_env, Some(&config), &secret());
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
}
