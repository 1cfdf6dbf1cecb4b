//! A host's deadline passed.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, Need, Stored};
use muster_domain::HostKey;
use muster_domain::host::{Event, Host};
use std::sync::Arc;

pub async fn host_due(hub: &Hub, key: HostKey) -> Result<Arc<Host>, Error> {
    hub.host_turn(key, Need::Reports, &Ask::hub(), |scene| {
        let decision = scene.next(&Event::Due)?;
        if decision.host == scene.host {
            return Ok(scene.plain(decision));
        }
        scene.measured(decision, Stored::new())
    })
    .await
}
