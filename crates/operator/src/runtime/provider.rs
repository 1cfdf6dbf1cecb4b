//! Whether somebody else provides the machines of a namespace. HyperShift starts a provider of its own beside each
//! hosted cluster; two providers of one machine would undo each other's words for ever.

use super::Context;
use crate::crd::keys::lease;
use crate::error::Error;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[derive(Debug, Default)]
pub struct Providers {
    /// Where this operator's own lease is; absent: it has none.
    own: Option<String>,
    /// Where this operator takes Agents from; empty: from all namespaces that it watches.
    agent_namespaces: Vec<String>,
    /// What was found, and when.
    known: Mutex<HashMap<String, (Instant, bool)>>,
}

impl Providers {
    pub fn new(own: Option<String>) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }

    /// Machines take Agents from these namespaces only.
    pub fn limited_to(mut self, agent_namespaces: &[String]) -> Self {
        self.agent_namespaces = agent_namespaces.to_vec();
        // Whoever is named twice is asked once.
        self.agent_namespaces.sort();
        self.agent_namespaces.dedup();
        self
    }

    pub fn agent_namespaces(&self) -> &[String] {
        &self.agent_namespaces
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, (Instant, bool)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Context {
    /// Another provider has its lease there. Asked anew once per retry.
    pub async fn is_provided_elsewhere(&self, namespace: &str) -> Result<bool, Error> {
        let before = self.providers.known().get(namespace).copied();
        match before.filter(|(at, _)| at.elapsed() < self.retry) {
            Some((_, elsewhere)) => Ok(elsewhere),
            None => self.ask_whether_elsewhere(namespace).await,
        }
    }

    /// Before something that cannot be taken back: the other provider may have come a moment ago. Another read shows
    /// that it has.
    pub async fn make_sure_not_elsewhere(&self, namespace: &str) -> Result<(), Error> {
        match self.ask_whether_elsewhere(namespace).await? {
            true => Err(Error::Conflict),
            false => Ok(()),
        }
    }

    /// A lease that nobody renews counts, too: its holder may restart, or switched off for a backup. Only when it is
    /// deleted the machines are anybody's.
    async fn ask_whether_elsewhere(&self, namespace: &str) -> Result<bool, Error> {
        if self.providers.own.as_deref() == Some(namespace) {
            return Ok(false);
        }
        let leases: Api<Lease> = Api::namespaced(self.kube.clone(), namespace);
        let found = match leases.get_metadata_opt(lease::CAPI_PROVIDER).await {
            // Whoever gives us no right to see it has no other provider in mind.
            Err(kube::Error::Api(status)) if status.code == 403 => None,
            found => found?,
        };
        let elsewhere = found.is_some();
        let before = self
            .providers
            .known()
            .insert(namespace.to_owned(), (Instant::now(), elsewhere));
        if before.is_some_and(|(_, before)| before) != elsewhere {
            tracing::info!(
                namespace,
                lease = lease::CAPI_PROVIDER,
                elsewhere,
                "another provider has a lease in this namespace; the operator leaves its machines alone while that \
                 exists"
            );
        }
        Ok(elsewhere)
    }
}
