//! Reads of one host's reports that wait at the same moment share one statement: under load a statement costs more
//! than its rows.

use crate::StoreError;
use crate::hosts::{self, pair};
use crate::read::Readers;
use crate::reports;
use crate::sql::{self, Columns};
use muster_domain::host::Report;
use muster_domain::id::HostKey;
use std::collections::{BTreeMap, HashMap};
use tokio::sync::{mpsc, oneshot};

/// Hosts in one statement; their reports are about 10 KB each.
const HOSTS: usize = 64;

/// Reads that may wait; beyond it callers are held back at the door.
pub(crate) const QUEUE: usize = 1024;

pub(crate) type Found = BTreeMap<Report, String>;

pub(crate) struct Read {
    pub key: HostKey,
    pub reply: oneshot::Sender<Result<Found, StoreError>>,
}

/// Runs until nobody is left to ask.
pub(crate) async fn run(readers: Readers, mut queue: mpsc::Receiver<Read>) {
    let mut reads = Vec::with_capacity(HOSTS);
    while queue.recv_many(&mut reads, HOSTS).await > 0 {
        let found = readers.in_time(fetch(&readers, &reads)).await;
        for Read { key, reply } in reads.drain(..) {
            let answer = match &found {
                // Several may have asked for the same host.
                Ok(found) => Ok(found.get(&key).cloned().unwrap_or_default()),
                Err(error) => Err(error.clone()),
            };
            // Whoever asked may have gone away.
            let _ = reply.send(answer);
        }
    }
}

async fn fetch(readers: &Readers, reads: &[Read]) -> Result<HashMap<HostKey, Found>, StoreError> {
    let mut reading = readers.reading().await?;
    // A cross join keeps SQLite from walking the reports instead of the keys.
    let rows = sql::fetch_rows(
        &mut reading,
        "select r.infra_env_id, r.host_id, r.kind, r.body from (",
        reads.iter().map(|read| pair(read.key)).collect(),
        ") k cross join host_reports r where r.infra_env_id = k.column1 and r.host_id = k.column2",
    )
    .await?;
    reading.done();
    let mut found: HashMap<HostKey, Found> = HashMap::new();
    for row in &rows {
        let reports = found.entry(hosts::key(row)?).or_default();
        reports.insert(reports::kind(row, 2)?, row.text(3)?.to_owned());
    }
    Ok(found)
}
