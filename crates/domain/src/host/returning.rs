//! On the way back to the pool: how, since when, and what was cleared; the receipt says so when the host is free.
//!
//! The route is chosen here and nowhere else: the phase of a host that leaves, what people are told and what they are asked to
//! do all follow from it.

use super::{Host, Logs, Phase, Progress, Role, Tenant};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use muster_vocabulary::Route;

/// Only kinds of things, never their values: nothing of the old tenant may be read from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    pub since: Timestamp,
    pub route: Route,
    pub cleared: Vec<String>,
}

/// What a host is asked to do as it leaves its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenBack {
    /// It is let go: unbound, or its cluster is deleted.
    LetGo,
    /// A system that runs on it is asked to bring it back by itself.
    InBand,
}

/// How a host most likely comes back. Before it leaves, this decides; once it is on its way, it says what was decided. A live
/// agent is told to register again even when its disk was written.
pub fn route(host: &Host, taken: TakenBack) -> Route {
    if let Some(decided) = host.route() {
        return decided;
    }
    match (stands(host.phase), taken) {
        (Stands::Untouched, TakenBack::LetGo | TakenBack::InBand) => Route::AgentRestart,
        (Stands::Installed, TakenBack::InBand) => Route::Reclaim,
        (Stands::Installed | Stands::Between, TakenBack::LetGo) | (Stands::Between, TakenBack::InBand) => {
            match host.agent_is_gone() || !host.connected {
                true => Route::Boot,
                false => Route::AgentRestart,
            }
        }
    }
}

/// The phase in which this host begins its way.
pub fn first_phase(lent: &Host, route: Route) -> Phase {
    match (route, stands(lent.phase)) {
        (Route::AgentRestart, Stands::Untouched) => Phase::Unbinding,
        // Should its agent not come after all, a boot still helps, and nobody knows when: it waits without a limit.
        (Route::AgentRestart, Stands::Installed | Stands::Between) => Phase::ReturnPending,
        (Route::Boot, Stands::Untouched | Stands::Installed | Stands::Between) => Phase::ReturnPending,
        (Route::Reclaim, Stands::Untouched | Stands::Installed | Stands::Between) => Phase::Reclaiming,
    }
}

/// What a phase says about the way back.
enum Stands {
    /// Nobody has begun to install it.
    Untouched,
    /// The installed system runs.
    Installed,
    /// Its disk may hold a system, whole or in part.
    Between,
}

fn stands(phase: Phase) -> Stands {
    match phase {
        Phase::Discovery | Phase::Binding | Phase::Unbinding => Stands::Untouched,
        Phase::Installed | Phase::Added => Stands::Installed,
        Phase::ReturnPending
        | Phase::Reclaiming
        | Phase::ReclaimRebooting
        | Phase::Preparing
        | Phase::Prepared
        | Phase::PrepareFailed
        | Phase::Installing
        | Phase::InProgress
        | Phase::BootFix
        | Phase::Failed
        | Phase::Cancelled
        | Phase::Resetting
        | Phase::ResetPending => Stands::Between,
    }
}

/// What happens on this way, for whoever plans it.
pub fn happens(route: Route) -> &'static str {
    match route {
        Route::AgentRestart => "Its agent is told to exit and to register again.",
        Route::Boot => "Its disk may hold an installed system: somebody must boot the discovery image.",
        Route::Reclaim => {
            "The node fetches the discovery image and boots it; if that does not work within an hour, somebody must boot it."
        }
    }
}

/// What somebody is to do who waits for a host on its way.
pub fn remedy(host: &Host, route: Route) -> &'static str {
    match (route, stands(host.phase)) {
        (Route::AgentRestart, Stands::Untouched) => {
            "Wait for its agent to register again, within about a minute."
        }
        (Route::AgentRestart, Stands::Installed | Stands::Between) => {
            "Wait for its agent to register again, within about a minute; if it does not, boot the discovery image."
        }
        (Route::Boot, Stands::Untouched | Stands::Installed | Stands::Between) => "Boot the discovery image.",
        (Route::Reclaim, Stands::Untouched | Stands::Installed | Stands::Between) => {
            "Wait; it returns to the free pool by itself."
        }
    }
}

fn came(route: Route) -> &'static str {
    match route {
        Route::AgentRestart => "its agent registered again",
        Route::Boot => "it booted the discovery image",
        Route::Reclaim => "it rebooted itself into the discovery image",
    }
}

impl Host {
    /// The way on which it comes back, as it was decided when it left; `None` while it is not on its way.
    pub fn route(&self) -> Option<Route> {
        match &self.returning {
            Some(on_its_way) => Some(on_its_way.route),
            // A row in which nobody wrote it down.
            None => self.status().way_back(),
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
        let way = came(self.route);
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
