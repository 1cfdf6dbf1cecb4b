//! The Ignition config (spec 3.1.0) a host boots into discovery with. It never names a cluster: one image serves all.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::units::{self, Stage};
use super::{merge, quote, static_network};
use crate::InfraEnvId;
use crate::infra_env::{ImageType, Proxy};
use crate::input::{Checked, ignition, ntp, proxy};

/// Room for the compressed cpio of the config in a live ISO.
pub const EMBED_AREA_BYTES: usize = 256 * 1024;
/// Pulling the agent image over a slow line takes its time.
pub const AGENT_START_TIMEOUT_SECONDS: u32 = 180;

const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;
const SECRET: u32 = 0o600;

/// Proxy settings for units that people or programs add to the config: nothing that is shown need repeat a password.
pub const PROXY_ENVIRONMENT: &str = "/etc/muster/proxy.env";

/// Everything the config is made of. Texts that are not set are empty.
#[derive(Clone)]
pub struct Discovery<'a> {
    /// Where agents find the hub.
    pub service_url: &'a str,
    pub infra_env: InfraEnvId,
    pub agent_image: &'a str,
    /// What agents prove their right with; empty without authentication.
    pub agent_token: &'a str,
    /// Let agents accept any certificate of the hub.
    pub insecure: bool,
    /// PEM of the authority behind the hub's certificate.
    pub service_ca: &'a str,
    pub agent_start_timeout_seconds: u32,
    pub pull_secret: &'a str,
    pub ssh_authorized_key: &'a str,
    pub proxy: &'a Proxy,
    pub additional_ntp_sources: &'a str,
    pub ntp_sources: &'a str,
    pub trust_bundle: &'a str,
    pub mirror: Option<Mirror<'a>>,
    /// Goes into the config of a full ISO only; the minimal one has it in its initrd.
    pub static_network: &'a [static_network::HostNetwork],
    pub image_type: ImageType,
    pub ignition_override: &'a str,
}

/// Registries to use instead of the public ones.
#[derive(Clone, Copy, Debug)]
pub struct Mirror<'a> {
    /// Content of registries.conf.
    pub registries_conf: &'a str,
    /// PEM of the authority behind the mirror's certificate.
    pub ca: &'a str,
    /// Content of policy.json.
    pub policy: &'a str,
}

/// The config as JSON text. Fails only if the override cannot be read.
pub fn discovery(input: &Discovery<'_>) -> Checked<String> {
    let mut config = json!({
        "ignition": { "version": "3.1.0" },
        "passwd": { "users": users(input.ssh_authorized_key) },
        "systemd": { "units": systemd_units(input) },
        "storage": { "files": files(input) },
    });
    if let Some(proxy) = ignition_proxy(input.proxy) {
        config["ignition"]["proxy"] = proxy;
    }
    if !input.ignition_override.is_empty() {
        let override_config = ignition::ignition("ignition_config_override", input.ignition_override)?;
        merge::merge(&mut config, override_config);
    }
    Ok(config.to_string())
}

/// Nobody may log in unless a key was given.
fn users(ssh_authorized_key: &str) -> Vec<Value> {
    let keys: Vec<&str> = ssh_authorized_key
        .lines()
        .map(str::trim)
        .filter(|key| !key.is_empty() && !key.starts_with('#'))
        .collect();
    if keys.is_empty() {
        return Vec::new();
    }
    vec![json!({ "name": "core", "passwordHash": "!", "groups": ["sudo"], "sshAuthorizedKeys": keys })]
}

fn ignition_proxy(settings: &Proxy) -> Option<Value> {
    proxy::is_set(settings).then_some(())?;
    let mut value = json!({});
    if !settings.http.is_empty() {
        value["httpProxy"] = settings.http.as_str().into();
    }
    if !settings.https.is_empty() {
        value["httpsProxy"] = settings.https.as_str().into();
    }
    if !settings.no.is_empty() {
        value["noProxy"] = settings.no.split(',').map(str::trim).collect();
    }
    Some(value)
}

fn systemd_units(input: &Discovery<'_>) -> Vec<Value> {
    let unit = |name: &str, contents: String| json!({ "name": name, "enabled": true, "contents": contents });
    let mut list = vec![
        unit("agent.service", units::agent(input)),
        unit("selinux.service", units::SELINUX.to_owned()),
        json!({ "name": "multipathd.service", "enabled": true }),
        unit("iscsistart.service", units::ISCSI.to_owned()),
    ];
    if let Some((verb, sources)) = time_sources(input) {
        list.push(unit("add-ntp-sources.service", units::ntp(verb, &sources)));
    }
    if carries_static_network(input) {
        list.push(unit(
            static_network::UNIT_NAME,
            units::static_network(Stage::System),
        ));
    }
    list
}

/// What to do with the sources, if there are any.
fn time_sources(input: &Discovery<'_>) -> Option<(&'static str, Vec<String>)> {
    let list = |text: &str| ntp::ntp_sources("ntp_sources", text).unwrap_or_default();
    let (replacing, added) = (list(input.ntp_sources), list(input.additional_ntp_sources));
    match (replacing.is_empty(), added.is_empty()) {
        (false, _) => Some(("replace", replacing)),
        (true, false) => Some(("add", added)),
        (true, true) => None,
    }
}

fn carries_static_network(input: &Discovery<'_>) -> bool {
    match input.image_type {
        ImageType::FullIso => !input.static_network.is_empty(),
        ImageType::MinimalIso | ImageType::DisconnectedIso => false,
    }
}

fn files(input: &Discovery<'_>) -> Vec<Value> {
    let anchors = "/etc/pki/ca-trust/source/anchors";
    let mut list = vec![
        file(
            "/usr/local/bin/agent-pull-image",
            EXECUTABLE,
            include_str!("scripts/agent-pull-image.sh"),
        ),
        file("/etc/motd", READABLE, MOTD),
        file("/etc/multipath.conf", READABLE, MULTIPATH),
        file("/etc/NetworkManager/conf.d/01-ipv6.conf", READABLE, IPV6),
        file("/root/.docker/config.json", SECRET, input.pull_secret),
        file("/root/assisted.te", READABLE, units::SELINUX_MODULE),
    ];
    let mut when = |path: &str, mode: u32, content: &str| {
        if !content.is_empty() {
            list.push(file(path, mode, content));
        }
    };
    when(units::SERVICE_CA, READABLE, input.service_ca);
    when(
        &format!("{anchors}/assisted-infraenv-additional-trust-bundle.pem"),
        READABLE,
        input.trust_bundle,
    );
    if let Some(Mirror {
        registries_conf,
        ca,
        policy,
    }) = input.mirror
    {
        when("/etc/containers/registries.conf", READABLE, registries_conf);
        when(&format!("{anchors}/domain.crt"), READABLE, ca);
        when("/etc/containers/policy.json", READABLE, policy);
    }
    when("/etc/profile.d/proxy.sh", READABLE, &profile(input.proxy));
    when(PROXY_ENVIRONMENT, SECRET, &units::environment_file(input.proxy));
    if time_sources(input).is_some() {
        when(
            "/usr/local/bin/add-ntp-sources.sh",
            EXECUTABLE,
            include_str!("scripts/add-ntp-sources.sh"),
        );
    }
    if carries_static_network(input) {
        when(static_network::SCRIPT_PATH, EXECUTABLE, static_network::SCRIPT);
        for (path, content) in static_network::files(input.static_network) {
            when(&path, SECRET, &content);
        }
    }
    list
}

pub(super) fn file(path: &str, mode: u32, content: &str) -> Value {
    json!({
        "path": path,
        "mode": mode,
        "overwrite": true,
        "user": { "name": "root" },
        "contents": { "source": data_url(content) },
    })
}

fn data_url(content: &str) -> String {
    format!(
        "data:text/plain;charset=utf-8;base64,{}",
        STANDARD.encode(content)
    )
}

/// The proxy for people who log in.
fn profile(proxy: &Proxy) -> String {
    let variables = [
        ("HTTP_PROXY", &proxy.http),
        ("HTTPS_PROXY", &proxy.https),
        ("NO_PROXY", &proxy.no),
    ];
    let set = variables.into_iter().filter(|(_, value)| !value.is_empty());
    set.map(|(name, value)| {
        let value = quote::shell(value);
        format!(
            "export {name}={value}\nexport {}={value}\n",
            name.to_ascii_lowercase()
        )
    })
    .collect()
}

const MOTD: &str = "
This machine is being discovered. It runs from memory; nothing is written to its disks until it is installed
as part of a cluster.
  What it reports:   sudo journalctl -u agent.service
  If it stays away:  sudo systemctl status agent.service, and look at the network with nmcli

";

/// Names by WWN rather than `mpatha`, so that the name found now is valid after installation.
const MULTIPATH: &str = "\
defaults {
    user_friendly_names no
    find_multipaths yes
}
";

/// A DHCPv6 identity made from the MAC, so that the installed system gets the address the discovered one had.
const IPV6: &str = "\
[connection]
ipv6.dhcp-duid=ll
ipv6.dhcp-iaid=mac
";
