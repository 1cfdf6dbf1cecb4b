//! The settings of the agent: flags, the discovery config in the image, the kernel's command line; in this order.

use crate::discovery;
use clap::{ArgAction, Parser};
use muster_contract::secret::Secret;
use std::path::PathBuf;
use uuid::Uuid;

/// Discovers the machine it runs on, reports to a Muster hub, and does what the hub asks.
#[derive(Debug, Clone, Parser)]
#[command(name = "muster-agent", version)]
pub struct Settings {
    /// The hub, such as http://hub.example.com:8090
    #[arg(long, default_value = "")]
    pub url: String,
    /// The InfraEnv this machine belongs to
    #[arg(long, default_value_t = Uuid::nil())]
    pub infra_env_id: Uuid,
    /// Use this id instead of the one found from serial number, UUID or MAC
    #[arg(long)]
    pub host_id: Option<Uuid>,
    /// What the agent calls itself; the hub compares it with what it wants to run
    #[arg(long, default_value = "")]
    pub agent_version: String,
    /// Do not check certificates
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value = "false", action = ArgAction::Set)]
    pub insecure: bool,
    /// A file with the certificates to trust
    #[arg(long)]
    pub cacert: Option<PathBuf>,
    /// Seconds between polls when the hub names none, and between registrations that failed
    #[arg(long, default_value_t = 60)]
    pub interval: u64,
    /// Which facts make the host's id: auto, serial, uuid or mac
    ///
    /// Fleets whose machines share a serial number or a UUID choose `mac`.
    #[arg(long, default_value = "auto")]
    pub identity: crate::identity::Rule,
    /// The system to write when the hub's order names none
    #[arg(long, default_value = "")]
    pub image_url: String,
    /// The sha256 of the file at --image-url
    #[arg(long, default_value = "")]
    pub image_sha256: String,
    /// Do everything but write to disks and reboot
    #[arg(long)]
    pub dry_run: bool,
    /// Ask the hub at least so often, in seconds, whatever it says
    #[arg(long, hide = true)]
    pub poll: Option<u64>,
    /// Run this command instead of rebooting
    #[arg(long)]
    pub reboot_hook: Option<String>,
    /// Print what is found in this machine and end
    #[arg(long)]
    pub print_inventory: bool,
    /// Look at the machine under this directory
    #[arg(long, default_value = "/", hide = true)]
    pub root: PathBuf,
    #[arg(skip)]
    pub token: Secret,
    /// The machine runs nothing but us: its clock is ours to set.
    #[arg(skip)]
    pub in_image: bool,
    /// The machine runs its installed system: do not register, and follow no order but the one to come back
    #[arg(long = "installed")]
    pub is_installed: bool,
}

impl Settings {
    /// Fills what flags left open from the image's config and the kernel's command line.
    pub fn complete(mut self) -> anyhow::Result<Self> {
        if let Ok(text) = std::fs::read(self.root.join(discovery::CONFIG)) {
            discovery::fill(&mut self, &text)?;
        }
        let line = std::fs::read_to_string(self.root.join("proc/cmdline")).unwrap_or_default();
        self.fill_from_kernel(&line);
        anyhow::ensure!(
            !self.url.is_empty(),
            "no hub is named: use --url or muster.url= on the kernel's command line"
        );
        anyhow::ensure!(
            !self.infra_env_id.is_nil(),
            "no InfraEnv is named: use --infra-env-id or muster.infra_env= on the kernel's command line"
        );
        self.url = self.url.trim_end_matches('/').to_owned();
        if self.agent_version.is_empty() {
            self.agent_version = format!("muster-agent:{}", env!("CARGO_PKG_VERSION"));
        }
        Ok(self)
    }

    pub fn fill_from_kernel(&mut self, line: &str) {
        for word in line.split_ascii_whitespace() {
            let Some(word) = word.strip_prefix("muster.") else {
                continue;
            };
            let (name, value) = word.split_once('=').unwrap_or((word, "true"));
            self.fill_one(name, value);
        }
    }

    /// Words of the kernel's command line that mean nothing here are for somebody else.
    fn fill_one(&mut self, name: &str, value: &str) {
        let text = |field: &mut String| {
            if field.is_empty() {
                *field = value.to_owned();
            }
        };
        match name {
            "url" => text(&mut self.url),
            "image_url" => text(&mut self.image_url),
            "image_sha256" => text(&mut self.image_sha256),
            "agent_version" => text(&mut self.agent_version),
            "token" => text(&mut self.token.0),
            "infra_env" if self.infra_env_id.is_nil() => {
                self.infra_env_id = value.parse().unwrap_or_default();
            }
            "host_id" if self.host_id.is_none() => self.host_id = value.parse().ok(),
            "identity" if self.identity == crate::identity::Rule::Auto => {
                self.identity = value.parse().unwrap_or_default();
            }
            "insecure" => self.insecure |= value == "true" || value == "1",
            "poll" if self.poll.is_none() => self.poll = value.parse().ok(),
            "dry_run" => self.dry_run |= value == "true" || value == "1",
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Settings {
        Settings::try_parse_from([&["muster-agent"], args].concat()).unwrap()
    }

    #[test]
    fn the_reference_spelling_of_flags_is_understood() {
        let id = Uuid::from_u128(7).to_string();
        let settings = parse(&[
            "--url",
            "http://h:1",
            "--infra-env-id",
            &id,
            "--insecure=true",
            "--agent-version",
            "a:1",
        ]);
        assert!(settings.insecure);
        assert!(!parse(&["--insecure=false"]).insecure);
        assert!(parse(&["--insecure"]).insecure);
    }

    #[test]
    fn the_kernel_command_line_fills_what_flags_left_open() {
        let mut settings = parse(&["--url", "http://flag:1"]);
        settings.fill_from_kernel(
            "quiet muster.url=http://kernel:2 muster.infra_env=00000000-0000-0000-0000-000000000007 \
             muster.identity=mac muster.insecure other.url=x muster.unknown=y",
        );
        assert_eq!(settings.url, "http://flag:1");
        assert_eq!(settings.infra_env_id, Uuid::from_u128(7));
        assert_eq!(settings.identity, crate::identity::Rule::Mac);
        assert!(settings.insecure);
    }

    #[test]
    fn an_agent_without_a_hub_says_what_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let error = parse(&["--root", root.path().to_str().unwrap()])
            .complete()
            .unwrap_err();
        assert!(error.to_string().contains("muster.url="), "{error}");
    }
}
