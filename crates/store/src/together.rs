//! Reads of one host's reports that wait at the same moment share one statement: under load a statement costs more
//! than its rows.

use crate::nouns::hosts::{self, pair};
use crate::read::Readers;
use crate::unreadable::Unreadable;
use crate::{RowKind, StoreError, reports, sql};
use muster_domain::host::Report;
use muster_domain::id::HostKey;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
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
pub(crate) async fn run(readers: Readers, unreadable: Arc<Unreadable>, mut queue: mpsc::Receiver<Read>) {
    let mut reads = Vec::with_capacity(HOSTS);
    while queue.recv_many(&mut reads, HOSTS).await > 0 {
        let keys: Vec<_> = reads.iter().map(|read| read.key).collect();
        let found = readers.in_time(fetch(&readers, &unreadable, &keys)).await;
        for Read { key, reply } in reads.drain(..) {
            let answer = match &found {
                // Several may have asked for the same host.
                Ok(found) => found.get(&key).cloned().unwrap_or_else(|| Ok(Found::new())),
                Err(error) if error.is_undecodable() => alone(&readers, &unreadable, key).await,
                Err(error) => Err(error.clone()),
            };
            // Whoever asked may have gone away.
            let _ = reply.send(answer);
        }
    }
}

/// A report that cannot be taken over keeps those of other hosts from being read together with it.
async fn alone(readers: &Readers, unreadable: &Unreadable, key: HostKey) -> Result<Found, StoreError> {
    match readers.in_time(fetch(readers, unreadable, &[key])).await {
        Ok(mut found) => found.remove(&key).unwrap_or_else(|| Ok(Found::new())),
        Err(error) if error.is_undecodable() => Err(reports::damaged(key, unreadable)),
        Err(error) => Err(error),
    }
}

async fn fetch(
    readers: &Readers,
    unreadable: &Unreadable,
    keys: &[HostKey],
) -> Result<HashMap<HostKey, Result<Found, StoreError>>, StoreError> {
    let mut reading = readers.reading().await?;
    // A cross join keeps SQLite from walking the reports instead of the keys.
    let rows = sql::fetch_rows(
        &mut reading,
        "select r.infra_env_id, r.host_id, r.kind, r.version, r.body from (",
        keys.iter().map(|key| pair(*key)).collect(),
        ") k cross join host_reports r where r.infra_env_id = k.column1 and r.host_id = k.column2",
    )
    .await?;
    reading.done();
    let mut found: HashMap<HostKey, Result<Found, StoreError>> = HashMap::new();
    for row in &rows {
        let key = hosts::key(row)?;
        let reports = found.entry(key).or_insert_with(|| Ok(Found::new()));
        let read = reports::of(key, row, unreadable);
        match (reports.as_mut(), read) {
            (Ok(reports), Ok((report, body))) => drop(reports.insert(report, body)),
            (Ok(_), Err(error)) => *reports = Err(error),
            // One that cannot be read is enough.
            (Err(_), _) => {}
        }
    }
    for (key, _) in found.iter().filter(|(_, reports)| reports.is_ok()) {
        unreadable.forget(RowKind::Report, &key.to_string());
    }
    Ok(found)
}
