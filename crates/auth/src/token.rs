//! The hub's own tokens: made with the key that signs, verified with every key that is kept.

mod seen;

pub use seen::Seen;

use crate::bad_token::BadToken;
use crate::base64url;
use crate::claims::{BadClaims, Claims};
use crate::jws::{Algorithm, Compact, to_be_signed};
use crate::key::{KeyError, KeyId, KeySet};
use crate::told::Told;
use jiff::{SignedDuration, Timestamp};

/// A user token with all roles and the longest names is half of this.
pub const LONGEST: usize = 4096;
/// As far as the clocks of several hubs may differ.
pub const LEEWAY: SignedDuration = SignedDuration::from_secs(30);

/// Why no token could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotIssued {
    #[error("there is no private key to sign with")]
    NoSigner,
    #[error(transparent)]
    Claims(#[from] BadClaims),
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Who speaks, and by which key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub claims: Claims,
    pub key: KeyId,
}

pub fn issue(keys: &KeySet, claims: &Claims) -> Result<String, NotIssued> {
    let signer = keys.signer().ok_or(NotIssued::NoSigner)?;
    let signed = to_be_signed(Algorithm::Es256, Some(signer.id().as_str()), &claims.write()?);
    let signature = signer.sign(signed.as_bytes())?;
    Ok(format!("{signed}.{}", base64url::encode(signature)))
}

/// Whether what a token names still exists, and is still of its generation, is for the caller to find out.
pub fn verify(keys: &KeySet, token: &str, now: Timestamp) -> Result<Verified, BadToken> {
    let compact = Compact::read(token, LONGEST)?;
    let header = &compact.header;
    header.needs(Algorithm::Es256)?;
    header.has_nothing_else()?;
    header.is_of_type(&["JWT"])?;
    let kid = header.kid.as_deref();
    let signature = compact.signature()?;
    let mut candidates = keys.candidates(kid, now).peekable();
    if let (Some(kid), None) = (kid, candidates.peek()) {
        return Err(BadToken::UnknownKey(Told::new(kid)));
    }
    let key = candidates
        .find(|key| key.verifies(compact.signed, &signature))
        .ok_or(BadToken::Signature)?;
    let claims = Claims::read(compact.claims()?)?;
    claims.life().check(now, LEEWAY)?;
    Ok(Verified {
        claims,
        key: key.id().clone(),
    })
}

#[cfg(test)]
mod tests;
