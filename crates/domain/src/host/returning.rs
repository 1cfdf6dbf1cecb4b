//! On the way back to the pool: how, since when, and what was cleared; the receipt says so when the host is free.

use super::{Host, Logs, Progress, Role, Tenant};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Only kinds of things, never their values: nothing of the old tenant may be read from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    pub since: Timestamp,
    pub route: Route,
    pub cleared: Vec<String>,
}

/// How a host comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// Its agent still runs and registers again.
    AgentRestart,
    /// Somebody, or a BMC, boots the discovery image.
    Boot,
    /// The installed system fetches the discovery image and reboots into it.
    Reclaim,
}

impl Route {
    pub const ALL: [Route; 3] = [Self::AgentRestart, Self::Boot, Self::Reclaim];

    pub fn word(self) -> &'static str {
        match self {
            Self::AgentRestart => "agent-restart",
            Self::Boot => "boot",
            Self::Reclaim => "reclaim",
        }
    }
}

impl Return {
    /// Looks at the host as it was while it was lent.
    pub fn of(lent: &Host, route: Route, now: Timestamp) -> Self {
        Self {
            since: now,
            route,
            cleared: cleared(lent),
        }
    }

    /// What the history keeps of it.
    pub fn receipt(&self, now: Timestamp) -> String {
        let took = took(now.duration_since(self.since));
        let cleared = match self.cleared.as_slice() {
            [] => "its cluster had set nothing on it".to_owned(),
            kinds => format!("cleared: {}", kinds.join(", ")),
        };
        let way = match self.route {
            Route::AgentRestart => "its agent registered again",
            Route::Boot => "it booted the discovery image",
            Route::Reclaim => "it rebooted itself into the discovery image",
        };
        format!("The host is free again after {took}: {way}; {cleared}.")
    }

    /// The same for programs.
    pub fn props(&self, now: Timestamp) -> String {
        serde_json::json!({
            "route": self.route.word(),
            "seconds": now.duration_since(self.since).as_secs(),
            "cleared": self.cleared,
        })
        .to_string()
    }
}

fn took(duration: SignedDuration) -> String {
    match duration.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

/// What returning the host takes away, by kind: never a value, the next borrower may read it.
pub fn cleared(host: &Host) -> Vec<String> {
    let Tenant {
        hostname,
        installer_args,
        ignition_overrides,
        ignition_token,
        ignition_headers,
        machine_config_pool,
        node_labels,
        skip_formatting,
        fencing,
        installation_disk_id,
        installation_disk_path: _,
        installation_disk_label: _,
        disk_chosen: _,
    } = &host.tenant;
    let kinds = [
        ("hostname", hostname.is_some()),
        ("role", host.role != Role::AutoAssign),
        ("installer arguments", !installer_args.is_empty()),
        ("ignition overrides", !ignition_overrides.is_empty()),
        ("ignition token", !ignition_token.is_empty()),
        ("ignition headers", !ignition_headers.is_empty()),
        ("machine config pool", !machine_config_pool.is_empty()),
        ("node labels", !node_labels.is_empty()),
        ("disks kept from formatting", !skip_formatting.is_empty()),
        ("fencing credentials", !fencing.is_empty()),
        ("installation disk", !installation_disk_id.is_empty()),
        ("progress", host.progress != Progress::default()),
        ("logs", host.logs != Logs::default()),
        ("installer version", !host.installer_version.is_empty()),
    ];
    let set = kinds.into_iter().filter(|(_, set)| *set);
    set.map(|(kind, _)| kind.to_owned()).collect()
}
