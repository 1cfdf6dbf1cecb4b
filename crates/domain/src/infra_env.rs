//! An InfraEnv: the settings of one discovery image, and the pool of hosts booted from it.

use crate::refusal::{Class, Refused};
use crate::{ClusterId, InfraEnvId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct InfraEnv {
    pub id: InfraEnvId,
    /// Set by the store: the revision this value was read at.
    #[serde(skip)]
    pub revision: i64,
    pub name: String,
    pub pull_secret: String,
    /// Present: every host booted from this image is bound to that cluster as it registers.
    #[serde(default)]
    pub cluster: Option<ClusterId>,
    pub openshift_version: String,
    pub cpu_architecture: String,
    pub image_type: ImageType,
    #[serde(default)]
    pub ssh_authorized_key: String,
    #[serde(default)]
    pub proxy: Proxy,
    #[serde(default)]
    pub additional_ntp_sources: String,
    #[serde(default)]
    pub ntp_sources: String,
    /// The wire's JSON text, sorted; empty when there is none.
    #[serde(default)]
    pub static_network_config: String,
    /// The wire's JSON text; `None` when never set or cleared.
    #[serde(default)]
    pub kernel_arguments: Option<String>,
    #[serde(default)]
    pub ignition_config_override: String,
    #[serde(default)]
    pub additional_trust_bundle: String,
    #[serde(default)]
    pub network_discovery_delay_seconds: Option<i64>,
    #[serde(default)]
    pub rendezvous_ip: Option<String>,
    /// Signs links to this image.
    pub image_token_key: String,
    /// What is in the image; `None` in rows from before this was noted.
    #[serde(default)]
    pub edition: Option<Edition>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub org: String,
    #[serde(default)]
    pub email_domain: String,
}

/// What is in an image: machines that run another have to boot it anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edition {
    /// Short, and part of the image's address. The same content has the same name, whenever and wherever it is made.
    pub name: String,
    /// When the content became this one.
    pub since: Timestamp,
}

impl InfraEnv {
    /// Since when the image is what it is.
    pub fn image_changed_at(&self) -> Timestamp {
        self.edition
            .as_ref()
            .map_or(self.updated_at, |edition| edition.since)
    }

    /// The edition after a change from content of one name to content of another. An image from before editions were noted
    /// keeps its address until its content changes: nobody has to boot it anew.
    pub fn next_edition(&self, from: &str, to: &str, now: Timestamp) -> Option<Edition> {
        if from != to {
            return Some(Edition {
                name: to.into(),
                since: now,
            });
        }
        let unnamed = || Edition {
            name: String::new(),
            since: self.updated_at,
        };
        Some(self.edition.clone().unwrap_or_else(unnamed))
    }

    /// The cluster of its hosts from now on. As long as the one there was exists, hosts and machines that boot are on
    /// their way to it.
    pub fn next_cluster(&self, wanted: ClusterId, is_there: bool) -> Result<ClusterId, Refused> {
        match self.cluster {
            Some(now) if now == wanted => Ok(wanted),
            Some(_) if !is_there => Ok(wanted),
            Some(now) => Err(Refused::conflict(
                "infra-env-has-its-cluster",
                format!(
                    "InfraEnv {} belongs to cluster {now}, and its hosts with it.",
                    self.name
                ),
                "Delete that cluster first, or make another InfraEnv.",
            )),
            None => Err(Refused::new(
                Class::Invalid,
                "infra-env-has-no-cluster",
                format!(
                    "InfraEnv {} belongs to no cluster: its hosts are lent one by one.",
                    self.name
                ),
                "Bind its hosts, or make another InfraEnv for the cluster.",
            )),
        }
    }

    /// Whether hosts that boot its image are given time servers.
    pub fn has_time_sources(&self) -> bool {
        !self.additional_ntp_sources.is_empty() || !self.ntp_sources.is_empty()
    }

    /// An InfraEnv that names no time sources has those of the site.
    pub fn fill_time_sources(&mut self, of_the_site: &str) {
        if !self.has_time_sources() {
            self.additional_ntp_sources = of_the_site.into();
        }
    }
}

// Holds a pull secret: never printed.
impl std::fmt::Debug for InfraEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InfraEnv")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageType {
    #[default]
    FullIso,
    MinimalIso,
    DisconnectedIso,
}

impl ImageType {
    pub fn word(self) -> &'static str {
        match self {
            Self::FullIso => "full-iso",
            Self::MinimalIso => "minimal-iso",
            Self::DisconnectedIso => "disconnected-iso",
        }
    }

    /// The file a download URL ends in.
    pub fn file(self) -> &'static str {
        match self {
            Self::FullIso => "full.iso",
            Self::MinimalIso => "minimal.iso",
            Self::DisconnectedIso => "disconnected.iso",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Proxy {
    pub http: String,
    pub https: String,
    pub no: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const OLD: ClusterId = ClusterId(Uuid::from_u128(1));
    const NEW: ClusterId = ClusterId(Uuid::from_u128(2));

    fn infra_env(cluster: Option<ClusterId>) -> InfraEnv {
        InfraEnv {
            id: InfraEnvId(Uuid::nil()),
            revision: 0,
            name: "lab".into(),
            pull_secret: String::new(),
            cluster,
            openshift_version: String::new(),
            cpu_architecture: String::new(),
            image_type: ImageType::default(),
            ssh_authorized_key: String::new(),
            proxy: Proxy::default(),
            additional_ntp_sources: String::new(),
            ntp_sources: String::new(),
            static_network_config: String::new(),
            kernel_arguments: None,
            ignition_config_override: String::new(),
            additional_trust_bundle: String::new(),
            network_discovery_delay_seconds: None,
            rendezvous_ip: None,
            image_token_key: String::new(),
            edition: None,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            user: String::new(),
            org: String::new(),
            email_domain: String::new(),
        }
    }

    #[test]
    fn an_infra_env_gets_another_cluster_only_when_its_own_is_gone() {
        let code = |answer: Result<ClusterId, Refused>| answer.map_err(|refused| refused.code);
        let cases = [
            (Some(OLD), false, Ok(NEW)),
            (Some(OLD), true, Err("infra-env-has-its-cluster".to_owned())),
            (Some(NEW), true, Ok(NEW)),
            (None, false, Err("infra-env-has-no-cluster".to_owned())),
        ];
        for (now, is_there, expected) in cases {
            let answer = code(infra_env(now).next_cluster(NEW, is_there));
            assert_eq!(answer, expected, "{now:?}, there: {is_there}");
        }
    }

    #[test]
    fn an_edition_lasts_as_long_as_the_content_of_the_image() {
        let later = Timestamp::from_second(60).unwrap();
        let made = |name: &str, since| {
            Some(Edition {
                name: name.into(),
                since,
            })
        };
        let mut one = infra_env(None);
        assert_eq!(one.image_changed_at(), one.updated_at, "nothing else is known");
        // Something else was changed in a row from before.
        one.edition = one.next_edition("a", "a", later);
        assert_eq!(one.edition, made("", Timestamp::UNIX_EPOCH));
        one.updated_at = later;
        assert_eq!(one.image_changed_at(), Timestamp::UNIX_EPOCH);
        one.edition = one.next_edition("a", "b", later);
        assert_eq!(
            (one.edition.clone(), one.image_changed_at()),
            (made("b", later), later)
        );
        let much_later = Timestamp::from_second(120).unwrap();
        assert_eq!(one.next_edition("b", "b", much_later), one.edition);
        assert_eq!(one.next_edition("b", "a", much_later), made("a", much_later));
    }

    #[test]
    fn time_sources_of_the_site_are_for_those_that_name_none() {
        let cases = [("", "", "site"), ("own", "", "own"), ("", "only", "")];
        for (additional, only, expected) in cases {
            let mut one = infra_env(None);
            (one.additional_ntp_sources, one.ntp_sources) = (additional.into(), only.into());
            one.fill_time_sources("site");
            assert_eq!(
                (one.additional_ntp_sources.as_str(), one.ntp_sources.as_str()),
                (expected, only)
            );
        }
    }
}
