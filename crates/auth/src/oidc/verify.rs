//! Whether a token is one of the issuer's, meant for this hub, and in time.

use super::Issuer;
use super::keys::Keys;
use crate::bad_token::BadToken;
use crate::claims::numeric_date;
use crate::jws::Compact;
use crate::told::Told;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

/// People with many groups have long tokens; proxies refuse headers that are longer.
pub const LONGEST_TOKEN: usize = 16 * 1024;
/// More recipients than any token has.
const MOST_AUDIENCES: usize = 64;

/// What a token must say to be accepted.
#[derive(Debug, Clone)]
pub struct Expected {
    pub issuer: Issuer,
    /// One of these must be among those whom the token is for.
    pub audiences: Vec<String>,
    /// As far as the clock of the issuer may differ.
    pub leeway: SignedDuration,
}

/// The claims of a token that is right. [`BadToken::UnknownKey`] is the cue to fetch the keys, if [`Keys::missed`] agrees, and
/// to ask again.
pub fn verify(
    keys: &Keys,
    token: &str,
    expected: &Expected,
    now: Timestamp,
) -> Result<Map<String, Value>, BadToken> {
    let compact = Compact::read(token, LONGEST_TOKEN)?;
    let header = &compact.header;
    let algorithm = header.asymmetric()?;
    // Other types are made for other purposes: logout, proof of possession, events.
    header.is_of_type(&["JWT", "at+jwt"])?;
    let signature = compact.signature()?;
    if !keys.are_trusted(now) {
        return Err(BadToken::KeysTooOld);
    }
    let kid = header.kid.as_deref();
    let candidates = keys.candidates(kid, algorithm, now);
    match (kid, candidates.len()) {
        (Some(kid), 0) => return Err(BadToken::UnknownKey(Told::new(kid))),
        (None, 0 | 2..) => return Err(BadToken::KeyNotNamed),
        (Some(_), _) | (None, 1) => {}
    }
    if !candidates
        .iter()
        .any(|key| key.verifies(compact.signed, &signature))
    {
        return Err(BadToken::Signature);
    }
    let claims = compact.claims()?;
    check(&claims, expected, now)?;
    Ok(claims)
}

fn check(claims: &Map<String, Value>, expected: &Expected, now: Timestamp) -> Result<(), BadToken> {
    match claims.get("iss") {
        Some(Value::String(issuer)) if issuer == expected.issuer.as_str() => {}
        Some(Value::String(issuer)) => return Err(BadToken::Issuer(Told::new(issuer))),
        Some(_) => return Err(BadToken::claim("iss", "is no text")),
        None => return Err(BadToken::Missing("iss")),
    }
    is_for(claims.get("aud"), &expected.audiences)?;
    let expires_at = time(claims, "exp")?.ok_or(BadToken::Missing("exp"))?;
    let late = |at: Timestamp| at.checked_add(expected.leeway).is_ok_and(|at| at <= now);
    let early = |at: Timestamp| at.checked_sub(expected.leeway).is_ok_and(|at| now < at);
    if late(expires_at) {
        return Err(BadToken::Expired);
    }
    if time(claims, "nbf")?.is_some_and(early) {
        return Err(BadToken::NotYet);
    }
    match time(claims, "iat")?.is_some_and(early) {
        true => Err(BadToken::FromTheFuture),
        false => Ok(()),
    }
}

fn is_for(told: Option<&Value>, audiences: &[String]) -> Result<(), BadToken> {
    let ours = |value: &Value| {
        value
            .as_str()
            .is_some_and(|told| audiences.iter().any(|ours| ours == told))
    };
    let found = match told {
        Some(Value::String(_)) => told.is_some_and(ours),
        Some(Value::Array(list)) if list.len() > MOST_AUDIENCES => {
            return Err(BadToken::claim("aud", "names more recipients than are looked at"));
        }
        Some(Value::Array(list)) => list.iter().any(ours),
        Some(_) => return Err(BadToken::claim("aud", "is neither text nor list")),
        None => return Err(BadToken::Missing("aud")),
    };
    match found {
        true => Ok(()),
        false => Err(BadToken::Audience),
    }
}

fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<Timestamp>, BadToken> {
    let value = claims.get(name);
    value
        .map(|value| numeric_date(value).ok_or_else(|| BadToken::claim(name, "is no time")))
        .transpose()
}
