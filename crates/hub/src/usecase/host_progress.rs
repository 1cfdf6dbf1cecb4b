//! The installer reports how far it is, and what became of the logs.

use crate::Hub;
use crate::error::Error;
use crate::turn::{Ask, Need, Stored};
use muster_domain::HostKey;
use muster_domain::host::{Event, Host, LogsInfo, Stage};
use std::sync::Arc;

pub async fn host_progress(
    hub: &Hub,
    key: HostKey,
    stage: Stage,
    info: &str,
    ask: &Ask,
) -> Result<Arc<Host>, Error> {
    let event = Event::Progressed {
        stage,
        info: info.into(),
    };
    hub.host_turn(key, Need::Reports, ask, |scene| {
        let decision = scene.next(&event)?;
        if decision.host == scene.host {
            return Ok(scene.plain(decision));
        }
        scene.measured(decision, Stored::new())
    })
    .await
}

pub async fn host_logs_progress(
    hub: &Hub,
    key: HostKey,
    state: LogsInfo,
    ask: &Ask,
) -> Result<Arc<Host>, Error> {
    hub.host_turn(key, Need::Row, ask, |scene| {
        let mut host = scene.host.clone();
        host.logs.info = state;
        match state {
            LogsInfo::Requested | LogsInfo::Collecting => {
                host.logs.started_at = host.logs.started_at.or(Some(scene.now));
            }
            LogsInfo::Completed => host.logs.collected_at = Some(scene.now),
            LogsInfo::None | LogsInfo::Timeout => {}
        }
        Ok(scene.plain(muster_domain::host::Decision {
            host,
            journal: Vec::new(),
            effects: Vec::new(),
            forget: Vec::new(),
            why: "the logs are on their way",
        }))
    })
    .await
}
