//! How much hardware each role needs, per OpenShift version; data, so that a site can bring its own table.

use crate::host::Role;
use serde::Deserialize;

/// Physical memory may be this much below the requirement: firmware keeps some for itself.
pub const MEMORY_SLACK_MIB: i64 = 100;
/// Further tolerance, in percent of the requirement, when the kernel's own (smaller) figure is all there is.
pub const MEMINFO_SLACK_PERCENT: i64 = 2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantities {
    pub cpu_cores: i64,
    pub ram_mib: i64,
    /// Decimal gigabytes (10⁹ bytes).
    pub disk_size_gb: i64,
    pub installation_disk_speed_threshold_ms: i64,
    pub network_latency_threshold_ms: Option<f64>,
    pub packet_loss_percentage: Option<f64>,
}

/// What a host would be in a cluster, as far as its hardware is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    Master,
    Arbiter,
    Worker,
    SingleNode,
    EdgeWorker,
}

impl Profile {
    pub const ALL: [Profile; 5] = [
        Self::Master,
        Self::Arbiter,
        Self::Worker,
        Self::SingleNode,
        Self::EdgeWorker,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Master => Role::Master.word(),
            Self::Arbiter => Role::Arbiter.word(),
            Self::Worker => Role::Worker.word(),
            Self::SingleNode => "single-node",
            Self::EdgeWorker => "edge-worker",
        }
    }

    /// A role that is not decided yet is measured as a worker.
    pub fn of(role: Role, single_node: bool, edge: bool) -> Self {
        match role {
            Role::Master if single_node => Self::SingleNode,
            Role::Master => Self::Master,
            Role::Arbiter => Self::Arbiter,
            Role::AutoAssign if single_node => Self::SingleNode,
            Role::Worker | Role::AutoAssign if edge => Self::EdgeWorker,
            Role::Worker | Role::AutoAssign => Self::Worker,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Roles {
    pub master: Quantities,
    pub arbiter: Quantities,
    pub worker: Quantities,
    pub sno: Quantities,
    pub edge_worker: Quantities,
}

impl Roles {
    pub fn get(&self, profile: Profile) -> &Quantities {
        match profile {
            Profile::Master => &self.master,
            Profile::Arbiter => &self.arbiter,
            Profile::Worker => &self.worker,
            Profile::SingleNode => &self.sno,
            Profile::EdgeWorker => &self.edge_worker,
        }
    }

    fn get_mut(&mut self, profile: Profile) -> &mut Quantities {
        match profile {
            Profile::Master => &mut self.master,
            Profile::Arbiter => &mut self.arbiter,
            Profile::Worker => &mut self.worker,
            Profile::SingleNode => &mut self.sno,
            Profile::EdgeWorker => &mut self.edge_worker,
        }
    }

    /// The least a host must have to be of any use: the smaller of master and worker.
    pub fn least_cpu_cores(&self) -> i64 {
        self.master.cpu_cores.min(self.worker.cpu_cores)
    }

    pub fn least_ram_mib(&self) -> i64 {
        self.master.ram_mib.min(self.worker.ram_mib)
    }

    /// The disk a free host needs: that of the least demanding role, so that no host is turned away too early.
    pub fn least_disk_size_gb(&self) -> i64 {
        [&self.master, &self.arbiter, &self.worker]
            .map(|role| role.disk_size_gb)
            .into_iter()
            .min()
            .unwrap_or(0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Requirements {
    fallback: Roles,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq)]
struct Rule {
    from: Version,
    exact: bool,
    roles: Roles,
}

/// Release number without its suffix: an early build of 4.22 needs what 4.22 needs.
type Version = [u32; 3];

pub(crate) fn version(text: &str) -> Option<Version> {
    let base = text.split(['-', '+']).next()?;
    let mut parts = base.split('.');
    let mut numbers = [0; 3];
    numbers[0] = parts.next()?.parse().ok()?;
    for slot in &mut numbers[1..] {
        *slot = parts.next().map_or(Some(0), |part| part.parse().ok())?;
    }
    Some(numbers)
}

/// Whether a release is `wanted` (such as "4.14") or newer; unknown text is taken as new.
pub(crate) fn at_least(release: &str, wanted: &str) -> bool {
    match (version(release), version(wanted)) {
        (Some(release), Some(wanted)) => release >= wanted,
        _ => true,
    }
}

const DISK_MS: i64 = 10;

const fn row(
    cpu_cores: i64,
    ram_mib: i64,
    disk_size_gb: i64,
    latency: Option<f64>,
    loss: Option<f64>,
) -> Quantities {
    Quantities {
        cpu_cores,
        ram_mib,
        disk_size_gb,
        installation_disk_speed_threshold_ms: DISK_MS,
        network_latency_threshold_ms: latency,
        packet_loss_percentage: loss,
    }
}

impl Default for Requirements {
    fn default() -> Self {
        let fallback = Roles {
            master: row(4, 16384, 100, Some(100.0), Some(0.0)),
            arbiter: row(2, 8192, 50, Some(1000.0), Some(0.0)),
            worker: row(2, 8192, 100, Some(1000.0), Some(10.0)),
            sno: row(8, 16384, 100, None, None),
            edge_worker: row(2, 8192, 15, None, None),
        };
        let mut smaller_single_node = fallback;
        smaller_single_node.sno.cpu_cores = 4;
        Self {
            fallback,
            rules: vec![Rule {
                from: [4, 22, 0],
                exact: false,
                roles: smaller_single_node,
            }],
        }
    }
}

#[derive(Deserialize)]
struct Entry {
    version: String,
    #[serde(default)]
    match_type: Option<String>,
    master: Option<Figures>,
    arbiter: Option<Figures>,
    worker: Option<Figures>,
    sno: Option<Figures>,
    #[serde(rename = "edge-worker")]
    edge_worker: Option<Figures>,
}

#[derive(Deserialize)]
struct Figures {
    cpu_cores: Option<i64>,
    ram_mib: Option<i64>,
    disk_size_gb: Option<i64>,
    installation_disk_speed_threshold_ms: Option<i64>,
    network_latency_threshold_ms: Option<f64>,
    packet_loss_percentage: Option<f64>,
}

impl Figures {
    fn over(&self, base: &mut Quantities) {
        base.cpu_cores = self.cpu_cores.unwrap_or(base.cpu_cores);
        base.ram_mib = self.ram_mib.unwrap_or(base.ram_mib);
        base.disk_size_gb = self.disk_size_gb.unwrap_or(base.disk_size_gb);
        base.installation_disk_speed_threshold_ms = self
            .installation_disk_speed_threshold_ms
            .unwrap_or(base.installation_disk_speed_threshold_ms);
        // The two network limits are optional: a table that leaves them out switches them off.
        base.network_latency_threshold_ms = self.network_latency_threshold_ms;
        base.packet_loss_percentage = self.packet_loss_percentage;
    }
}

impl Entry {
    fn roles(&self, mut base: Roles) -> Roles {
        let given = [
            (Profile::Master, &self.master),
            (Profile::Arbiter, &self.arbiter),
            (Profile::Worker, &self.worker),
            (Profile::SingleNode, &self.sno),
            (Profile::EdgeWorker, &self.edge_worker),
        ];
        for (profile, figures) in given {
            if let Some(figures) = figures {
                figures.over(base.get_mut(profile));
            }
        }
        base
    }
}

impl Requirements {
    /// Reads the JSON list of `HW_VALIDATOR_REQUIREMENTS`. Roles an entry leaves out keep their built-in figures.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries: Vec<Entry> = serde_json::from_str(text)
            .map_err(|error| format!("the hardware requirements are not valid: {error}"))?;
        let built_in = Self::default();
        let fallback = entries.iter().find(|entry| entry.version == "default");
        let Some(fallback) = fallback.map(|entry| entry.roles(built_in.fallback)) else {
            return Err("the hardware requirements need an entry with version \"default\"".into());
        };
        let mut rules = Vec::new();
        for entry in entries.iter().filter(|entry| entry.version != "default") {
            let Some(from) = version(&entry.version) else {
                return Err(format!(
                    "the hardware requirements name no release: {:?}",
                    entry.version
                ));
            };
            let exact = match entry.match_type.as_deref() {
                None | Some("" | "exact") => true,
                Some("min_version") => false,
                Some(other) => return Err(format!("match_type {other:?} is neither exact nor min_version")),
            };
            rules.push(Rule {
                from,
                exact,
                roles: entry.roles(fallback),
            });
        }
        Ok(Self { fallback, rules })
    }

    /// An exact entry wins, then the newest `min_version` not above the release, then the default.
    pub fn roles(&self, release: Option<&str>) -> &Roles {
        let Some(release) = release.and_then(version) else {
            return &self.fallback;
        };
        let exact = |rule: &&Rule| {
            rule.exact && (rule.from == release || (rule.from[2] == 0 && rule.from[..2] == release[..2]))
        };
        let reached = self
            .rules
            .iter()
            .filter(|rule| !rule.exact && rule.from <= release);
        let rule = self.rules.iter().filter(exact).max_by_key(|rule| rule.from);
        rule.or_else(|| reached.max_by_key(|rule| rule.from))
            .map_or(&self.fallback, |rule| &rule.roles)
    }

    pub fn lookup(&self, release: Option<&str>, role: Role, single_node: bool, edge: bool) -> &Quantities {
        self.roles(release).get(Profile::of(role, single_node, edge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_knows_the_smaller_single_node_of_newer_releases() {
        let table = Requirements::default();
        let cores = |release| table.lookup(Some(release), Role::Master, true, false).cpu_cores;
        assert_eq!((cores("4.21.9"), cores("4.22.0-ec.1"), cores("4.23")), (8, 4, 4));
        assert_eq!(table.roles(None).least_disk_size_gb(), 50);
    }

    #[test]
    fn a_role_decides_the_row() {
        let table = Requirements::default();
        let row = |role, single, edge| table.lookup(Some("4.20"), role, single, edge).disk_size_gb;
        assert_eq!(row(Role::Arbiter, false, false), 50);
        assert_eq!(row(Role::Worker, false, true), 15);
        assert_eq!(row(Role::AutoAssign, false, false), 100);
        assert_eq!(table.lookup(None, Role::Master, false, true).ram_mib, 16384);
    }

    const TABLE: &str = r#"[
        {"version":"default","master":{"cpu_cores":6,"network_latency_threshold_ms":50}},
        {"version":"4.18","match_type":"exact","worker":{"cpu_cores":3}},
        {"version":"4.16","match_type":"min_version","worker":{"cpu_cores":5}},
        {"version":"4.19","match_type":"min_version","worker":{"cpu_cores":7}}]"#;

    #[test]
    fn a_sites_table_is_matched_exactly_then_by_least_version_then_by_default() {
        let table = Requirements::parse(TABLE).unwrap();
        let worker = |release| table.lookup(Some(release), Role::Worker, false, false).cpu_cores;
        assert_eq!(
            [
                worker("4.15.1"),
                worker("4.17.2"),
                worker("4.18.30"),
                worker("4.20.0-rc.1")
            ],
            [2, 5, 3, 7]
        );
        let master = table.lookup(None, Role::Master, false, false);
        assert_eq!(
            (
                master.cpu_cores,
                master.ram_mib,
                master.network_latency_threshold_ms
            ),
            (6, 16384, Some(50.0))
        );
    }

    #[test]
    fn a_table_without_a_default_or_with_a_strange_entry_is_refused() {
        for text in [
            "[]",
            "{}",
            r#"[{"version":"4.18"}]"#,
            r#"[{"version":"default"},{"version":"soon"}]"#,
            r#"[{"version":"default"},{"version":"4.1","match_type":"about"}]"#,
        ] {
            assert!(Requirements::parse(text).is_err(), "{text}");
        }
    }
}
