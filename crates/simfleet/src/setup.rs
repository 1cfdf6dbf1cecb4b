//! What all hosts of a fleet have in common.

use crate::fault::Fault;
use crate::profile::Profile;
use muster_contract::Secret;
use std::sync::Arc;
use uuid::Uuid;

/// What hubs usually answer as the pause between polls; the `poll` override is relative to it.
pub const USUAL_POLL_MS: u64 = 60_000;

/// Agents do not repeat an unchanged answer within an hour.
pub const REPLY_CACHE_MS: u64 = 3_600_000;

/// What an installation of three masters takes here, from the install step to its end; real ones take longer, and
/// `install_ms` is relative to it.
pub const USUAL_INSTALL_MS: u64 = 540_000;

/// Shared by all hosts of a fleet, so that each host stays small.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    pub infra_env_id: Uuid,
    pub seed: u64,
    /// The number of the first host; several fleets side by side use ranges that do not overlap.
    pub first_index: u32,
    /// What the agent in the discovery image calls itself, until the hub names another.
    pub agent_version: Arc<str>,
    /// Sent as `X-Secret-Key`.
    pub token: Secret,
    /// What a pause of 60 s becomes. Other pauses, and the time that steps take, shrink in proportion; 0 is as fast as
    /// the hub answers.
    pub poll_ms: Option<u64>,
    /// How long an unchanged answer is not repeated.
    pub reply_cache_ms: u64,
    /// Someone reboots machines whose agent gave up, after so long. Without it they stay as they are, like real ones.
    pub revive_ms: Option<u64>,
    /// What a whole installation takes; unset follows `poll_ms`.
    pub install_ms: Option<u64>,
    /// Someone with a power controller looks after installed machines this often, and boots the discovery image on
    /// those that the hub waits for. Without it they run their own system until they are told otherwise.
    pub return_boots_ms: Option<u64>,
    /// All machines alike, instead of a mix.
    pub profile: Option<Profile>,
    pub faults: Vec<Fault>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            infra_env_id: Uuid::nil(),
            seed: 1,
            first_index: 0,
            agent_version: "muster-agent:sim".into(),
            token: Secret::default(),
            poll_ms: None,
            reply_cache_ms: REPLY_CACHE_MS,
            revive_ms: None,
            install_ms: None,
            return_boots_ms: None,
            profile: None,
            faults: Vec::new(),
        }
    }
}

impl Setup {
    /// The pause before the next poll when the hub says `seconds`.
    pub fn pause_ms(&self, seconds: i64) -> u64 {
        let asked = u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
        match self.poll_ms {
            Some(poll) => asked.saturating_mul(poll) / USUAL_POLL_MS,
            None => asked,
        }
    }

    /// How long work of `ms` takes: less when the fleet polls faster than usual, never more.
    pub fn work_ms(&self, ms: u64) -> u64 {
        match self.poll_ms {
            Some(poll) => ms.saturating_mul(poll.min(USUAL_POLL_MS)) / USUAL_POLL_MS,
            None => ms,
        }
    }

    /// A pause before a retry: shortened like work, but never so short that a broken hub is hammered.
    pub fn retry_ms(&self, ms: u64) -> u64 {
        self.work_ms(ms).max(ms.min(1_000))
    }

    /// How long a part of an installation takes that lasts `ms` at the usual speed.
    pub fn install_work_ms(&self, ms: u64) -> u64 {
        match self.install_ms {
            Some(whole) => ms.saturating_mul(whole) / USUAL_INSTALL_MS,
            None => self.work_ms(ms),
        }
    }

    /// A pause between looks at what others do: shortened like work, but never a hot loop.
    pub fn look_ms(&self, ms: u64) -> u64 {
        self.install_work_ms(ms).max(ms.min(200))
    }
}
