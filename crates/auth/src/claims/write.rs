//! From what a token shall mean to its claims.

use super::read::checked_name;
use super::{Claims, Life, Scope};
use muster_vocabulary::{AccessRole, Generation};
use serde_json::{Map, Value};

/// Claims that no hub would accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadClaims {
    #[error("the name of the {whose} {why}")]
    Name { whose: &'static str, why: &'static str },
    #[error("a token needs the name of its user")]
    NoUser,
    #[error("a token cannot end before it begins")]
    NoLife,
}

impl Claims {
    pub(crate) fn write(&self) -> Result<Map<String, Value>, BadClaims> {
        let life = self.life();
        if life
            .issued_at
            .zip(life.expires_at)
            .is_some_and(|(from, until)| until <= from)
        {
            return Err(BadClaims::NoLife);
        }
        let mut out = Written(Map::new());
        match self {
            Self::Agent(agent) => {
                out.put("scope", Scope::Agent.word());
                out.put("infra_env_id", agent.infra_env.to_string());
                out.generation(agent.generation);
            }
            Self::Host(host) => {
                out.put("scope", Scope::Host.word());
                out.put("infra_env_id", host.host.infra_env.to_string());
                out.put("host_id", host.host.host.to_string());
                out.generation(host.generation);
                out.put("serial", host.serial);
            }
            Self::Cluster(cluster) => {
                out.put("scope", Scope::Cluster.word());
                out.put("cluster_id", cluster.cluster.to_string());
                out.generation(cluster.generation);
            }
            Self::User(user) => {
                named("user", &user.user)?;
                named("organisation", &user.org)?;
                if user.user.is_empty() {
                    return Err(BadClaims::NoUser);
                }
                out.put("scope", Scope::User.word());
                out.put("sub", user.user.as_str());
                out.put("org", user.org.as_str());
                out.put(
                    "roles",
                    user.roles
                        .iter()
                        .map(|role: &AccessRole| role.word())
                        .collect::<Vec<_>>(),
                );
                out.put("jti", user.id.to_string());
            }
        }
        out.life(life);
        Ok(out.0)
    }
}

fn named(whose: &'static str, name: &str) -> Result<(), BadClaims> {
    checked_name(name).map_err(|why| BadClaims::Name { whose, why })
}

struct Written(Map<String, Value>);

impl Written {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn generation(&mut self, generation: Generation) {
        if !generation.is_first() {
            self.put("generation", generation.0);
        }
    }

    /// Whole seconds: the fraction is not worth the room.
    fn life(&mut self, life: Life) {
        for (name, at) in [("iat", life.issued_at), ("exp", life.expires_at)] {
            if let Some(at) = at {
                self.put(name, at.as_second());
            }
        }
    }
}
