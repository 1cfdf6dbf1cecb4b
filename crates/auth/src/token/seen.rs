//! Tokens that were verified before: agents show the same one with every poll, and a signature costs more than the poll.

use super::{LEEWAY, LONGEST, Verified, verify};
use crate::bad_token::BadToken;
use crate::key::KeySet;
use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::sync::Arc;

/// Tokens by their hash. Only tokens that were right are kept, so nobody fills the room with others. When it is full, the half
/// that nobody showed for longest is forgotten.
#[derive(Debug)]
pub struct Seen {
    recent: HashMap<[u8; 32], Arc<Verified>>,
    before: HashMap<[u8; 32], Arc<Verified>>,
    half: usize,
}

impl Seen {
    /// `most`: never more than this are remembered, and at least half of it.
    pub fn new(most: usize) -> Self {
        Self {
            recent: HashMap::new(),
            before: HashMap::new(),
            half: (most / 2).max(1),
        }
    }

    /// As [`verify`] says, which is asked only about tokens that were not seen. What can change between is looked at each time:
    /// whether the token has expired, and whether its key is still kept.
    pub fn verify(&mut self, keys: &KeySet, token: &str, now: Timestamp) -> Result<Arc<Verified>, BadToken> {
        if token.len() > LONGEST {
            return Err(BadToken::TooLong { limit: LONGEST });
        }
        let hash = hashed(token);
        let known = self.recent.get(&hash).or_else(|| self.before.get(&hash)).cloned();
        let kept =
            |verified: &Arc<Verified>| keys.candidates(Some(verified.key.as_str()), now).next().is_some();
        let verified = match known.filter(kept) {
            Some(verified) => {
                verified.claims.life().check(now, LEEWAY)?;
                verified
            }
            None => Arc::new(verify(keys, token, now)?),
        };
        self.remember(hash, &verified);
        Ok(verified)
    }

    fn remember(&mut self, hash: [u8; 32], verified: &Arc<Verified>) {
        if self.recent.contains_key(&hash) {
            return;
        }
        if self.recent.len() == self.half {
            self.before = std::mem::take(&mut self.recent);
        }
        self.before.remove(&hash);
        self.recent.insert(hash, verified.clone());
    }

    pub fn len(&self) -> usize {
        self.recent.len() + self.before.len()
    }

    pub fn is_empty(&self) -> bool {
        self.recent.is_empty() && self.before.is_empty()
    }
}

fn hashed(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{AgentClaims, Claims, Life};
    use crate::key::SigningKey;
    use crate::token::issue;
    use muster_vocabulary::{Generation, InfraEnvId};
    use uuid::Uuid;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn token(keys: &KeySet, number: u8) -> String {
        let claims = Claims::Agent(AgentClaims {
            infra_env: InfraEnvId(Uuid::from_bytes([number; 16])),
            generation: Generation::FIRST,
            life: Life::between(at(0), at(1000)),
        });
        issue(keys, &claims).unwrap()
    }

    #[test]
    fn a_token_that_was_seen_ends_like_any_other() {
        let mut keys = KeySet::new(SigningKey::generate().unwrap());
        let mut seen = Seen::new(10);
        let token = token(&keys, 1);
        let first = seen.verify(&keys, &token, at(10)).unwrap();
        let again = seen.verify(&keys, &token, at(20)).unwrap();
        assert!(Arc::ptr_eq(&first, &again), "it was verified once");
        assert_eq!(seen.verify(&keys, &token, at(1030)), Err(BadToken::Expired));
        keys.rotate(SigningKey::generate().unwrap(), Some(at(500)))
            .unwrap();
        assert!(seen.verify(&keys, &token, at(499)).is_ok());
        let gone = seen.verify(&keys, &token, at(500));
        assert!(matches!(gone, Err(BadToken::UnknownKey(_))), "{gone:?}");
    }

    #[test]
    fn bad_tokens_are_not_remembered() {
        let keys = KeySet::new(SigningKey::generate().unwrap());
        let other = KeySet::new(SigningKey::generate().unwrap());
        let mut seen = Seen::new(10);
        let mut bad = token(&keys, 1);
        bad.truncate(bad.len() - 4);
        let long = "x".repeat(LONGEST + 1);
        for token in [bad.as_str(), &token(&other, 1), &long, ""] {
            assert!(seen.verify(&keys, token, at(10)).is_err());
            assert!(seen.verify(&keys, token, at(10)).is_err());
        }
        assert!(seen.is_empty());
    }

    #[test]
    fn what_is_shown_again_stays_and_the_rest_makes_room() {
        let keys = KeySet::new(SigningKey::generate().unwrap());
        let mut seen = Seen::new(8);
        let busy = token(&keys, 0);
        let first = seen.verify(&keys, &busy, at(10)).unwrap();
        for number in 1..100 {
            seen.verify(&keys, &token(&keys, number), at(10)).unwrap();
            let again = seen.verify(&keys, &busy, at(10)).unwrap();
            assert!(Arc::ptr_eq(&first, &again), "forgotten after {number}");
            assert!(seen.len() <= 8, "{} are remembered", seen.len());
        }
    }
}
