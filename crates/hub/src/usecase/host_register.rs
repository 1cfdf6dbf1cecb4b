//! An agent registers its machine: for the first time, or again.

use crate::Hub;
use crate::error::Error;
use crate::turn::{ATTEMPTS, Ask, Need, Scene, Stored, Turn};
use muster_domain::cluster::Cluster;
use muster_domain::host::{Decision, Event, Host, Kind, Role, rules, words};
use muster_domain::infra_env::{ImageType, InfraEnv};
use muster_domain::refusal::{Class, Refused};
use muster_domain::{HostKey, Severity};
use muster_store::Commit;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub async fn host_register(hub: &Hub, key: HostKey, agent: &str, ask: &Ask) -> Result<Arc<Host>, Error> {
    let mut last = None;
    hub.readable_host(key)?;
    for _ in 0..ATTEMPTS {
        let pool = pool_of(hub, key)?;
        takes_registrations(&pool)?;
        let tried = match hub.index.slot(key) {
            Some(_) => again(hub, key, &pool, agent, ask).await,
            None => match has_room(hub, &pool) {
                Ok(()) => first_time(hub, key, &pool, agent, ask).await,
                Err(refused) => Err(refused.into()),
            },
        };
        match tried {
            // Somebody registered the same machine in this very moment, or its cluster changed.
            Err(error) if error.is_stale() => {
                hub.relearn(&error).await?;
                hub.learn_host(key).await?;
                last = Some(error);
            }
            // Deleted in this very moment: then this is the first time.
            Err(error @ Error::Missing { .. }) => last = Some(error),
            done => return done,
        }
    }
    Err(last.unwrap_or_else(|| Error::missing("host", key.host)))
}

/// The InfraEnv of an agent. One that is not there may come back with a restore, so its agents are kept asking.
pub fn pool_of(hub: &Hub, key: HostKey) -> Result<Arc<InfraEnv>, Error> {
    hub.readable_infra_env(key.infra_env)?;
    hub.index.infra_env(key.infra_env).ok_or_else(|| {
        Refused::new(
            Class::Invalid,
            "no-such-infra-env",
            format!("There is no InfraEnv {}.", key.infra_env),
            "Restore it, or boot the machine from an image of another InfraEnv.",
        )
        .into()
    })
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
            "InfraEnv {} has {} hosts, as many as it may have.",
            pool.name, most.in_infra_env
        );
        ("infra-env-is-full", reason, "--max-hosts-per-infra-env")
    } else if hub.index.counts().0 >= most.in_hub {
        let reason = format!("This hub has {} hosts, as many as it may have.", most.in_hub);
        ("hub-is-full", reason, "--max-hosts")
    } else {
        return Ok(());
    };
    // Whoever fills a hub with hosts must not fill its log, too.
    let minute = hub.now().as_second() / 60;
    if hub.told_full.swap(minute, Ordering::Relaxed) != minute {
        tracing::warn!(infra_env = %pool.id, "hosts are not registered: {reason}");
    }
    let next = format!("Delete hosts that are gone, or start the hub with a larger {flag}.");
    Err(Refused::new(Class::Unavailable, code, reason, next))
}

async fn again(hub: &Hub, key: HostKey, pool: &InfraEnv, agent: &str, ask: &Ask) -> Result<Arc<Host>, Error> {
    let event = Event::Registered {
        agent_version: agent.into(),
    };
    let keeps_reports = hub
        .index
        .slot(key)
        .is_some_and(|slot| rules::keeps_reports_on_register(&slot.row()));
    let need = if keeps_reports { Need::Reports } else { Need::Row };
    let host = hub
        .host_turn(key, need, ask, |scene| {
            let mut decision = scene.next(&event)?;
            // An agent that only started again still runs the image that its machine booted.
            if rules::has_booted(&scene.host) {
                decision.host.booted_version.clone_from(&pool.openshift_version);
            }
            scene.measured(decision, Stored::new())
        })
        .await?;
    if let Some(slot) = hub.index.slot(key) {
        slot.live.outstanding.forget();
    }
    Ok(host)
}

async fn first_time(
    hub: &Hub,
    key: HostKey,
    pool: &InfraEnv,
    agent: &str,
    ask: &Ask,
) -> Result<Arc<Host>, Error> {
    let now = hub.now();
    let cluster = early_cluster(hub, pool)?;
    let mut host = Host::arriving(key, pool.cluster, now);
    host.agent_version = agent.into();
    host.booted_version.clone_from(&pool.openshift_version);
    host.user.clone_from(&pool.user);
    host.org.clone_from(&pool.org);
    host.status_info = words::of(&host).into();
    if let Some(cluster) = &cluster {
        join(&mut host, cluster);
    }
    let name = host.name();
    let entry = host.entry(
        "host_registration_succeeded",
        Severity::Info,
        format!("Host {name} registered."),
    );
    let scene = Scene {
        hub,
        host: host.clone(),
        stored: Stored::new(),
        cluster,
        infra_env: None,
        now,
    };
    let decision = Decision {
        host,
        journal: vec![entry],
        effects: Vec::new(),
        forget: Vec::new(),
        why: "registered for the first time",
    };
    let Turn { decision, reports } = scene.measured(decision, Stored::new())?;
    let commit = Commit {
        request_id: ask.request_id,
        hosts: vec![Hub::host_write(&decision.host, reports)],
        journal: decision.journal,
        ..Commit::new(now)
    };
    let written = hub.commit(commit, vec![decision.host]).await?;
    let host = written
        .into_iter()
        .next()
        .ok_or_else(|| Error::missing("host", key.host))?;
    host.cluster.inspect(|cluster| hub.mark_dirty(*cluster));
    Ok(host)
}

/// The cluster of an InfraEnv that binds its hosts as they register.
fn early_cluster(hub: &Hub, pool: &InfraEnv) -> Result<Option<Arc<Cluster>>, Error> {
    let Some(id) = pool.cluster else { return Ok(None) };
    hub.readable_cluster(id)?;
    // The agent must keep asking: the cluster may be restored, reset, or the host be given another image.
    let cluster = hub.index.cluster(id).ok_or_else(|| {
        Refused::new(
            Class::Unavailable,
            "cluster-is-gone",
            format!("The cluster of InfraEnv {} does not exist any more.", pool.name),
            "Give the InfraEnv another cluster, or boot the host from an image of another InfraEnv.",
        )
    })?;
    if !cluster.accepts_hosts() {
        return Err(Refused::new(
            Class::Unavailable,
            "cluster-takes-no-hosts",
            format!("Cluster {} takes no more hosts now.", cluster.name),
            "Wait for its installation to end, or reset it.",
        )
        .into());
    }
    Ok(Some(cluster))
}

fn join(host: &mut Host, cluster: &Cluster) {
    if cluster.adds_hosts() {
        host.kind = Kind::AddToExistingClusterHost;
        host.role = Role::Worker;
        host.suggested_role = Some(Role::Worker);
        host.tenant.machine_config_pool = Role::Worker.word().into();
    } else if cluster.single_node() {
        host.role = Role::Master;
        host.suggested_role = Some(Role::Master);
        host.bootstrap = true;
    }
}
