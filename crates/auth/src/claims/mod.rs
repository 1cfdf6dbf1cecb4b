//! What the hub's own tokens claim: chapter and verse of who speaks, typed.
//!
//! Tokens of assisted-service name one InfraEnv or one cluster and nothing else; they are agents of the first generation
//! here. Muster's own say what they are for (`scope`).

mod read;
mod write;

pub(crate) use read::{Taken, checked_name, numeric_date};
pub use write::BadClaims;

use crate::bad_token::BadToken;
use jiff::{SignedDuration, Timestamp};
use muster_vocabulary::{AccessRole, ClusterId, Generation, HostKey, InfraEnvId};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Longer names of people and organisations are refused.
pub const LONGEST_NAME: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claims {
    Agent(AgentClaims),
    Host(HostClaims),
    Cluster(ClusterClaims),
    User(UserClaims),
}

/// Any machine that booted the image of this InfraEnv.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentClaims {
    pub infra_env: InfraEnvId,
    pub generation: Generation,
    pub life: Life,
}

/// One machine, and nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostClaims {
    pub host: HostKey,
    /// Of its InfraEnv.
    pub generation: Generation,
    /// Counts the credentials that the host was given: only the last one speaks for it.
    pub serial: u32,
    pub life: Life,
}

/// What runs inside a cluster and reports its installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterClaims {
    pub cluster: ClusterId,
    pub generation: Generation,
    pub life: Life,
}

/// A person, by a token that was made for them and can be revoked by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserClaims {
    pub id: Uuid,
    pub user: String,
    pub org: String,
    pub roles: BTreeSet<AccessRole>,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Since when, and until when. Tokens of assisted-service may have neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Life {
    pub issued_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
}

impl Life {
    pub fn between(issued_at: Timestamp, expires_at: Timestamp) -> Self {
        Self {
            issued_at: Some(issued_at),
            expires_at: Some(expires_at),
        }
    }

    /// `leeway`: as far as clocks may differ.
    pub(crate) fn check(&self, now: Timestamp, leeway: SignedDuration) -> Result<(), BadToken> {
        // A time that leaves the calendar is far enough away.
        let late = |at: Timestamp| at.checked_add(leeway).is_ok_and(|at| at <= now);
        let early = |at: Timestamp| at.checked_sub(leeway).is_ok_and(|at| now < at);
        if self.expires_at.is_some_and(late) {
            return Err(BadToken::Expired);
        }
        if self.issued_at.is_some_and(early) {
            return Err(BadToken::FromTheFuture);
        }
        Ok(())
    }
}

/// What the token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Agent,
    Host,
    Cluster,
    User,
}

impl Scope {
    const ALL: [Self; 4] = [Self::Agent, Self::Host, Self::Cluster, Self::User];

    fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Host => "host",
            Self::Cluster => "cluster",
            Self::User => "user",
        }
    }
}

impl Claims {
    pub fn life(&self) -> Life {
        match self {
            Self::Agent(agent) => agent.life,
            Self::Host(host) => host.life,
            Self::Cluster(cluster) => cluster.life,
            Self::User(user) => Life::between(user.issued_at, user.expires_at),
        }
    }
}
