//! The installer reports how far it is, and what became of the logs.

use crate::Hub;
use crate::change::OpContext;
use crate::error::Error;
use crate::host_change::{Need, Stored};
use muster_domain::HostKey;
use muster_domain::host::{Event, Host, LogsInfo, Stage};
use std::sync::Arc;

pub async fn host_progress(
    hub: &Hub,
    key: HostKey,
    stage: Stage,
    info: &str,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    let event = Event::Progressed {
        stage,
        info: info.into(),
    };
    hub.change_host(key, Need::Reports, opctx, |snapshot| {
        let decision = snapshot.next(&event)?;
        if decision.host == snapshot.host {
            return Ok(snapshot.plain(decision));
        }
        snapshot.measured(decision, Stored::new())
    })
    .await
}

pub async fn host_logs_progress(
    hub: &Hub,
    key: HostKey,
    state: LogsInfo,
    opctx: &OpContext,
) -> Result<Arc<Host>, Error> {
    hub.change_host(key, Need::Row, opctx, |snapshot| {
        let mut host = snapshot.host.clone();
        host.logs.info = state;
        match state {
            LogsInfo::Requested | LogsInfo::Collecting => {
                host.logs.started_at = host.logs.started_at.or(Some(snapshot.now));
            }
            LogsInfo::Completed => host.logs.collected_at = Some(snapshot.now),
            LogsInfo::None | LogsInfo::Timeout => {}
        }
        Ok(snapshot.plain(muster_domain::host::Decision {
            host,
            journal: Vec::new(),
            effects: Vec::new(),
            forget: Vec::new(),
            why: "the logs are on their way",
        }))
    })
    .await
}
