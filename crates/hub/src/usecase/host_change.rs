//! Changes that REST v2 has no words for: approval, following, and removing settings.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{HostChange, HostSnapshot, Need, Stored};
use muster_contract::v1::host::{ChangeHost, HostSetting};
use muster_domain::host::{Decision, Host, Report, disks, rules};
use muster_domain::inventory::Inventory;
use muster_domain::{Entry, HostKey, Severity};
use std::sync::Arc;

pub async fn host_change(
    hub: &Hub,
    key: HostKey,
    change: &ChangeHost,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Reports, opctx, |snapshot| decide(snapshot, change))
        .await
}

fn decide(snapshot: &HostSnapshot, change: &ChangeHost) -> Result<HostChange, Error> {
    let ChangeHost {
        approved,
        followed,
        clear,
    } = change;
    let mut host = snapshot.host.clone();
    host.approved = approved.unwrap_or(host.approved);
    host.followed = followed.unwrap_or(host.followed);
    let noted = host.clone();
    clear
        .iter()
        .for_each(|setting| take_away(snapshot, &mut host, *setting));
    if host == snapshot.host {
        return Ok(snapshot.plain(snapshot.unchanged()));
    }
    let settings_change = host != noted;
    // A move can be called off at any time; settings have theirs.
    if settings_change && clear.iter().any(|setting| *setting != HostSetting::Move) {
        rules::editable(&snapshot.host)?;
    }
    host.updated_at = snapshot.now;
    let decision = Decision {
        journal: approval(&snapshot.host, &host).into_iter().collect(),
        host,
        effects: Vec::new(),
        forget: Vec::new(),
        why: "changed by a person",
    };
    if settings_change {
        snapshot.measured(decision, Stored::new())
    } else {
        Ok(snapshot.plain(decision))
    }
}

/// People decide whether a host may be used; an event says so.
fn approval(before: &Host, after: &Host) -> Option<Entry> {
    let verdict = if after.approved {
        "is approved"
    } else {
        "is not approved any more"
    };
    let text = format!("Host {} {verdict}.", after.name());
    (before.approved != after.approved).then(|| after.entry("host_approved_updated", Severity::Info, text))
}

fn take_away(snapshot: &HostSnapshot, host: &mut Host, setting: HostSetting) {
    match setting {
        HostSetting::Hostname => {
            host.requested_hostname = None;
            host.tenant.hostname = None;
        }
        HostSetting::MachineConfigPool => host.tenant.machine_config_pool.clear(),
        HostSetting::Fencing => host.tenant.fencing.clear(),
        HostSetting::InstallationDisk => disks::release(&mut host.tenant, &inventory(snapshot)),
        HostSetting::Move => host.moving_to = None,
    }
}

fn inventory(snapshot: &HostSnapshot) -> Inventory {
    let text = snapshot.stored.get(&Report::Inventory);
    text.and_then(|text| Inventory::parse(text).ok())
        .unwrap_or_default()
}
