//! Changes that REST v2 has no words for: approval, following, and taking settings away.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, Need, Scene, Stored, Turn};
use muster_contract::v1::host::{ChangeHost, HostSetting};
use muster_domain::HostKey;
use muster_domain::host::{Decision, Host, rules};
use std::sync::Arc;

pub async fn host_change(
    hub: &Hub,
    key: HostKey,
    change: &ChangeHost,
    ask: &Ask,
) -> Result<Arc<Host>, Error> {
    hub.host_turn(key, Need::Reports, ask, |scene| turn(scene, change))
        .await
}

fn turn(scene: &Scene<'_>, change: &ChangeHost) -> Result<Turn, Error> {
    let ChangeHost {
        approved,
        followed,
        clear,
    } = change;
    let mut host = scene.host.clone();
    host.approved = approved.unwrap_or(host.approved);
    host.followed = followed.unwrap_or(host.followed);
    let noted = host.clone();
    clear.iter().for_each(|setting| take_away(&mut host, *setting));
    if host == scene.host {
        return Ok(scene.plain(scene.unchanged()));
    }
    let settings_change = host != noted;
    // A move can be called off at any time; settings have theirs.
    if settings_change && clear.iter().any(|setting| *setting != HostSetting::Move) {
        rules::editable(&scene.host)?;
    }
    host.updated_at = scene.now;
    let decision = Decision {
        host,
        journal: Vec::new(),
        effects: Vec::new(),
        forget: Vec::new(),
        why: "changed by a person",
    };
    if settings_change {
        scene.measured(decision, Stored::new())
    } else {
        Ok(scene.plain(decision))
    }
}

fn take_away(host: &mut Host, setting: HostSetting) {
    match setting {
        HostSetting::Hostname => {
            host.requested_hostname = None;
            host.tenant.hostname = None;
        }
        HostSetting::MachineConfigPool => host.tenant.machine_config_pool.clear(),
        HostSetting::Fencing => host.tenant.fencing.clear(),
        HostSetting::Move => host.moving_to = None,
    }
}
