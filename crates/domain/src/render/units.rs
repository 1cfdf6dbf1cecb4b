//! The systemd units of the discovery image, in our own words.

use std::fmt::Write;

use super::ignition::Discovery;
use super::quote;
use super::static_network::{INITRD_CONNECTIONS, SYSTEM_CONNECTIONS};
use crate::infra_env::Proxy;

pub const SERVICE_CA: &str = "/etc/assisted-service/service-ca-cert.crt";

/// The agent: fetched as an image, copied out, run on the host itself; restarted for ever.
pub fn agent(input: &Discovery<'_>) -> String {
    let mut environment = environment(input.proxy);
    if !input.agent_token.is_empty() {
        let _ = writeln!(
            environment,
            "Environment=\"PULL_SECRET_TOKEN={}\"",
            environment_value(input.agent_token)
        );
    }
    let image = quote::systemd(input.agent_image);
    let url = quote::systemd(input.service_url);
    let ca = if input.service_ca.is_empty() {
        String::new()
    } else {
        format!(" --cacert {SERVICE_CA}")
    };
    format!(
        "[Unit]\n\
         Description=Reports this host to its InfraEnv\n\
         Wants=network-online.target\n\
         After=network-online.target\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         Type=simple\n\
         Restart=always\n\
         RestartSec=3\n\
         TimeoutStartSec={timeout}\n\
         {environment}\
         ExecStartPre=/usr/local/bin/agent-pull-image \"{image}\"\n\
         ExecStartPre=/usr/bin/podman run --privileged --rm --quiet --pull never -v /usr/local/bin:/hostbin \
         --entrypoint /usr/bin/cp \"{image}\" /usr/bin/agent /hostbin/agent\n\
         ExecStart=/usr/local/bin/agent --url \"{url}\" --infra-env-id {infra_env} --agent-version \"{image}\" \
         --insecure={insecure}{ca}\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        timeout = input.agent_start_timeout_seconds,
        infra_env = input.infra_env,
        insecure = input.insecure,
    )
}

/// `Environment=` lines for a proxy, in both spellings programs look for.
pub fn environment(proxy: &Proxy) -> String {
    let mut text = String::new();
    for (name, value) in variables(proxy) {
        let _ = writeln!(text, "Environment=\"{name}={}\"", environment_value(value));
    }
    text
}

/// The same for `EnvironmentFile=`.
pub fn environment_file(proxy: &Proxy) -> String {
    let mut text = String::new();
    for (name, value) in variables(proxy) {
        let _ = writeln!(text, "{name}=\"{}\"", quote::environment_file(value));
    }
    text
}

fn variables(proxy: &Proxy) -> impl Iterator<Item = (String, &str)> {
    let all = [
        ("HTTP_PROXY", &proxy.http),
        ("HTTPS_PROXY", &proxy.https),
        ("NO_PROXY", &proxy.no),
    ];
    let set = all.into_iter().filter(|(_, value)| !value.is_empty());
    set.flat_map(|(name, value)| {
        [
            (name.to_owned(), value.as_str()),
            (name.to_ascii_lowercase(), value.as_str()),
        ]
    })
}

/// Unlike command lines, `Environment=` does not expand `$`.
fn environment_value(value: &str) -> String {
    quote::systemd(value).replace("$$", "$")
}

pub const SELINUX: &str = "\
[Unit]
Description=Let chrony answer the agent, which asks from inside a container
ConditionSecurity=selinux
Before=agent.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/checkmodule -M -m -o /root/assisted.mod /root/assisted.te
ExecStart=/usr/bin/semodule_package -o /root/assisted.pp -m /root/assisted.mod
ExecStart=/usr/sbin/semodule -i /root/assisted.pp

[Install]
WantedBy=multi-user.target
";

pub const SELINUX_MODULE: &str = "\
module assisted 1.0;

require {
    type chronyd_t;
    type container_file_t;
    type spc_t;
    class dir search;
    class sock_file write;
    class unix_dgram_socket sendto;
}

allow chronyd_t container_file_t:dir search;
allow chronyd_t container_file_t:sock_file write;
allow chronyd_t spc_t:unix_dgram_socket sendto;
";

pub const ISCSI: &str = "\
[Unit]
Description=Log in to the iSCSI disk the firmware booted from
ConditionDirectoryNotEmpty=/sys/firmware/ibft
Wants=network-online.target
After=network-online.target
Before=agent.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/iscsistart -b

[Install]
WantedBy=multi-user.target
";

/// `verb` is `add` or `replace`; the sources were checked to be names or addresses.
pub fn ntp(verb: &str, sources: &[String]) -> String {
    let words: Vec<String> = sources
        .iter()
        .map(|source| format!("\"{}\"", quote::systemd(source)))
        .collect();
    format!(
        "[Unit]\n\
         Description=Tell chrony which time sources to use\n\
         Before=agent.service\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart=/usr/local/bin/add-ntp-sources.sh {verb} {}\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        words.join(" ")
    )
}

/// In which stage of the boot static network settings are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The full ISO has its system on board and needs the network only once it runs.
    System,
    /// The minimal ISO fetches its system over the network.
    Initrd { delay_seconds: u32 },
}

pub fn static_network(stage: Stage) -> String {
    let (before, wanted_by, target) = match stage {
        Stage::System => ("NetworkManager.service", "multi-user.target", SYSTEM_CONNECTIONS),
        Stage::Initrd { .. } => (INITRD_BEFORE, "initrd.target", INITRD_CONNECTIONS),
    };
    let delay = match stage {
        Stage::System | Stage::Initrd { delay_seconds: 0 } => String::new(),
        // Some cards need time until they show up.
        Stage::Initrd { delay_seconds } => format!("ExecStartPre=/usr/bin/sleep {delay_seconds}\n"),
    };
    format!(
        "[Unit]\n\
         Description=Give this machine its static network settings\n\
         DefaultDependencies=no\n\
         Wants=systemd-udev-settle.service\n\
         After=systemd-udev-settle.service\n\
         Before={before}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         {delay}\
         ExecStart=/usr/local/bin/pre-network-manager-config.sh {target}\n\
         \n\
         [Install]\n\
         WantedBy={wanted_by}\n"
    )
}

const INITRD_BEFORE: &str = "coreos-copy-firstboot-network.service nm-initrd.service";
