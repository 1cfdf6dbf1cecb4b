//! Changes the settings of an InfraEnv; hosts that boot its image from then on get the new ones.

use crate::Hub;
use crate::change::{Decision, OpContext, Scope};
use crate::error::Error;
use crate::host_change::{HostSnapshot, Need, Stored};
use crate::infra_env_change::OneInfraEnv;
use crate::usecase::infra_env_create::{
    agrees, cluster_of, fits_the_image, image_news, image_type, kernel_text, keys, override_text, put_proxy,
    token_key,
};
use crate::usecase::infra_env_edition::edition_name;
use crate::usecase::infra_env_network::network_text;
use futures_util::stream::{self, StreamExt};
use jiff::Timestamp;
use muster_contract::v1::infra_env::{ChangeInfraEnv, InfraEnvSetting};
use muster_contract::v2::infra_env::UpdateInfraEnv;
use muster_domain::infra_env::InfraEnv;
use muster_domain::input::{pull_secret, trust_bundle};
use muster_domain::{ClusterId, HostKey, InfraEnvId};
use std::sync::Arc;

/// Hosts judged at a time: they share a wait for the disk.
const TOGETHER: usize = 64;

pub async fn infra_env_update(
    hub: &Hub,
    id: InfraEnvId,
    wish: &UpdateInfraEnv,
    opctx: &OpContext,
) -> Result<Arc<InfraEnv>, Error> {
    let had_time_sources = hub.index.infra_env(id).map(|pool| pool.has_time_sources());
    let wish = wish.clone();
    let changed = change(hub, id, opctx, move |hub, infra_env| {
        apply(hub, infra_env, &wish)?;
        agrees(infra_env)?;
        fits_the_image(hub, infra_env)
    })
    .await?;
    if had_time_sources != Some(changed.has_time_sources()) {
        judge_free_hosts(hub, id);
    }
    Ok(changed)
}

/// Nobody else would judge them anew before they report something. There may be thousands: no answer waits for that.
fn judge_free_hosts(hub: &Hub, id: InfraEnvId) {
    let hub = hub.clone();
    tokio::spawn(async move {
        let hosts = stream::iter(hub.index.hosts_of_infra_env(id));
        hosts
            .for_each_concurrent(TOGETHER, |key| judge_free(&hub, key))
            .await;
    });
}

async fn judge_free(hub: &Hub, key: HostKey) {
    if hub.index.slot(key).is_none_or(|slot| !slot.row().is_free()) {
        return;
    }
    let measured = |snapshot: &HostSnapshot| snapshot.measured(snapshot.unchanged(), Stored::new());
    match hub
        .change_host(key, Need::Reports, &OpContext::hub(), measured)
        .await
    {
        Ok(_) | Err(Error::Missing { .. }) => {}
        Err(error) => tracing::warn!(host = %key, %error, "a free host is shown as it was judged before"),
    }
}

/// Changes what an update cannot change.
pub async fn infra_env_change(
    hub: &Hub,
    id: InfraEnvId,
    wish: &ChangeInfraEnv,
    opctx: &OpContext,
) -> Result<Arc<InfraEnv>, Error> {
    let wanted = wish.cluster_id.map(ClusterId);
    let now = hub.index.infra_env(id).and_then(|infra_env| infra_env.cluster);
    for cluster in [wanted, now].into_iter().flatten().filter(|_| wanted.is_some()) {
        hub.load_if_missing(cluster).await?;
    }
    let clear = wish.clear.clone();
    change(hub, id, opctx, move |hub, infra_env| {
        for setting in &clear {
            match setting {
                InfraEnvSetting::SshAuthorizedKey => infra_env.ssh_authorized_key.clear(),
            }
        }
        wanted.map_or(Ok(()), |cluster| join(hub, infra_env, cluster))
    })
    .await
}

fn join(hub: &Hub, infra_env: &mut InfraEnv, wanted: ClusterId) -> Result<(), Error> {
    // One that is set aside is there, too.
    let is_there = |id| hub.index.cluster(id).is_some() || hub.readable_cluster(id).is_err();
    let next = infra_env.next_cluster(wanted, infra_env.cluster.is_some_and(is_there))?;
    infra_env.cluster = cluster_of(hub, Some(next), &infra_env.cpu_architecture)?;
    Ok(())
}

/// Links signed with the old key stop working.
pub async fn infra_env_new_key(hub: &Hub, id: InfraEnvId, opctx: &OpContext) -> Result<(), Error> {
    let key = token_key();
    change(hub, id, opctx, move |_, infra_env| {
        infra_env.image_token_key.clone_from(&key);
        Ok(())
    })
    .await?;
    Ok(())
}

/// An InfraEnv and what shall become of it, which is worked out on threads of their own: settings may be large.
struct Applied<F> {
    id: InfraEnvId,
    apply: Arc<F>,
}

impl<F> Scope for Applied<F>
where
    F: Fn(&Hub, &mut InfraEnv) -> Result<(), Error> + Send + Sync + 'static,
{
    type Snapshot = (Arc<InfraEnv>, Result<Option<InfraEnv>, Error>);

    async fn read(&self, hub: &Hub, now: Timestamp, fresh: bool) -> Result<Self::Snapshot, Error> {
        let (id, hosts) = (self.id, None);
        let snapshot = OneInfraEnv { id, hosts }.read(hub, now, fresh).await?;
        let (there, before, apply) = (hub.clone(), snapshot.infra_env.clone(), self.apply.clone());
        let changed = hub
            .image_threads
            .run(move || changed(&there, &before, &*apply))
            .await;
        Ok((snapshot.infra_env, changed))
    }
}

/// Changes the settings of an InfraEnv.
async fn change(
    hub: &Hub,
    id: InfraEnvId,
    opctx: &OpContext,
    apply: impl Fn(&Hub, &mut InfraEnv) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<Arc<InfraEnv>, Error> {
    let apply = Arc::new(apply);
    let scope = Applied { id, apply };
    let done = hub.change(&scope, opctx, |(_, next)| {
        let mut written = Decision::because("its settings were changed");
        if let Some(next) = next.clone()? {
            written.journal.push(image_news(&next));
            written.put(next);
        }
        Ok(written)
    });
    let done = done.await?;
    Ok(done.row().unwrap_or(done.snapshot.0))
}

/// `None` if it stays as it is.
fn changed(
    hub: &Hub,
    before: &InfraEnv,
    apply: &impl Fn(&Hub, &mut InfraEnv) -> Result<(), Error>,
) -> Result<Option<InfraEnv>, Error> {
    let mut next = before.clone();
    apply(hub, &mut next)?;
    if next == *before {
        return Ok(None);
    }
    next.updated_at = hub.now();
    let (from, to) = (edition_name(hub, before), edition_name(hub, &next));
    next.edition = before.next_edition(&from, &to, next.updated_at);
    Ok(Some(next))
}

fn apply(hub: &Hub, infra_env: &mut InfraEnv, wish: &UpdateInfraEnv) -> Result<(), Error> {
    // Clients send these two empty when they do not want to change them.
    if let Some(secret) = wish.pull_secret.as_ref().filter(|secret| !secret.0.is_empty()) {
        pull_secret::pull_secret(&secret.0)?;
        infra_env.pull_secret.clone_from(&secret.0);
    }
    if let Some(text) = wish.ssh_authorized_key.as_deref().filter(|text| !text.is_empty()) {
        infra_env.ssh_authorized_key = keys(text)?;
    }
    if let Some(version) = wish
        .openshift_version
        .as_deref()
        .filter(|version| !version.is_empty())
    {
        let os_image = hub
            .settings
            .catalog
            .os_image(Some(version), &infra_env.cpu_architecture)?;
        infra_env
            .openshift_version
            .clone_from(&os_image.openshift_version);
    }
    if let Some(word) = wish.image_type {
        infra_env.image_type = image_type(word);
    }
    if let Some(proxy) = &wish.proxy {
        put_proxy(&mut infra_env.proxy, proxy)?;
    }
    if let Some(text) = &wish.additional_ntp_sources {
        infra_env.additional_ntp_sources.clone_from(text);
    }
    if let Some(text) = &wish.ntp_sources {
        infra_env.ntp_sources.clone_from(text);
    }
    if wish.additional_ntp_sources.is_some() || wish.ntp_sources.is_some() {
        infra_env.fill_time_sources(&hub.settings.default_ntp);
    }
    if let Some(items) = &wish.static_network_config {
        infra_env.static_network_config = network_text(items)?;
    }
    if let Some(items) = &wish.kernel_arguments {
        infra_env.kernel_arguments = kernel_text(items)?;
    }
    if let Some(text) = &wish.ignition_config_override {
        infra_env.ignition_config_override = override_text(text)?;
    }
    if let Some(text) = &wish.additional_trust_bundle {
        infra_env.additional_trust_bundle = trust_bundle::trust_bundle(text)?;
    }
    if let Some(seconds) = wish.network_discovery_delay_seconds {
        infra_env.network_discovery_delay_seconds = Some(seconds);
    }
    if let Some(ip) = &wish.rendezvous_ip {
        infra_env.rendezvous_ip = Some(ip.clone()).filter(|ip| !ip.is_empty());
    }
    Ok(())
}
