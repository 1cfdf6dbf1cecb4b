//! A host: one machine seen through one discovery image, free or lent to a cluster.

pub mod deadline;
pub mod decision;
pub mod diagram;
pub mod disks;
pub mod event;
pub mod hostname;
pub mod install_order;
pub mod lifecycle;
pub mod machine;
pub mod phase;
pub mod report;
pub mod returning;
pub mod rules;
pub mod stage;
pub mod status;
pub mod steps;
pub mod words;

pub use decision::{Decision, Effect};
pub use event::Event;
pub use machine::Machine;
pub use phase::Phase;
pub use report::Report;
pub use returning::{Return, Route};
pub use stage::{Progress, Stage};
pub use status::Status;

pub use muster_vocabulary::{HostKind as Kind, LogsState, Role};

use crate::infra_env::InfraEnv;
use crate::journal::{Entry, Severity};
use crate::{ClusterId, HostId, HostKey, InfraEnvId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Whether the discovery media can be read; `Unset` until it was lost once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Media {
    #[default]
    Unset,
    Connected,
    Disconnected,
}

/// How a check that takes its time has come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Outcome {
    #[default]
    Unknown,
    Passed,
    Failed,
}

/// What the checks found, in the few answers the lifecycle needs. Free hosts are judged by the pool's gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gates {
    /// An inventory is there and was not cut off completely.
    pub inventory: bool,
    pub inventory_fully_truncated: bool,
    /// The smallest hardware any role may have; for free hosts also a usable hostname.
    pub min_hardware: bool,
    /// What a person must still say about the cluster's networks is said.
    pub inputs: bool,
    pub vsphere_disks: bool,
    pub sufficient: bool,
    pub disk_speed: Outcome,
    pub images: Outcome,
}

/// Everything the borrowing cluster's owner put on the host. Cleared as one value when the host is returned,
/// so that no field can be forgotten.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tenant {
    /// A name given while the host was lent; a name given to a free host belongs to the pool and stays.
    pub hostname: Option<String>,
    pub installer_args: Vec<String>,
    pub ignition_overrides: String,
    pub ignition_token: String,
    pub ignition_headers: Vec<(String, String)>,
    pub machine_config_pool: String,
    pub node_labels: Vec<(String, String)>,
    pub skip_formatting: Vec<String>,
    /// JSON as the wire carries it; holds a password.
    pub fencing: String,
    pub installation_disk_id: String,
    pub installation_disk_path: String,
    /// The disk as a person finds it in the firmware's list: model, serial, name and id.
    pub installation_disk_label: String,
    /// The owner chose the disk; otherwise it follows the inventory.
    pub disk_chosen: bool,
}

// Secrets are never printed, not even in a failed assertion.
impl std::fmt::Debug for Tenant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenant")
            .field("clean", &(self == &Tenant::default()))
            .finish_non_exhaustive()
    }
}

/// The part of an inventory that other hosts' checks and summaries need.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Digest {
    pub hostname: String,
    pub cpus: i64,
    pub memory_mib: i64,
    /// The largest disk that may be installed to.
    pub disk_gb: i64,
    pub architecture: String,
    pub nics: Vec<Nic>,
    pub has_gpu: bool,
    pub virtual_machine: bool,
    /// The running system is on a disk, not in memory.
    pub persistent_boot: bool,
    /// What the kernel was started with tells the build of the live image; empty where it does not.
    pub booted_build: String,
    /// The same for the release line, as our own boot links carry it.
    pub booted_version: String,
    /// Where its management controller is reached; it is what reads virtual media.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bmc: Vec<IpAddr>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nic {
    pub name: String,
    pub mac: String,
    /// With prefix length, v4 then v6, as the agent reports them.
    pub addresses: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogsInfo {
    #[default]
    None,
    Requested,
    Collecting,
    Completed,
    Timeout,
}

impl LogsInfo {
    pub const ALL: [LogsInfo; 5] = [
        Self::None,
        Self::Requested,
        Self::Collecting,
        Self::Completed,
        Self::Timeout,
    ];

    /// The wire leaves the word out where the row keeps `none`.
    pub fn state(self) -> LogsState {
        match self {
            Self::None => LogsState::Unset,
            Self::Requested => LogsState::Requested,
            Self::Collecting => LogsState::Collecting,
            Self::Completed => LogsState::Completed,
            Self::Timeout => LogsState::Timeout,
        }
    }

    pub fn word(self) -> &'static str {
        self.state().word()
    }
}

impl From<LogsState> for LogsInfo {
    fn from(state: LogsState) -> Self {
        match state {
            LogsState::Unset => Self::None,
            LogsState::Requested => Self::Requested,
            LogsState::Collecting => Self::Collecting,
            LogsState::Completed => Self::Completed,
            LogsState::Timeout => Self::Timeout,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Logs {
    pub info: LogsInfo,
    pub started_at: Option<Timestamp>,
    pub collected_at: Option<Timestamp>,
}

impl Logs {
    /// What the sender says about its logs; the first word of a collection starts its clock.
    pub fn advance(&mut self, state: LogsInfo, now: Timestamp) {
        match state {
            LogsInfo::Requested | LogsInfo::Collecting => {
                self.started_at.get_or_insert(now);
            }
            LogsInfo::None | LogsInfo::Completed | LogsInfo::Timeout => {}
        }
        self.info = state;
    }
}

/// The row. Bulky reports (inventory, connectivity, validations…) live beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub id: HostId,
    pub infra_env: InfraEnvId,
    /// Set by the store: the revision this value was read at.
    #[serde(skip)]
    pub revision: i64,
    pub phase: Phase,
    /// When the phase was entered; deadlines count from here.
    pub since: Timestamp,
    pub cluster: Option<ClusterId>,
    /// A cluster had it at least once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_lent: bool,
    /// Where a move leads once the host is free and ready.
    #[serde(default)]
    pub moving_to: Option<ClusterId>,
    #[serde(default)]
    pub kind: Kind,
    pub connected: bool,
    #[serde(default)]
    pub media: Media,
    #[serde(default)]
    pub gates: Gates,
    pub status_info: String,
    pub status_updated_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub registered_at: Timestamp,
    pub checked_in_at: Timestamp,
    /// The host's own clock at its last poll, epoch seconds; 0 = never reported.
    #[serde(default)]
    pub clock: i64,
    #[serde(default)]
    pub agent_version: String,
    #[serde(default)]
    pub role: Role,
    #[serde(default)]
    pub suggested_role: Option<Role>,
    #[serde(default)]
    pub bootstrap: bool,
    /// A name given while the host was free.
    #[serde(default)]
    pub requested_hostname: Option<String>,
    #[serde(default)]
    pub tenant: Tenant,
    #[serde(default)]
    pub disks_to_format: Vec<String>,
    #[serde(default)]
    pub progress: Progress,
    #[serde(default)]
    pub connection_timed_out: bool,
    /// A fact about the machine, not the tenant: an installer was started on it and nothing proves that it ended.
    #[serde(default)]
    pub installer_may_run: bool,
    /// It is on its way back; the receipt is made from this when it arrives.
    #[serde(default)]
    pub returning: Option<Return>,
    #[serde(default)]
    pub logs: Logs,
    #[serde(default)]
    pub installer_version: String,
    /// The release line of the image that its pool offered when the machine last booted.
    #[serde(default)]
    pub booted_version: String,
    #[serde(default)]
    pub approved: bool,
    /// Somebody watches the node that a day-2 host becomes, and reports what the host itself cannot after its reboot.
    #[serde(default)]
    pub followed: bool,
    #[serde(default)]
    pub digest: Digest,
    #[serde(default)]
    pub machine: Machine,
    /// A hash of each report as the agent sent it, to tell news from repetition.
    #[serde(default, rename = "seen")]
    pub report_hashes: std::collections::BTreeMap<Report, u64>,
    /// The agent image that its agent was asked for in vain: it runs an alias of it, and the hub asks no more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent_instead_of: String,
    /// What it reported last about its hardware could not be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inventory_broken: bool,
    /// Owner, inherited from the InfraEnv.
    #[serde(default)]
    pub user: String,
    #[serde(default)]
    pub org: String,
}

impl Host {
    /// A machine that booted the image of this InfraEnv and registers for the first time.
    pub fn of_image(id: HostId, pool: &InfraEnv, now: Timestamp) -> Self {
        let infra_env = pool.id;
        Self {
            booted_version: pool.openshift_version.clone(),
            user: pool.user.clone(),
            org: pool.org.clone(),
            ..Self::arriving(HostKey { infra_env, host: id }, pool.cluster, now)
        }
    }

    /// A machine that registers for the first time.
    pub fn arriving(key: HostKey, cluster: Option<ClusterId>, now: Timestamp) -> Self {
        Self {
            id: key.host,
            infra_env: key.infra_env,
            revision: 0,
            phase: Phase::Discovery,
            since: now,
            cluster,
            was_lent: cluster.is_some(),
            moving_to: None,
            kind: Kind::Host,
            connected: true,
            media: Media::Unset,
            gates: Gates::default(),
            status_info: String::new(),
            status_updated_at: now,
            created_at: now,
            updated_at: now,
            registered_at: now,
            checked_in_at: now,
            clock: 0,
            agent_version: String::new(),
            role: Role::AutoAssign,
            suggested_role: Some(Role::AutoAssign),
            bootstrap: false,
            requested_hostname: None,
            tenant: Tenant::default(),
            disks_to_format: Vec::new(),
            progress: Progress::default(),
            connection_timed_out: false,
            installer_may_run: false,
            returning: None,
            logs: Logs::default(),
            installer_version: String::new(),
            booted_version: String::new(),
            approved: false,
            followed: false,
            digest: Digest::default(),
            machine: Machine::default(),
            agent_instead_of: String::new(),
            inventory_broken: false,
            report_hashes: Default::default(),
            user: String::new(),
            org: String::new(),
        }
    }

    pub fn key(&self) -> HostKey {
        HostKey {
            infra_env: self.infra_env,
            host: self.id,
        }
    }

    pub fn status(&self) -> Status {
        status::of(self)
    }

    pub fn is_free(&self) -> bool {
        self.cluster.is_none()
    }

    /// A worker that starts nothing: the only kind of host a cluster may be able to do without.
    pub fn is_spare(&self) -> bool {
        let role = crate::checks::facts::effective_role(self.role, self.suggested_role);
        role == Role::Worker && !self.bootstrap
    }

    /// From its reboot on, the discovery agent is gone by design, unless the machine booted discovery after all.
    pub fn agent_is_gone(&self) -> bool {
        let came_back = self
            .progress
            .updated_at
            .is_some_and(|told| told < self.registered_at);
        self.progress.stage.is_some_and(Stage::agent_is_gone) && !came_back
    }

    /// The name a person set, if any; the borrower's wins while the host is lent.
    pub fn given_name(&self) -> Option<&str> {
        self.tenant
            .hostname
            .as_deref()
            .or(self.requested_hostname.as_deref())
            .filter(|name| !name.is_empty())
    }

    /// The name shown everywhere: given, else reported, else the id.
    pub fn name(&self) -> String {
        match self.given_name() {
            Some(name) => name.to_owned(),
            None if !self.digest.hostname.is_empty() => self.digest.hostname.clone(),
            None => self.id.to_string(),
        }
    }

    /// A line of history about this host, filed under its pool and its cluster.
    pub fn entry(&self, name: &str, severity: Severity, message: impl Into<String>) -> Entry {
        let mut entry = Entry::new(name, severity, message);
        entry.host = Some(self.id);
        entry.infra_env = Some(self.infra_env);
        entry.cluster = self.cluster;
        entry
    }
}
