//! A host's deadline passed.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{Need, Stored};
use muster_domain::HostKey;
use muster_domain::host::{Event, Host};
use std::sync::Arc;

pub async fn host_due(hub: &Hub, key: HostKey) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Reports, &OpContext::hub(), |snapshot| {
        let decision = snapshot.next(&Event::Due)?;
        if decision.host == snapshot.host {
            return Ok(snapshot.plain(decision));
        }
        snapshot.measured(decision, Stored::new())
    })
    .await
}
