//! Looks whether there is a new certificate for the hub's listener.

use crate::Hub;
use std::time::Duration;

/// Soon enough for whoever has just exchanged it; what it costs is to read two small files.
const EVERY: Duration = Duration::from_secs(2);

/// Without TLS there is nothing to look at.
pub async fn run(hub: Hub) {
    loop {
        tokio::time::sleep(EVERY).await;
        hub.workers.begins("certificate");
        let Some(tls) = hub.tls().cloned() else { continue };
        let now = hub.now();
        // What is wrong with it is told there, once for each mistake.
        let looked = tokio::task::spawn_blocking(move || tls.look(now).ok()).await;
        let result = looked.map(drop);
        hub.workers.note("certificate", now, &result);
    }
}
