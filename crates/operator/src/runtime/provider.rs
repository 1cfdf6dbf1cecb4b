//! Whether somebody else provides the machines of a namespace. HyperShift starts a provider of its own beside each
//! hosted cluster; two providers of one machine would undo each other's words for ever.

use super::Context;
use crate::crd::keys::lease;
use crate::error::Error;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[derive(Debug, Default)]
pub struct Providers {
    /// Where this operator's own lease is; absent: it has none.
    own: Option<String>,
    /// What was found, and when.
    known: Mutex<HashMap<String, (Instant, bool)>>,
}

/// Holders renew several times in this time; their clocks may go wrong by some of it.
const DURATIONS: i32 = 4;

impl Providers {
    pub fn new(own: Option<String>) -> Self {
        Self {
            own,
            known: Mutex::default(),
        }
    }
}

impl Context {
    /// Another provider holds its lease there. Asked anew once per retry.
    pub async fn is_provided_elsewhere(&self, namespace: &str) -> Result<bool, Error> {
        if self.providers.own.as_deref() == Some(namespace) {
            return Ok(false);
        }
        let known = || {
            self.providers
                .known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let before = known().get(namespace).copied();
        if let Some((_, elsewhere)) = before.filter(|(at, _)| at.elapsed() < self.retry) {
            return Ok(elsewhere);
        }
        let leases: Api<Lease> = Api::namespaced(self.kube.clone(), namespace);
        let found = match leases.get_opt(lease::CAPI_PROVIDER).await {
            // Whoever gives us no right to see it has no other provider in mind.
            Err(kube::Error::Api(status)) if status.code == 403 => None,
            found => found?,
        };
        let elsewhere = found
            .and_then(|lease| lease.spec)
            .is_some_and(|spec| is_held(&spec, Timestamp::now()));
        known().insert(namespace.to_owned(), (Instant::now(), elsewhere));
        Ok(elsewhere)
    }
}

fn is_held(lease: &LeaseSpec, now: Timestamp) -> bool {
    let held = lease
        .holder_identity
        .as_ref()
        .is_some_and(|holder| !holder.is_empty());
    let lasts = lease.lease_duration_seconds.unwrap_or_default() * DURATIONS;
    let renewed = lease.renew_time.as_ref().map(|time| time.0);
    held && renewed.is_some_and(|at| now.duration_since(at) < SignedDuration::from_secs(lasts.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    fn lease(holder: &str, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_that_is_renewed_is_held() {
        let now = Timestamp::from_second(1000).unwrap();
        assert!(is_held(&lease("capi-provider-1", 990), now));
        assert!(
            is_held(&lease("capi-provider-1", 1003), now),
            "its clock is ahead"
        );
        assert!(!is_held(&lease("capi-provider-1", 900), now), "it is gone");
        assert!(!is_held(&lease("", 990), now), "it was given back");
        assert!(!is_held(&LeaseSpec::default(), now));
    }
}
