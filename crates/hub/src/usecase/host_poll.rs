//! An agent asks for work: the busiest request of all, answered from memory unless something changed.

use crate::Hub;
use crate::carry;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{Need, Stored};
use crate::index::{Slot, skew};
use crate::steps;
use crate::usecase::host_register::pool_of;
use crate::usecase::host_report::upgrade_started;
use muster_contract::v2::step::StepsView;
use muster_domain::HostKey;
use muster_domain::host::{Event, Host};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub async fn host_poll(
    hub: &Hub,
    key: HostKey,
    clock: Option<i64>,
    agent_version: Option<&str>,
    opctx: &OpContext,
) -> Result<StepsView, Error> {
    hub.readable_host(key)?;
    let Some(slot) = hub.index.slot(key) else {
        return stranger(hub, key);
    };
    let now = hub.now();
    slot.live.saw(now, clock);
    let row = slot.row();
    // What it should do depends on its cluster.
    row.cluster.map_or(Ok(()), |id| hub.readable_cluster(id))?;
    let skew = skew(slot.live.clock(), now);
    // Before there is an inventory nothing hangs on the clock; the checks that come with one see it anyway.
    let was_skew = slot.live.skew.swap(skew, Ordering::Relaxed);
    let new_agent = agent_version.is_some_and(|version| !version.is_empty() && version != row.agent_version);
    let new_skew = row.gates.inventory && was_skew != skew;
    let agent_stays = steps::gives_up_upgrading(hub, &slot, &row);
    if row.connected && !row.connection_timed_out && !new_agent && !new_skew && !agent_stays {
        return with_history(hub, steps::of(hub, &slot, &row, now), &slot, opctx).await;
    }
    let (its_hub, its_opctx, version) = (hub.clone(), opctx.clone(), agent_version.map(str::to_owned));
    let its_slot = slot.clone();
    let row = carry::through(async move {
        let row = checked_in(&its_hub, key, version.as_deref(), agent_stays, &its_opctx).await;
        if row.is_err() {
            // Its checks did not run: the next poll finds the same reasons for them.
            its_slot.live.skew.store(was_skew, Ordering::Relaxed);
            if agent_stays {
                its_slot.live.may_give_up_upgrading();
            }
        }
        row
    })
    .await?;
    with_history(hub, steps::of(hub, &slot, &row, now), &slot, opctx).await
}

/// A deleted host's agent, or one that registered after the backup this hub was restored from, must register anew; "not
/// found" would freeze it for ever.
fn stranger(hub: &Hub, key: HostKey) -> Result<StepsView, Error> {
    if !hub.index.is_deleted(key) {
        pool_of(hub, key)?;
    }
    Ok(steps::start_over())
}

/// That an agent must replace itself, and by what a host is installed, is worth a line of history. An agent that is not
/// answered because there is none gets the same steps at its next poll.
async fn with_history(
    hub: &Hub,
    steps: StepsView,
    slot: &Slot,
    opctx: &OpContext,
) -> Result<StepsView, Error> {
    let is_upgrade = steps::is_upgrade(&steps);
    let is_first = steps::is_install(&steps) && slot.row().installer_version != hub.settings.images.installer;
    if is_upgrade || is_first {
        let (hub, opctx, slot) = (hub.clone(), opctx.clone(), slot.clone());
        return carry::through(async move {
            let key = slot.row().key();
            let noted = match is_upgrade {
                true => upgrade_started(&hub, key, &opctx).await,
                false => installer_chosen(&hub, key, &opctx).await,
            };
            if noted.is_err() {
                steps::take_back(&slot, &steps);
            }
            noted.map(|()| steps)
        })
        .await;
    }
    Ok(steps)
}

/// People can see by which image a host was installed.
async fn installer_chosen(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<(), Error> {
    hub.change_host(key, Need::Row, opctx, |snapshot| {
        let mut decision = snapshot.unchanged();
        decision.host.installer_version = hub.settings.images.installer.clone();
        Ok(snapshot.plain(decision))
    })
    .await
    .map(drop)
}

async fn checked_in(
    hub: &Hub,
    key: HostKey,
    agent_version: Option<&str>,
    agent_stays: bool,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        let mut decision = snapshot.next(&Event::CheckedIn)?;
        if let Some(version) = agent_version.filter(|version| !version.is_empty()) {
            decision.host.agent_version = version.into();
        }
        if let Some(wanted) = hub.settings.checks.wanted_agent.as_ref().filter(|_| agent_stays) {
            decision.host.agent_instead_of.clone_from(wanted);
        }
        snapshot.measured(decision, Stored::new())
    })
    .await
}
