//! Several keys at a time: one signs, and those before it verify until their time is over.

use super::document::{self, Kind};
use super::{KeyError, KeyId, SigningKey, VerifyingKey};
use jiff::Timestamp;

/// A token without the name of its key is tried with each of them, so there must not be many.
pub const MOST_KEYS: usize = 16;

/// A key that verifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub key: VerifyingKey,
    /// From then on it verifies nothing.
    pub until: Option<Timestamp>,
}

#[derive(Debug)]
pub struct KeySet {
    signer: Option<SigningKey>,
    /// The key that signs is one of them.
    kept: Vec<Kept>,
}

impl KeySet {
    pub fn new(signer: SigningKey) -> Self {
        let mut set = Self {
            signer: None,
            kept: Vec::new(),
        };
        set.put(signer.public().clone(), None);
        set.signer = Some(signer);
        set
    }

    /// Every key of a PEM text verifies, and the first private one signs.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let mut set = Self {
            signer: None,
            kept: Vec::new(),
        };
        for (kind, document) in document::blocks(text)? {
            match kind {
                Kind::Public => set.put(VerifyingKey::from_document(&document)?, None),
                Kind::Sec1 | Kind::Pkcs8 => {
                    let key = SigningKey::from_document(kind, &document)?;
                    set.put(key.public().clone(), None);
                    set.signer.get_or_insert(key);
                }
            }
        }
        match set.kept.len() {
            0 => Err(KeyError::None { wanted: "usable" }),
            1..=MOST_KEYS => Ok(set),
            _ => Err(KeyError::TooMany),
        }
    }

    /// A key that verifies beside the others, until then or for good. One that is there already keeps the later time.
    pub fn keep(&mut self, key: VerifyingKey, until: Option<Timestamp>) -> Result<(), KeyError> {
        self.put(key, until);
        match self.kept.len() {
            ..=MOST_KEYS => Ok(()),
            _ => {
                self.kept.pop();
                Err(KeyError::TooMany)
            }
        }
    }

    fn put(&mut self, key: VerifyingKey, until: Option<Timestamp>) {
        match self.kept.iter_mut().find(|kept| kept.key == key) {
            Some(kept) => kept.until = kept.until.zip(until).map(|(one, other)| one.max(other)),
            None => self.kept.push(Kept { key, until }),
        }
    }

    /// From now on `next` signs; what signed before verifies until then, or for good.
    pub fn rotate(&mut self, next: SigningKey, old_until: Option<Timestamp>) -> Result<(), KeyError> {
        self.keep(next.public().clone(), None)?;
        let signs = next.id().clone();
        if let Some(old) = self.signer.replace(next)
            && *old.id() != signs
            && let Some(kept) = self.kept.iter_mut().find(|kept| kept.key == *old.public())
        {
            kept.until = old_until;
        }
        Ok(())
    }

    /// A key that somebody else may have verifies nothing from now on. The one that signs has to be replaced first.
    pub fn remove(&mut self, id: &KeyId) -> bool {
        let signs = self.signer().is_some_and(|signer| signer.id() == id);
        let before = self.kept.len();
        self.kept.retain(|kept| signs || kept.key.id() != id);
        self.kept.len() < before
    }

    /// Forgets keys whose time is over.
    pub fn forget_old(&mut self, now: Timestamp) {
        self.kept
            .retain(|kept| kept.until.is_none_or(|until| now < until));
    }

    pub fn signer(&self) -> Option<&SigningKey> {
        self.signer.as_ref()
    }

    pub fn kept(&self) -> &[Kept] {
        &self.kept
    }

    /// The keys that may have signed a token: the one it names, or all of them.
    pub(crate) fn candidates(
        &self,
        kid: Option<&str>,
        now: Timestamp,
    ) -> impl Iterator<Item = &VerifyingKey> {
        let in_time = move |kept: &&Kept| kept.until.is_none_or(|until| now < until);
        let named = move |key: &&VerifyingKey| kid.is_none_or(|kid| key.id().as_str() == kid);
        self.kept
            .iter()
            .filter(in_time)
            .map(|kept| &kept.key)
            .filter(named)
    }
}
