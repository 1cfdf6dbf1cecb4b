//! From the claims of a token to what they mean. Each kind of token has its claims and no others: one that is not known
//! might restrict the token, and must not be passed over.

use super::{AgentClaims, Claims, ClusterClaims, HostClaims, LONGEST_NAME, Life, Scope, UserClaims};
use crate::bad_token::BadToken;
use crate::told::Told;
use jiff::Timestamp;
use muster_vocabulary::{AccessRole, ClusterId, Generation, HostId, HostKey, InfraEnvId};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use uuid::Uuid;

impl Claims {
    pub(crate) fn read(claims: Map<String, Value>) -> Result<Self, BadToken> {
        let mut claims = Taken(claims);
        let read = match claims.scope()? {
            Some(Scope::Agent) => Self::Agent(claims.agent()?),
            Some(Scope::Host) => Self::Host(claims.host()?),
            Some(Scope::Cluster) => Self::Cluster(claims.cluster()?),
            Some(Scope::User) => Self::User(claims.user()?),
            None => claims.of_the_reference()?,
        };
        claims.nothing_left()?;
        Ok(read)
    }
}

/// Claims that were not looked at yet.
pub(crate) struct Taken(pub Map<String, Value>);

impl Taken {
    fn scope(&mut self) -> Result<Option<Scope>, BadToken> {
        let Some(word) = self.text("scope")? else {
            return Ok(None);
        };
        let scope = Scope::ALL.into_iter().find(|scope| scope.word() == word);
        scope
            .map(Some)
            .ok_or_else(|| BadToken::claim("scope", "is not known"))
    }

    /// Exactly one object, and when it was made or ends if the version that made it told.
    fn of_the_reference(&mut self) -> Result<Claims, BadToken> {
        match (
            self.0.contains_key("infra_env_id"),
            self.0.contains_key("cluster_id"),
        ) {
            (true, true) => Err(BadToken::TwoObjects),
            (true, false) => Ok(Claims::Agent(AgentClaims {
                infra_env: InfraEnvId(self.id("infra_env_id")?),
                generation: Generation::FIRST,
                life: self.life()?,
            })),
            (false, true) => Ok(Claims::Cluster(ClusterClaims {
                cluster: ClusterId(self.id("cluster_id")?),
                generation: Generation::FIRST,
                life: self.life()?,
            })),
            (false, false) => Err(BadToken::Missing("infra_env_id")),
        }
    }

    fn agent(&mut self) -> Result<AgentClaims, BadToken> {
        Ok(AgentClaims {
            infra_env: InfraEnvId(self.id("infra_env_id")?),
            generation: self.generation()?,
            life: self.life()?,
        })
    }

    fn host(&mut self) -> Result<HostClaims, BadToken> {
        Ok(HostClaims {
            host: HostKey {
                infra_env: InfraEnvId(self.id("infra_env_id")?),
                host: HostId(self.id("host_id")?),
            },
            generation: self.generation()?,
            serial: self.count("serial")?.ok_or(BadToken::Missing("serial"))?,
            life: self.life()?,
        })
    }

    fn cluster(&mut self) -> Result<ClusterClaims, BadToken> {
        Ok(ClusterClaims {
            cluster: ClusterId(self.id("cluster_id")?),
            generation: self.generation()?,
            life: self.life()?,
        })
    }

    fn user(&mut self) -> Result<UserClaims, BadToken> {
        Ok(UserClaims {
            id: self.id("jti")?,
            user: self
                .name("sub")?
                .filter(|name| !name.is_empty())
                .ok_or(BadToken::Missing("sub"))?,
            org: self.name("org")?.unwrap_or_default(),
            roles: self.roles()?,
            issued_at: self.time("iat")?.ok_or(BadToken::Missing("iat"))?,
            expires_at: self.time("exp")?.ok_or(BadToken::Missing("exp"))?,
        })
    }

    fn roles(&mut self) -> Result<BTreeSet<AccessRole>, BadToken> {
        let wrong = || BadToken::claim("roles", "is not a list of roles");
        let role = |value: &Value| value.as_str().and_then(AccessRole::from_word).ok_or_else(wrong);
        match self.0.shift_remove("roles") {
            Some(Value::Array(roles)) => roles.iter().map(role).collect(),
            Some(_) => Err(wrong()),
            None => Err(BadToken::Missing("roles")),
        }
    }

    fn generation(&mut self) -> Result<Generation, BadToken> {
        Ok(Generation(self.count("generation")?.unwrap_or_default()))
    }

    pub fn life(&mut self) -> Result<Life, BadToken> {
        Ok(Life {
            issued_at: self.time("iat")?,
            expires_at: self.time("exp")?,
        })
    }

    pub fn id(&mut self, name: &'static str) -> Result<Uuid, BadToken> {
        let text = self.text(name)?.ok_or(BadToken::Missing(name))?;
        let id = Some(&text)
            .filter(|text| text.len() == 36)
            .and_then(|text| Uuid::try_parse(text).ok());
        id.ok_or_else(|| BadToken::claim(name, "is no UUID"))
    }

    fn name(&mut self, name: &'static str) -> Result<Option<String>, BadToken> {
        let text = self.text(name)?;
        match text.as_deref().map_or(Ok(()), checked_name) {
            Ok(()) => Ok(text),
            Err(why) => Err(BadToken::claim(name, why)),
        }
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, BadToken> {
        match self.0.shift_remove(name) {
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(BadToken::claim(name, "is no text")),
            None => Ok(None),
        }
    }

    fn count(&mut self, name: &'static str) -> Result<Option<u32>, BadToken> {
        let Some(value) = self.0.shift_remove(name) else {
            return Ok(None);
        };
        let count = value.as_u64().and_then(|count| u32::try_from(count).ok());
        count
            .map(Some)
            .ok_or_else(|| BadToken::claim(name, "is no number that counts"))
    }

    pub fn time(&mut self, name: &'static str) -> Result<Option<Timestamp>, BadToken> {
        let value = self.0.shift_remove(name);
        value
            .map(|value| numeric_date(&value).ok_or_else(|| BadToken::claim(name, "is no time")))
            .transpose()
    }

    pub fn nothing_left(&self) -> Result<(), BadToken> {
        match self.0.keys().next() {
            Some(name) => Err(BadToken::Unexpected(Told::new(name))),
            None => Ok(()),
        }
    }
}

/// What a name of a person or an organisation may look like.
pub(crate) fn checked_name(name: &str) -> Result<(), &'static str> {
    if name.chars().count() > LONGEST_NAME {
        return Err("is longer than 256 characters");
    }
    match name.chars().any(char::is_control) {
        true => Err("holds control characters"),
        false => Ok(()),
    }
}

/// Seconds since 1970, perhaps with a fraction, up to the year 9999.
pub(crate) fn numeric_date(value: &Value) -> Option<Timestamp> {
    const END: i64 = 253_402_300_799;
    let in_range = |seconds: &i64| (0..=END).contains(seconds);
    let whole = |seconds: f64| {
        (0.0..253_402_300_799.0)
            .contains(&seconds)
            .then_some(seconds as i64)
    };
    let seconds = value.as_i64().or_else(|| value.as_f64().and_then(whole));
    seconds
        .filter(in_range)
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
}
