//! Remembers replies: the same good reply is not sent again within the hour.

use muster_contract::v2::step::StepType;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// As long as the reference keeps quiet about what did not change.
const KEPT: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
pub struct ReplyCache(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    by_step: HashMap<StepType, (String, Duration)>,
    /// Counts how often everything was forgotten.
    age: u64,
}

impl ReplyCache {
    pub fn is_known(&self, step: StepType, output: &str, now: Duration) -> bool {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.by_step
            .get(&step)
            .is_some_and(|(text, at)| text == output && now < *at + KEPT)
    }

    /// To be asked for before a reply is sent.
    pub fn age(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).age
    }

    /// A reply that was on its way while everything was forgotten is not remembered.
    pub fn keep(&self, step: StepType, output: &str, now: Duration, age: u64) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.age == age {
            told.by_step.insert(step, (output.to_owned(), now));
        }
    }

    pub fn forget(&self) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.by_step.clear();
        told.age += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_for_an_hour_unless_it_changes() {
        let cache = ReplyCache::default();
        let at = Duration::from_secs(1_000);
        assert!(!cache.is_known(StepType::Inventory, "a", at));
        cache.keep(StepType::Inventory, "a", at, cache.age());
        assert!(cache.is_known(StepType::Inventory, "a", at + Duration::from_secs(3599)));
        assert!(!cache.is_known(StepType::Inventory, "a", at + Duration::from_secs(3600)));
        assert!(!cache.is_known(StepType::Inventory, "b", at));
        assert!(!cache.is_known(StepType::NtpSynchronizer, "a", at));
        let age = cache.age();
        cache.forget();
        cache.keep(StepType::Inventory, "a", at, age);
        assert!(!cache.is_known(StepType::Inventory, "a", at));
    }
}
