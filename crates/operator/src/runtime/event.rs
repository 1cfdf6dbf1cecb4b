//! Kubernetes Events: what people must see beside an object.

use crate::crd::rest_names::in_kubernetes;
use kube::runtime::events::{self, EventType, Reporter};
use kube::{Resource, ResourceExt};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What an Event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub warning: bool,
    /// One word, such as the reason of a condition.
    pub reason: String,
    pub note: String,
}

pub struct Recorder {
    events: events::Recorder,
    allowance: Mutex<Allowance>,
}

/// Longer notes are refused.
const LONGEST_NOTE: usize = 1024;

impl Recorder {
    pub fn new(kube: kube::Client, instance: &str) -> Self {
        let reporter = Reporter {
            controller: "muster-operator".into(),
            instance: Some(instance.into()),
        };
        Self {
            events: events::Recorder::new(kube, reporter),
            allowance: Mutex::new(Allowance::full(Instant::now())),
        }
    }

    /// For what happens to thousands at once: a flood of Events says no more than its beginning does, and costs the
    /// API server as much as the objects.
    pub async fn tell_unless_many<K: Resource<DynamicType = ()>>(&self, object: &K, news: &News) {
        let is_granted = {
            let mut allowance = self.allowance.lock().unwrap_or_else(PoisonError::into_inner);
            allowance.take(Instant::now())
        };
        if is_granted {
            self.tell(object, news).await;
        }
    }

    /// An event is a courtesy: a failure is logged and changes nothing.
    pub async fn tell<K: Resource<DynamicType = ()>>(&self, object: &K, news: &News) {
        let event = events::Event {
            type_: if news.warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: news.reason.clone(),
            note: Some(in_kubernetes(&news.note).chars().take(LONGEST_NOTE).collect()),
            action: "Reconcile".into(),
            secondary: None,
        };
        if let Err(error) = self.events.publish(&event, &object.object_ref(&())).await {
            tracing::debug!(name = %object.name_any(), %error, "cannot record an event");
        }
    }
}

/// How many more may be recorded.
struct Allowance {
    left: f64,
    at: Instant,
}

/// So many at once,
const MOST: f64 = 50.0;
/// and so many more in a second.
const PER_SECOND: f64 = 1.0;

impl Allowance {
    fn full(now: Instant) -> Self {
        Self { left: MOST, at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at);
        self.left = (self.left + PER_SECOND * since.as_secs_f64()).min(MOST);
        self.at = now;
        let is_granted = self.left >= 1.0;
        if is_granted {
            self.left -= 1.0;
        }
        is_granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn of_a_flood_the_beginning_is_recorded_and_then_one_a_second() {
        let begin = Instant::now();
        let mut allowance = Allowance::full(begin);
        let passed = (0..1000).filter(|_| allowance.take(begin)).count();
        assert_eq!(passed, 50);
        assert!(!allowance.take(begin + Duration::from_millis(500)));
        assert!(allowance.take(begin + Duration::from_millis(1100)));
        assert!(!allowance.take(begin + Duration::from_millis(1100)));
        let later = begin + Duration::from_secs(3600);
        assert_eq!((0..1000).filter(|_| allowance.take(later)).count(), 50);
    }
}
