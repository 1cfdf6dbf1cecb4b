//! The settings of a hub: as they come from flags and files, and as it uses them.

use crate::http::crowd::PEER_WAITING;
use crate::site::{Site, Trust};
use crate::tls::pair::Files;
use jiff::SignedDuration;
use muster_domain::catalog::{Catalog, Images};
use muster_domain::checks;
use muster_domain::cluster;
use muster_domain::host::event::Timers;
use muster_domain::infra_env::InfraEnv;
use muster_domain::requirements::Requirements;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const INSTALLER_TIME: Duration = Duration::from_secs(600);
/// About forty live images.
pub const IMAGE_CACHE_BYTES: u64 = 50 << 30;
const SHORTEST_SILENCE: SignedDuration = SignedDuration::from_secs(2);

/// As given by a person.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    pub tls: TlsChoice,
    /// Another listener without TLS, for what firmware needs; only where the first one has it.
    pub plain_listen: Option<SocketAddr>,
    /// How firmware reaches that one; absent: at the host of the base URL.
    pub plain_url: Option<String>,
    pub data_dir: PathBuf,
    /// `postgres://…`; absent: SQLite in the data directory.
    pub database: Option<String>,
    /// How hosts and people reach this hub; absent: the address it listens on.
    pub base_url: Option<String>,
    /// Where discovery images come from; absent: this hub.
    pub image_service_url: Option<String>,
    /// JSON texts in the form of the reference's `OS_IMAGES`, `RELEASE_IMAGES`, `HW_VALIDATOR_REQUIREMENTS`.
    pub os_images: Option<String>,
    pub release_images: Option<String>,
    pub hw_requirements: Option<String>,
    /// What the site decides for all its hosts and clusters.
    pub site: Site,
    /// The `openshift-install` program; `{version}` in its path becomes the cluster's release.
    pub openshift_install: Option<String>,
    /// How long a host may be silent before it counts as disconnected; absent: three minutes.
    pub disconnect_after: Option<Duration>,
    /// Where base images of discovery are kept; absent: in the data directory.
    pub image_cache: Option<PathBuf>,
    /// The longest time agents wait between two polls; absent: a minute, or two where nothing is to be done.
    pub agent_poll: Option<Duration>,
    /// How much the base images of discovery may take on disk, all together.
    pub image_cache_bytes: u64,
    /// Names under which people reach this hub besides those of its URLs, such as that of a proxy.
    pub allowed_hosts: Vec<String>,
    /// How many connections of one address may wait at a time; older ones are closed first.
    pub peer_connections: usize,
    pub most_hosts: MostHosts,
}

/// Whether https is spoken, and with whose certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TlsChoice {
    #[default]
    Off,
    /// Of these PEM files, read again when they change.
    Files(Files),
    /// Of an authority of the hub's own, kept beside the data.
    SelfSigned,
}

/// How many hosts are kept; agents beyond that are asked to come again later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MostHosts {
    pub in_infra_env: usize,
    pub in_hub: usize,
}

impl Default for MostHosts {
    fn default() -> Self {
        Self {
            in_infra_env: 20_000,
            in_hub: 200_000,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8090)),
            tls: TlsChoice::Off,
            plain_listen: None,
            plain_url: None,
            data_dir: "muster-data".into(),
            database: None,
            base_url: None,
            image_service_url: None,
            os_images: None,
            release_images: None,
            hw_requirements: None,
            site: Site::default(),
            openshift_install: None,
            disconnect_after: None,
            agent_poll: None,
            image_cache: None,
            image_cache_bytes: IMAGE_CACHE_BYTES,
            allowed_hosts: Vec::new(),
            peer_connections: PEER_WAITING,
            most_hosts: MostHosts::default(),
        }
    }
}

impl Config {
    /// The directory of base images.
    pub fn image_cache(&self) -> PathBuf {
        match &self.image_cache {
            Some(directory) => directory.clone(),
            None => self.data_dir.join("base-images"),
        }
    }
}

/// Parsed and ready to use.
#[derive(Debug, Clone)]
pub struct Settings {
    pub base_url: String,
    pub image_service_url: String,
    /// Where firmware gets what it needs without TLS.
    pub plain_url: Option<String>,
    pub database: &'static str,
    pub catalog: Catalog,
    pub images: Images,
    pub requirements: Requirements,
    pub checks: checks::Settings,
    pub timers: Timers,
    /// The hub never tells agents to wait longer than this before they poll again.
    pub longest_poll_seconds: i64,
    pub cluster_timers: cluster::event::Timers,
    pub disabled_steps: BTreeSet<String>,
    pub default_ntp: String,
    /// New clusters wait for a slow host instead of failing.
    pub soft_timeouts: bool,
    pub trust: Trust,
    /// How long history is kept.
    pub event_days: u32,
    pub installer: Installer,
    pub most_hosts: MostHosts,
    /// The database held something when the hub started, so hosts may remember it.
    pub was_here_before: bool,
}

/// How the `openshift-install` program is run.
#[derive(Debug, Clone)]
pub struct Installer {
    /// Its path; `{version}` becomes the cluster's release. `None`: only clusters that bring their own ignition
    /// can be installed.
    pub program: Option<String>,
    /// Where its work directories are made, each gone when its call ends.
    pub work_dir: PathBuf,
    /// How long one call may take: it makes keys and writes files, minutes at most.
    pub time: Duration,
}

/// Links to what a machine needs to boot the discovery image without media.
pub struct BootLinks {
    pub kernel: String,
    pub initrd: String,
    pub rootfs: String,
}

/// The same content under addresses that change with it, so that whoever boots machines from them sees when to do it anew.
/// They end as the others do: management controllers look at that.
pub struct EditionLinks {
    pub iso: String,
    pub initrd: String,
}

impl Settings {
    pub fn new(config: &Config, base_url: String, plain_url: Option<String>) -> anyhow::Result<Self> {
        let catalog = Catalog::from_json(config.os_images.as_deref(), config.release_images.as_deref())?;
        let requirements = match &config.hw_requirements {
            Some(json) => Requirements::parse(json).map_err(anyhow::Error::msg)?,
            None => Requirements::default(),
        };
        let site = &config.site;
        let images = site.images()?;
        let checks = site.checks(&images)?;
        Ok(Self {
            image_service_url: config
                .image_service_url
                .clone()
                .or_else(|| plain_url.clone())
                .unwrap_or_else(|| base_url.clone()),
            base_url,
            plain_url,
            database: if config.database.is_some() {
                "postgresql"
            } else {
                "sqlite"
            },
            catalog,
            images,
            requirements,
            checks,
            timers: timers(config.disconnect_after)?,
            longest_poll_seconds: longest_poll(config.agent_poll)?,
            cluster_timers: cluster::event::Timers::default(),
            disabled_steps: site.disabled_steps()?,
            default_ntp: site.default_ntp()?,
            soft_timeouts: site.soft_timeouts,
            trust: site.trust()?,
            event_days: site.event_days()?,
            installer: Installer {
                program: config
                    .openshift_install
                    .clone()
                    .filter(|program| !program.trim().is_empty()),
                work_dir: config.data_dir.join("work"),
                time: INSTALLER_TIME,
            },
            most_hosts: config.most_hosts,
            was_here_before: false,
        })
    }

    /// For tests and simulations: everything at its default.
    pub fn plain() -> anyhow::Result<Self> {
        let mut settings = Self::new(&Config::default(), "http://127.0.0.1:8090".into(), None)?;
        settings.installer.work_dir = std::env::temp_dir();
        Ok(settings)
    }

    /// Where firmware gets its boot script.
    pub fn boot_url(&self) -> &str {
        self.plain_url.as_deref().unwrap_or(&self.base_url)
    }

    /// Whether machines are sent to this hub for images, and not to a service beside it.
    pub fn serves_images(&self) -> bool {
        [self.base_url.as_str(), self.boot_url()].contains(&self.image_service_url.as_str())
    }

    pub fn download_url(&self, pool: &InfraEnv) -> String {
        format!("{}/{}", self.image_place(pool), pool.image_type.file())
    }

    pub fn boot_links(&self, pool: &InfraEnv) -> BootLinks {
        let query = base_query(pool);
        let base = &self.image_service_url;
        BootLinks {
            kernel: format!("{base}/boot-artifacts/kernel?{query}"),
            initrd: format!("{base}/images/{}/pxe-initrd?{query}", pool.id),
            rootfs: format!("{base}/boot-artifacts/rootfs?{query}"),
        }
    }

    pub fn edition_links(&self, pool: &InfraEnv) -> EditionLinks {
        let (place, edition) = (self.image_place(pool), edition_segment(pool));
        let (base, query) = (&self.image_service_url, base_query(pool));
        EditionLinks {
            iso: format!("{place}/{edition}{}", pool.image_type.file()),
            initrd: format!("{base}/images/{}/{edition}pxe-initrd?{query}", pool.id),
        }
    }

    fn image_place(&self, pool: &InfraEnv) -> String {
        format!(
            "{}/byid/{}/{}/{}",
            self.image_service_url, pool.id, pool.openshift_version, pool.cpu_architecture
        )
    }
}

fn base_query(pool: &InfraEnv) -> String {
    format!(
        "version={}&arch={}",
        pool.openshift_version, pool.cpu_architecture
    )
}

/// Images from before their editions were noted have none until they change.
fn edition_segment(pool: &InfraEnv) -> String {
    let named = pool.edition.iter().filter(|edition| !edition.name.is_empty());
    named.map(|edition| format!("{}/", edition.name)).collect()
}

/// Agents count whole seconds, and none would make them ask without a pause.
fn longest_poll(given: Option<Duration>) -> anyhow::Result<i64> {
    let Some(limit) = given else { return Ok(i64::MAX) };
    if limit < Duration::from_secs(1) {
        anyhow::bail!("agents need at least a second between two polls, not {limit:?}");
    }
    Ok(i64::try_from(limit.as_secs())?)
}

/// The usual limits, but with another silence; the bootstrap host keeps what it is given on top.
fn timers(disconnect_after: Option<Duration>) -> anyhow::Result<Timers> {
    let usual = Timers::default();
    let Some(limit) = disconnect_after else {
        return Ok(usual);
    };
    let silence = SignedDuration::try_from(limit)?;
    if silence < SHORTEST_SILENCE {
        anyhow::bail!("agents need a moment between two polls: a host is not silent after {limit:?}");
    }
    Ok(Timers {
        silence,
        bootstrap_silence: silence + (usual.bootstrap_silence - usual.silence),
        ..usual
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_poll_as_often_as_they_are_told_but_not_without_a_pause() {
        let asked = |agent_poll| {
            let config = Config {
                agent_poll,
                ..Config::default()
            };
            Settings::new(&config, String::new(), None).map(|settings| settings.longest_poll_seconds)
        };
        assert_eq!(asked(Some(Duration::from_secs(5))).unwrap(), 5);
        assert_eq!(asked(None).unwrap(), i64::MAX);
        assert!(asked(Some(Duration::from_millis(500))).is_err());
    }
}
