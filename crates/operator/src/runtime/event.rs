//! Kubernetes Events: what people must see beside an object.

use crate::crd::rest_names::in_kubernetes;
use kube::runtime::events::{self, EventType, Reporter};
use kube::{Resource, ResourceExt};

/// Something worth telling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    pub warning: bool,
    /// One word, such as the reason of a condition.
    pub reason: String,
    pub note: String,
}

pub struct Recorder(events::Recorder);

/// Longer notes are refused.
const LONGEST_NOTE: usize = 1024;

impl Recorder {
    pub fn new(kube: kube::Client, instance: &str) -> Self {
        let reporter = Reporter {
            controller: "muster-operator".into(),
            instance: Some(instance.into()),
        };
        Self(events::Recorder::new(kube, reporter))
    }

    /// Telling is a courtesy: a failure is logged and changes nothing.
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
        if let Err(error) = self.0.publish(&event, &object.object_ref(&())).await {
            tracing::debug!(name = %object.name_any(), %error, "an event was not recorded");
        }
    }
}
