//! Who acts, when several operators run: the one that holds the Lease, and only as long as it surely does.
//!
//! By hand: kube has no election, and the crates that add one compare the clocks of different machines
//! (kube-leader-election, kube-lease-manager); here a holder stops by its own clock before another begins by its own.

use super::patch::Writer;
use crate::error::{Error, chain};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta};
use std::time::Duration;
use tokio::time::Instant;

/// How the holder proves that it is alive, and when others may take over.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// A lease that was not renewed for so long may be taken.
    pub duration: Duration,
    /// A holder that could not renew for so long stops acting: well before another may begin.
    pub deadline: Duration,
    pub every: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            deadline: Duration::from_secs(10),
            every: Duration::from_secs(2),
        }
    }
}

const WRITER: Writer = Writer("muster-leader-election");

pub struct Election {
    api: Api<Lease>,
    name: &'static str,
    me: String,
    terms: Terms,
}

/// The lease of another, as it was observed last and since when it looks like that. Clocks of others are not trusted.
struct Observed {
    version: Option<String>,
    since: Instant,
}

impl Election {
    pub fn new(kube: kube::Client, namespace: &str, name: &'static str, me: &str, terms: Terms) -> Self {
        Self {
            api: Api::namespaced(kube, namespace),
            name,
            me: me.to_owned(),
            terms,
        }
    }

    /// Waits until this operator holds the lease.
    pub async fn win(&self) {
        let mut observed: Option<Observed> = None;
        let mut has_warned = false;
        loop {
            match self.attempt(&mut observed).await {
                Ok(true) => {
                    tracing::info!(lease = self.name, holder = %self.me, "this operator leads");
                    return;
                }
                Ok(false) => {}
                Err(kube::Error::Api(status)) if status.code == 403 && !has_warned => {
                    has_warned = true;
                    tracing::warn!(
                        lease = self.name,
                        error = %status.message,
                        "this operator may not take its lease and does nothing; give its account the rights of \
                         deploy/manifests/role.yaml in the namespace of the lease (--lease-namespace)"
                    );
                }
                Err(error) => {
                    tracing::debug!(lease = self.name, error = %chain(&error), "the API server did not answer \
                        about the lease")
                }
            }
            tokio::time::sleep(self.terms.every).await;
        }
    }

    /// Renews the lease; returns when it is lost or may be.
    pub async fn keep(&self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.terms.every).await;
            let left = self.terms.deadline.saturating_sub(renewed.elapsed());
            let began = Instant::now();
            match tokio::time::timeout(left, self.renew()).await {
                Ok(Ok(true)) => renewed = began,
                Ok(Ok(false)) => break,
                Ok(Err(error)) => {
                    tracing::debug!(lease = self.name, error = %chain(&error), "cannot renew the lease");
                }
                Err(_) => break,
            }
            if renewed.elapsed() >= self.terms.deadline {
                break;
            }
        }
        tracing::warn!(lease = self.name, "this operator lost its lease and stops acting");
    }

    /// Lets another take over at once.
    pub async fn release(&self) {
        let released = async {
            let Some(mut lease) = self.api.get_opt(self.name).await? else {
                return Ok(());
            };
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() != Some(&self.me) {
                return Ok(());
            }
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
            self.api
                .replace(self.name, &WRITER.post(), &lease)
                .await
                .map(drop)
        };
        if let Err(error) = released.await {
            tracing::debug!(lease = self.name, error = %chain(&error), "cannot release the lease; it will expire");
        }
    }

    async fn attempt(&self, observed: &mut Option<Observed>) -> Result<bool, kube::Error> {
        let Some(lease) = self.api.get_opt(self.name).await? else {
            return taken(self.api.create(&WRITER.post(), &self.first()).await);
        };
        let version = lease.metadata.resource_version.clone();
        if observed
            .as_ref()
            .is_none_or(|observed| observed.version != version)
        {
            *observed = Some(Observed {
                version,
                since: Instant::now(),
            });
        }
        let spec = lease.spec.as_ref();
        let holder = spec
            .and_then(|spec| spec.holder_identity.as_deref())
            .unwrap_or_default();
        let seconds = spec
            .and_then(|spec| spec.lease_duration_seconds)
            .unwrap_or_default();
        let limit = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let is_stale = observed
            .as_ref()
            .is_some_and(|observed| observed.since.elapsed() > limit);
        if holder.is_empty() || holder == self.me || is_stale {
            return taken(self.replace(lease).await);
        }
        Ok(false)
    }

    async fn renew(&self) -> Result<bool, kube::Error> {
        let Some(lease) = self.api.get_opt(self.name).await? else {
            return Ok(false);
        };
        let holder = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_deref());
        if holder != Some(&self.me) {
            return Ok(false);
        }
        self.replace(lease).await.map(|_| true)
    }

    async fn replace(&self, mut lease: Lease) -> Result<Lease, kube::Error> {
        let before = lease.spec.take().unwrap_or_default();
        let mine = before.holder_identity.as_deref() == Some(&self.me);
        let terms = self.spec();
        lease.spec = Some(LeaseSpec {
            acquire_time: if mine {
                before.acquire_time
            } else {
                terms.acquire_time
            },
            lease_transitions: Some(before.lease_transitions.unwrap_or_default() + i32::from(!mine)),
            holder_identity: terms.holder_identity,
            lease_duration_seconds: terms.lease_duration_seconds,
            renew_time: terms.renew_time,
            ..before
        });
        self.api.replace(self.name, &WRITER.post(), &lease).await
    }

    fn first(&self) -> Lease {
        Lease {
            metadata: ObjectMeta {
                name: Some(self.name.into()),
                ..ObjectMeta::default()
            },
            spec: Some(self.spec()),
        }
    }

    fn spec(&self) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        LeaseSpec {
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: i32::try_from(self.terms.duration.as_secs()).ok(),
            acquire_time: now.clone(),
            renew_time: now,
            ..LeaseSpec::default()
        }
    }
}

/// A lost race is no failure.
fn taken(answer: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match answer.map_err(|error| {
        (
            matches!(&error, kube::Error::Api(status) if status.code == 409),
            error,
        )
    }) {
        Ok(_) => Ok(true),
        Err((true, _)) => Ok(false),
        Err((false, error)) => Err(error),
    }
}

/// Where leases of this operator are.
pub fn namespace(kube: &kube::Client, chosen: Option<&str>) -> Result<String, Error> {
    Ok(chosen.unwrap_or_else(|| kube.default_namespace()).to_owned())
}
