//! What the hub was sent last of things it does not show: secrets. Kept in memory as hashes with a key of this process.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

#[derive(Debug, Default)]
pub struct SentValues {
    hasher: RandomState,
    hashes: Mutex<HashMap<(Uuid, &'static str), u64>>,
}

impl SentValues {
    /// The hub has this value; false also when nobody remembers, and it is sent once more.
    pub fn knows(&self, id: Uuid, what: &'static str, value: &str) -> bool {
        let hash = self.hasher.hash_one(value);
        self.hashes().get(&(id, what)) == Some(&hash)
    }

    pub fn remember(&self, id: Uuid, what: &'static str, value: &str) {
        let hash = self.hasher.hash_one(value);
        self.hashes().insert((id, what), hash);
    }

    /// It may be otherwise by now.
    pub fn forget_one(&self, id: Uuid, what: &'static str) {
        self.hashes().remove(&(id, what));
    }

    pub fn forget(&self, id: Uuid) {
        self.hashes().retain(|(of, _), _| *of != id);
    }

    /// It may be another hub by now, or one with older records.
    pub fn forget_all(&self) {
        self.hashes().clear();
    }

    fn hashes(&self) -> std::sync::MutexGuard<'_, HashMap<(Uuid, &'static str), u64>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_value_sent_last_is_known() {
        let (sent, id) = (SentValues::default(), Uuid::nil());
        assert!(!sent.knows(id, "pull-secret", "a"));
        sent.remember(id, "pull-secret", "a");
        assert!(sent.knows(id, "pull-secret", "a"));
        assert!(!sent.knows(id, "pull-secret", "b"));
        sent.forget(id);
        assert!(!sent.knows(id, "pull-secret", "a"));
        sent.remember(id, "pull-secret", "a");
        sent.forget_one(id, "manifests");
        assert!(sent.knows(id, "pull-secret", "a"));
        sent.forget_one(id, "pull-secret");
        assert!(!sent.knows(id, "pull-secret", "a"));
        sent.remember(id, "pull-secret", "a");
        sent.forget_all();
        assert!(!sent.knows(id, "pull-secret", "a"));
    }
}
