//! An agent registers its machine: for the first time, or again.

use crate::Hub;
use crate::change::{Decision, OpContext, Scope};
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, OneHost, Stored};
use jiff::Timestamp;
use muster_domain::cluster::joining;
use muster_domain::host::{Event, Host, rules};
use muster_domain::infra_env::{ImageType, InfraEnv};
use muster_domain::refusal::{Class, Refused};
use muster_domain::{HostKey, InfraEnvId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub async fn host_register(
    hub: &Hub,
    key: HostKey,
    agent: &str,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    hub.readable_host(key)?;
    let done = hub
        .change(&Registration(key), opctx, |found| decide(found, agent))
        .await?;
    let host = done.row();
    if let Found::Known(known) = done.snapshot {
        if let Some(slot) = hub.index.slot(key) {
            slot.live.outstanding.forget();
        }
        return Ok(host.unwrap_or_else(|| Arc::new(known.host)));
    }
    host.ok_or_else(|| Error::missing("host", key.host))
}

/// The host that registers, with its reports if it keeps them; or the place that a new one has.
struct Registration(HostKey);

enum Found {
    Known(Box<HostSnapshot>),
    New(Box<HostSnapshot>),
    /// There is no such InfraEnv.
    Nowhere(InfraEnvId),
}

impl Scope for Registration {
    type Snapshot = Found;

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<Found, Error> {
        let key = self.0;
        if fresh {
            hub.reload(key.into()).await?;
        }
        if fresh && hub.shares_database() {
            hub.reload(key.infra_env.into()).await?;
        }
        hub.readable_infra_env(key.infra_env)?;
        let Some(pool) = hub.index.infra_env(key.infra_env) else {
            return Ok(Found::Nowhere(key.infra_env));
        };
        if hub.index.slot(key).is_some() {
            match OneHost::new(key, Need::Row).read(hub, now, false).await {
                // Deleted in this very moment: then this is the first time.
                Err(Error::Missing { .. }) => {}
                Err(error) => return Err(error),
                Ok(mut known) => {
                    // Asked of the row that is decided over: it may have changed a moment ago.
                    if rules::keeps_reports_on_register(&known.host) {
                        known.stored = hub.store.host_reports(key).await?;
                    }
                    return Ok(Found::Known(Box::new(known)));
                }
            }
        }
        if let Some(cluster) = pool.cluster.filter(|_| fresh && hub.shares_database()) {
            hub.reload(cluster.into()).await?;
        }
        pool.cluster.map_or(Ok(()), |id| hub.readable_cluster(id))?;
        Ok(Found::New(Box::new(HostSnapshot {
            hub: hub.clone(),
            host: Host::of_image(key.host, &pool, now),
            stored: Stored::new(),
            cluster: pool.cluster.and_then(|id| hub.index.cluster(id)),
            infra_env: Some(pool),
            now,
        })))
    }
}

fn decide(found: &Found, agent: &str) -> Result<Decision, Error> {
    let (snapshot, is_known) = match found {
        Found::Known(snapshot) => (snapshot, true),
        Found::New(snapshot) => (snapshot, false),
        Found::Nowhere(id) => return Err(no_infra_env(*id).into()),
    };
    let pool = snapshot
        .infra_env
        .as_ref()
        .ok_or_else(|| no_infra_env(snapshot.host.infra_env))?;
    takes_registrations(pool)?;
    if is_known {
        return Ok(again(snapshot, pool, agent)?.decision_over(&snapshot.host));
    }
    has_room(&snapshot.hub, pool)?;
    let mut written = Decision::because("a machine registered for the first time");
    written.put_host(first_time(snapshot, pool, agent)?);
    Ok(written)
}

/// The InfraEnv of an agent. One that is not there may come back with a restore, so its agents are kept asking.
pub fn pool_of(hub: &Hub, key: HostKey) -> Result<Arc<InfraEnv>, Error> {
    hub.readable_infra_env(key.infra_env)?;
    let pool = hub.index.infra_env(key.infra_env);
    pool.ok_or_else(|| no_infra_env(key.infra_env).into())
}

fn no_infra_env(id: InfraEnvId) -> Refused {
    Refused::new(
        Class::Invalid,
        "no-such-infra-env",
        format!("There is no InfraEnv {id}."),
        "Restore it, or boot the machine from an image of another InfraEnv.",
    )
}

fn takes_registrations(pool: &InfraEnv) -> Result<(), Error> {
    if pool.image_type == ImageType::DisconnectedIso {
        return Err(Refused::new(
            Class::Invalid,
            "image-works-alone",
            format!(
                "Hosts booted from the disconnected image of {} do not register.",
                pool.name
            ),
            "Boot a full or minimal image to use the host here.",
        )
        .into());
    }
    Ok(())
}

/// Hosts that are known may always come back; some that arrive in the same moment may be more than the limit says. The
/// agent keeps asking: it is let in when there is room.
fn has_room(hub: &Hub, pool: &InfraEnv) -> Result<(), Refused> {
    let most = hub.settings.most_hosts;
    let (code, reason, flag) = if hub.index.count_of_infra_env(pool.id) >= most.in_infra_env {
        let reason = format!(
            "InfraEnv {} has {} hosts, which is its limit.",
            pool.name, most.in_infra_env
        );
        ("infra-env-is-full", reason, "--max-hosts-per-infra-env")
    } else if hub.index.counts().0 >= most.in_hub {
        let reason = format!("This hub has {} hosts, which is its limit.", most.in_hub);
        ("hub-is-full", reason, "--max-hosts")
    } else {
        return Ok(());
    };
    // Whoever fills a hub with hosts must not fill its log, too.
    let minute = hub.now().as_second() / 60;
    if hub.told_full.swap(minute, Ordering::Relaxed) != minute {
        tracing::warn!(infra_env = %pool.id, "the hub refuses to register hosts: {reason}");
    }
    let next = format!("Delete hosts that are gone, or start the hub with a larger {flag}.");
    Err(Refused::new(Class::Unavailable, code, reason, next))
}

fn again(snapshot: &HostSnapshot, pool: &InfraEnv, agent: &str) -> Result<HostChange, Error> {
    let event = Event::Registered {
        agent_version: agent.into(),
    };
    let mut decision = snapshot.next(&event)?;
    // An agent that only started again still runs the image that its machine booted.
    if rules::has_booted(&snapshot.host) {
        decision.host.booted_version.clone_from(&pool.openshift_version);
    }
    snapshot.measured(decision, Stored::new())
}

fn first_time(snapshot: &HostSnapshot, pool: &InfraEnv, agent: &str) -> Result<HostChange, Error> {
    if pool.cluster.is_some() {
        joining::takes_new(snapshot.cluster.as_deref(), pool)?;
    }
    let decision = snapshot.next(&Event::Arrived {
        agent_version: agent.into(),
    })?;
    snapshot.measured(decision, Stored::new())
}
