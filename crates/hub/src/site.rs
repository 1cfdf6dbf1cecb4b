//! What a site decides for all its hosts and clusters, as a person gives it, checked word by word.

use anyhow::Context;
use muster_domain::catalog::Images;
use muster_domain::checks::{self, CheckId};
use muster_domain::cluster;
use muster_domain::host::steps::Step;
use muster_domain::input::{ntp, trust_bundle};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longer than most clusters take from their first host to a finished installation.
const EVENT_DAYS: u32 = 90;
/// A century: the calendar ends some time.
const MOST_EVENT_DAYS: u32 = 36_500;

/// As given; lists are words with commas between them.
#[derive(Debug, Clone)]
pub struct Site {
    /// Images that agents and installers run; absent: the usual ones.
    pub agent_image: Option<String>,
    pub installer_image: Option<String>,
    pub controller_image: Option<String>,
    /// One image, or a JSON map per operator; absent: what the release names.
    pub must_gather_images: Option<String>,
    /// Replace agents that run another image.
    pub upgrade_agents: bool,
    pub disabled_host_checks: Option<String>,
    pub disabled_cluster_checks: Option<String>,
    pub disabled_steps: Option<String>,
    /// Time servers of InfraEnvs and clusters that name none.
    pub default_ntp: Option<String>,
    /// Single nodes are given a name server that answers the cluster's names.
    pub single_node_dns: bool,
    /// New clusters wait for a slow host instead of failing.
    pub soft_timeouts: bool,
    /// The authority behind the hub's certificate, for agents and installed hosts: a PEM file.
    pub service_ca: Option<PathBuf>,
    /// Agents and installed hosts take any certificate of the hub.
    pub skip_cert_verification: bool,
    /// How many days history is kept.
    pub event_days: u32,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            agent_image: None,
            installer_image: None,
            controller_image: None,
            must_gather_images: None,
            upgrade_agents: true,
            disabled_host_checks: None,
            disabled_cluster_checks: None,
            disabled_steps: None,
            default_ntp: None,
            single_node_dns: true,
            soft_timeouts: false,
            service_ca: None,
            skip_cert_verification: false,
            event_days: EVENT_DAYS,
        }
    }
}

/// How hosts are sure that it is the hub they talk to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// PEM of the authority behind the hub's certificate; empty: the system's.
    pub service_ca: String,
    pub insecure: bool,
}

impl Trust {
    /// Another authority, beside those that are there.
    pub fn add(&mut self, path: &Path) -> anyhow::Result<()> {
        let more =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        if !self.service_ca.is_empty() && !self.service_ca.ends_with('\n') {
            self.service_ca.push('\n');
        }
        self.service_ca.push_str(&more);
        Ok(())
    }
}

impl Site {
    pub fn images(&self) -> anyhow::Result<Images> {
        let usual = Images::default();
        let or = |given: &Option<String>, usual: String| plain(given).map_or(usual, str::to_owned);
        let must_gather = or(&self.must_gather_images, usual.must_gather);
        if must_gather.starts_with('{') {
            serde_json::from_str::<std::collections::BTreeMap<String, String>>(&must_gather)
                .context("--must-gather-images is neither an image nor a JSON map of them")?;
        }
        Ok(Images {
            agent: or(&self.agent_image, usual.agent),
            installer: or(&self.installer_image, usual.installer),
            controller: or(&self.controller_image, usual.controller),
            must_gather,
        })
    }

    pub fn checks(&self, images: &Images) -> anyhow::Result<checks::Settings> {
        Ok(checks::Settings {
            disabled_host_checks: known(
                "--disabled-host-checks",
                &self.disabled_host_checks,
                |word| CheckId::parse(word).is_some(),
                "ids of validations, as `muster host get -o json` shows them in validations_info",
            )?,
            disabled_cluster_checks: known(
                "--disabled-cluster-checks",
                &self.disabled_cluster_checks,
                |word| cluster::checks::CheckId::parse(word).is_some(),
                "ids of cluster validations, as the cluster's validations_info has them",
            )?,
            single_node_dns: self.single_node_dns,
            wanted_agent: self.upgrade_agents.then(|| images.agent.clone()),
        })
    }

    pub fn disabled_steps(&self) -> anyhow::Result<BTreeSet<String>> {
        let words: Vec<&str> = Step::ALL.iter().map(|step| step.word()).collect();
        known(
            "--disabled-steps",
            &self.disabled_steps,
            |word| Step::from_word(word).is_some(),
            &words.join(", "),
        )
    }

    pub fn default_ntp(&self) -> anyhow::Result<String> {
        let source = plain(&self.default_ntp).unwrap_or_default().to_owned();
        ntp::ntp_sources("--default-ntp", &source)?;
        Ok(source)
    }

    pub fn event_days(&self) -> anyhow::Result<u32> {
        if !(1..=MOST_EVENT_DAYS).contains(&self.event_days) {
            anyhow::bail!("--event-days is {}: use 1 to {MOST_EVENT_DAYS}", self.event_days);
        }
        Ok(self.event_days)
    }

    pub fn trust(&self) -> anyhow::Result<Trust> {
        let service_ca = match &self.service_ca {
            Some(path) => std::fs::read_to_string(path)
                .with_context(|| format!("--service-ca: cannot read {}", path.display()))?,
            None => String::new(),
        };
        if self.service_ca.is_some() {
            trust_bundle::trust_bundle(&service_ca)
                .context("--service-ca is not a bundle of certificates")?;
        }
        Ok(Trust {
            service_ca,
            insecure: self.skip_cert_verification,
        })
    }
}

/// An empty text counts as nothing, as an empty variable does.
fn plain(given: &Option<String>) -> Option<&str> {
    given.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// A misspelt word would leave on what somebody wanted off.
fn known(
    flag: &str,
    given: &Option<String>,
    is_known: impl Fn(&str) -> bool,
    possible: &str,
) -> anyhow::Result<BTreeSet<String>> {
    let words = plain(given).unwrap_or_default().split(',').map(str::trim);
    let words: BTreeSet<String> = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    match words.iter().find(|word| !is_known(word)) {
        Some(word) => anyhow::bail!("{flag} has the unknown word {word:?}; use one of {possible}"),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_commas_and_misspelt_words_are_refused_by_name() {
        let site = Site {
            disabled_host_checks: Some("ntp-synced, compatible-agent".into()),
            disabled_cluster_checks: Some(" ".into()),
            disabled_steps: Some("ntp-synchronizer,".into()),
            ..Site::default()
        };
        let checks = site.checks(&Images::default()).unwrap();
        let disabled: Vec<_> = checks.disabled_host_checks.iter().map(String::as_str).collect();
        assert_eq!(disabled, ["compatible-agent", "ntp-synced"]);
        assert!(checks.disabled_cluster_checks.is_empty());
        assert!(site.disabled_steps().unwrap().contains("ntp-synchronizer"));
        let wrong = Site {
            disabled_steps: Some("ntp".into()),
            ..Site::default()
        };
        let told = wrong.disabled_steps().unwrap_err().to_string();
        assert!(
            told.contains("--disabled-steps")
                && told.contains("\"ntp\"")
                && told.contains("ntp-synchronizer"),
            "{told}"
        );
    }

    #[test]
    fn given_images_replace_the_usual_ones_and_an_empty_text_does_not() {
        let site = Site {
            installer_image: Some("registry.example.com/installer:1".into()),
            controller_image: Some(String::new()),
            must_gather_images: Some(r#"{"ocp":"registry.example.com/gather"}"#.into()),
            ..Site::default()
        };
        let images = site.images().unwrap();
        assert_eq!(images.installer, "registry.example.com/installer:1");
        assert_eq!(images.controller, Images::default().controller);
        assert!(images.must_gather.contains("gather"));
        let broken = Site {
            must_gather_images: Some("{oops".into()),
            ..Site::default()
        };
        assert!(
            broken
                .images()
                .unwrap_err()
                .to_string()
                .contains("--must-gather-images")
        );
    }

    #[test]
    fn a_service_ca_that_cannot_be_read_or_is_none_is_told_with_its_flag() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ca.pem");
        let site = Site {
            service_ca: Some(path.clone()),
            ..Site::default()
        };
        assert!(site.trust().unwrap_err().to_string().contains("--service-ca"));
        std::fs::write(&path, "no certificate").unwrap();
        assert!(site.trust().unwrap_err().to_string().contains("--service-ca"));
        assert_eq!(Site::default().trust().unwrap(), Trust::default());
    }
}
