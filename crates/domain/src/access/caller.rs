//! Who asks: carried through every use case, so that tenancy needs no new parameter later.

use muster_vocabulary::{AccessRole, ClusterId, Generation, HostKey, InfraEnvId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// Of a person; machines have none.
    pub user: String,
    /// Empty: the person belongs to no organisation, and shares nothing.
    pub org: String,
    pub email_domain: String,
    pub who: Who,
}

/// What a caller has shown to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Who {
    /// Nobody asked: the hub itself, and everybody where authentication is switched off.
    Trusted,
    /// Has shown nothing.
    Nobody,
    Person {
        roles: BTreeSet<AccessRole>,
    },
    /// Any machine that booted the image of this InfraEnv.
    Agent {
        infra_env: InfraEnvId,
        generation: Generation,
    },
    /// One machine, with a credential of its own.
    Host {
        host: HostKey,
        generation: Generation,
        /// Which of the credentials that the host was given.
        serial: u32,
    },
    /// What runs inside a cluster and reports its installation.
    Cluster {
        cluster: ClusterId,
        generation: Generation,
    },
    /// Somebody with an address of an image, which is good for reading that image and what belongs to it.
    Reader {
        infra_env: InfraEnvId,
        generation: Generation,
    },
}

impl Caller {
    /// With authentication switched off everyone is the administrator.
    pub fn admin() -> Self {
        Self {
            user: "admin".into(),
            org: String::new(),
            email_domain: "Unknown".into(),
            who: Who::Trusted,
        }
    }

    pub fn person(
        user: impl Into<String>,
        org: impl Into<String>,
        roles: impl IntoIterator<Item = AccessRole>,
    ) -> Self {
        Self {
            user: user.into(),
            org: org.into(),
            email_domain: "Unknown".into(),
            who: Who::Person {
                roles: roles.into_iter().collect(),
            },
        }
    }

    /// Everybody who is no person.
    pub fn machine(who: Who) -> Self {
        Self {
            user: String::new(),
            org: String::new(),
            email_domain: "Unknown".into(),
            who,
        }
    }

    pub(super) fn has(&self, role: AccessRole) -> bool {
        match &self.who {
            Who::Person { roles } => roles.contains(&role),
            Who::Trusted
            | Who::Nobody
            | Who::Agent { .. }
            | Who::Host { .. }
            | Who::Cluster { .. }
            | Who::Reader { .. } => false,
        }
    }
}

/// For audit and logs.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Who::Trusted => write!(f, "{}, without login", self.user),
            Who::Nobody => f.write_str("somebody who did not log in"),
            Who::Person { .. } if self.org.is_empty() => write!(f, "{}", self.user),
            Who::Person { .. } => write!(f, "{} of {}", self.user, self.org),
            Who::Agent { infra_env, .. } => write!(f, "an agent of InfraEnv {infra_env}"),
            Who::Host { host, .. } => write!(f, "host {host}"),
            Who::Cluster { cluster, .. } => write!(f, "cluster {cluster}"),
            Who::Reader { infra_env, .. } => write!(f, "a reader of the image of InfraEnv {infra_env}"),
        }
    }
}
