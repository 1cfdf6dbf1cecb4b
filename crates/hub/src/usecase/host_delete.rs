//! Removes a host from its pool; the hub tells its agent, if it runs, to register again.

use crate::Hub;
use crate::change::{Decision, OpContext};
use crate::error::Error;
use crate::host_change::{HostSnapshot, Need, OneHost};
use muster_domain::HostKey;
use muster_domain::host::{lifecycle, rules};

pub async fn host_delete(hub: &Hub, key: HostKey, opctx: &OpContext) -> Result<(), Error> {
    hub.change(&OneHost::new(key, Need::Row), opctx, decide_delete)
        .await
        .map(drop)
}

/// The same answer for a plan.
pub fn decide_delete(snapshot: &HostSnapshot) -> Result<Decision, Error> {
    let host = &snapshot.host;
    rules::deletable(host, snapshot.cluster.as_deref())?;
    let mut deleted = Decision::because("a person wants it gone");
    deleted.journal = lifecycle::farewell(host, &snapshot.around());
    deleted.delete(host);
    Ok(deleted)
}
