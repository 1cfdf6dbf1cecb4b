//! Whole installations, played by three parties that the hub hears of: the installer that runs beside the agent, the
//! system on the disk after the reboot, and the controller inside the new cluster.
//!
//! Each is a machine without I/O: it names the call it makes next and when, and gets the result.

pub mod controller;
pub mod installer;
pub mod logs;
pub mod node;
pub mod peers;

use crate::request::{Call, Outcome};
use crate::seed::Draws;
use crate::setup::Setup;
use http::Method;
use muster_contract::v2::BASE;
use muster_vocabulary::{InstallRole, Stage, Word};
use serde::Serialize;
use uuid::Uuid;

/// How often a call is repeated, by the answer it got: a file may come late, a hub may be away for an hour.
const MISSING_RETRIES: u16 = 10;
const BROKEN_RETRIES: u16 = 360;
const RETRY_MS: (u64, u64) = (2_000, 10_000);

/// Whose installation it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ids {
    pub cluster: Uuid,
    pub infra_env: Uuid,
    pub host: Uuid,
}

impl Ids {
    pub fn cluster_path(&self) -> String {
        format!("{BASE}/clusters/{}", self.cluster)
    }

    pub fn host_path(&self) -> String {
        format!("{BASE}/infra-envs/{}/hosts/{}", self.infra_env, self.host)
    }

    /// The ignition of the installed system; the path is singular for historical reasons.
    pub fn ignition_path(&self) -> String {
        format!(
            "{BASE}/infra-env/{}/hosts/{}/downloads/ignition",
            self.infra_env, self.host
        )
    }
}

/// What a machine becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Starts the control plane for the others, then joins it.
    Bootstrap,
    /// The only node of its control plane.
    SingleNode,
    Master,
    Arbiter,
    Worker,
}

impl Role {
    pub fn of(word: &Word<InstallRole>, control_plane_count: i64) -> Self {
        match word.known() {
            Some(InstallRole::Bootstrap) if control_plane_count == 1 => Self::SingleNode,
            Some(InstallRole::Bootstrap) => Self::Bootstrap,
            Some(InstallRole::Master) => Self::Master,
            Some(InstallRole::Arbiter) => Self::Arbiter,
            Some(InstallRole::Worker) | None => Self::Worker,
        }
    }

    pub fn word(self) -> &'static str {
        let role = match self {
            Self::Bootstrap | Self::SingleNode => InstallRole::Bootstrap,
            Self::Master => InstallRole::Master,
            Self::Arbiter => InstallRole::Arbiter,
            Self::Worker => InstallRole::Worker,
        };
        role.word()
    }

    /// Whether the controller may run on it.
    pub fn leads(self) -> bool {
        match self {
            Self::Bootstrap | Self::SingleNode | Self::Master => true,
            Self::Arbiter | Self::Worker => false,
        }
    }
}

/// A call that one of the parties makes.
#[derive(Debug)]
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub body: Vec<u8>,
    pub content_type: &'static str,
    pub call: Call,
}

impl Ask {
    pub fn get(path: String) -> Self {
        Self {
            method: Method::GET,
            path,
            body: Vec::new(),
            content_type: "application/json",
            call: Call::Install,
        }
    }

    pub fn send(method: Method, path: String, body: &impl Serialize) -> Self {
        Self {
            method,
            body: serde_json::to_vec(body).expect("wire types always serialise"),
            ..Self::get(path)
        }
    }
}

/// What follows from the answer to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The next call, or the same once more, comes at its time.
    Goes,
    /// This stage was reported for the first time.
    Reached(Stage),
    /// It failed, and gives up.
    Failed,
    /// Nothing more is to be done, or the hub does not want to hear it.
    Ended,
}

/// Counts failures of one call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Patience(u16);

impl Patience {
    /// When to try again; nothing when it is no use.
    pub fn retry_at(
        &mut self,
        now_ms: u64,
        setup: &Setup,
        draws: &mut Draws,
        outcome: &Outcome,
    ) -> Option<u64> {
        let most = match outcome {
            Outcome::Response {
                status: 404 | 423 | 425,
                ..
            } => MISSING_RETRIES,
            Outcome::Response {
                status: 408 | 429 | 500..=599,
                ..
            }
            | Outcome::Lost => BROKEN_RETRIES,
            Outcome::Response { .. } => 0,
        };
        self.count(now_ms, setup, draws, most)
    }

    /// The same for files: one that cannot be given yet is like one that is missing.
    pub fn retry_file_at(
        &mut self,
        now_ms: u64,
        setup: &Setup,
        draws: &mut Draws,
        outcome: &Outcome,
    ) -> Option<u64> {
        match outcome {
            Outcome::Response { status: 409, .. } => self.count(now_ms, setup, draws, MISSING_RETRIES),
            Outcome::Response { .. } | Outcome::Lost => self.retry_at(now_ms, setup, draws, outcome),
        }
    }

    pub fn restore(&mut self) {
        self.0 = 0;
    }

    fn count(&mut self, now_ms: u64, setup: &Setup, draws: &mut Draws, most: u16) -> Option<u64> {
        self.0 += 1;
        (self.0 <= most).then(|| now_ms + setup.retry_ms(draws.between(RETRY_MS.0, RETRY_MS.1)))
    }
}

#[cfg(test)]
mod tests;
