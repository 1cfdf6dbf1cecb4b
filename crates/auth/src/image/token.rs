//! Image tokens: HS256 with the key of one InfraEnv, as assisted-service makes them.

use super::{ImageKey, ImageKeys, KeyAge};
use crate::bad_token::BadToken;
use crate::base64url;
use crate::claims::{Life, Taken};
use crate::jws::{Algorithm, Compact, to_be_signed};
use crate::token::LEEWAY;
use jiff::Timestamp;
use muster_vocabulary::InfraEnvId;
use serde_json::Map;

/// These tokens have two claims.
const LONGEST: usize = 1024;

pub fn issue(key: &ImageKey, infra_env: InfraEnvId, expires_at: Timestamp) -> String {
    let claims = Map::from_iter([
        ("exp".to_owned(), expires_at.as_second().into()),
        ("sub".to_owned(), infra_env.to_string().into()),
    ]);
    let signed = to_be_signed(Algorithm::Hs256, None, &claims);
    let tag = key.sign(signed.as_bytes());
    format!("{signed}.{}", base64url::encode(tag))
}

/// A token that was read, and not verified.
#[derive(Debug)]
pub struct ImageToken<'a> {
    compact: Compact<'a>,
    /// Whose key to verify it with.
    pub infra_env: InfraEnvId,
    expires_at: Timestamp,
}

impl<'a> ImageToken<'a> {
    pub fn read(token: &'a str) -> Result<Self, BadToken> {
        let compact = Compact::read(token, LONGEST)?;
        compact.header.needs(Algorithm::Hs256)?;
        compact.header.has_nothing_else()?;
        compact.header.is_of_type(&["JWT"])?;
        let mut claims = Taken(compact.claims()?);
        let infra_env = InfraEnvId(claims.id("sub")?);
        let expires_at = claims.time("exp")?.ok_or(BadToken::Missing("exp"))?;
        claims.nothing_left()?;
        Ok(Self {
            compact,
            infra_env,
            expires_at,
        })
    }

    /// `infra_env`: the one whose image is asked for.
    pub fn verify(
        &self,
        keys: &ImageKeys,
        infra_env: InfraEnvId,
        now: Timestamp,
    ) -> Result<KeyAge, BadToken> {
        let tag = self.compact.signature()?;
        let age = keys
            .of(self.compact.signed, &tag, now)
            .ok_or(BadToken::Signature)?;
        if self.infra_env != infra_env {
            return Err(BadToken::OtherInfraEnv);
        }
        let life = Life {
            issued_at: None,
            expires_at: Some(self.expires_at),
        };
        life.check(now, LEEWAY).map(|()| age)
    }
}
