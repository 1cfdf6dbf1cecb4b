//! What the crew was promised, what nobody knows, and what it was told when it was refused.

use crate::ledger::Ledger;
use muster_contract::ClientError;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Instant;
use uuid::Uuid;

#[derive(Default)]
pub struct Book {
    /// Where each host goes.
    pub hosts: Ledger,
    settings: Mutex<HashMap<Uuid, Setting>>,
    arrived: Mutex<BTreeSet<Uuid>>,
    told: Mutex<Told>,
}

/// A value that one writer changes again and again.
#[derive(Debug, Clone, Default)]
struct Setting {
    acknowledged: Option<u64>,
    /// Asked for without an answer that says whether it was done; each may have been, and as late as it likes.
    unknown: BTreeSet<u64>,
}

#[derive(Default)]
struct Told {
    /// When the newest request that each writer got done was sent.
    done: BTreeMap<usize, Instant>,
    refusals: Vec<Refusal>,
    acknowledged: usize,
    unanswered: usize,
}

/// The hub said that it cannot.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub at: Instant,
    pub text: String,
}

impl Book {
    /// Keeps what came of a request. One that was not answered is unknown and counts as nothing.
    pub fn note<T>(&self, writer: usize, sent: Instant, answer: &Result<T, ClientError>) {
        let mut told = self.told.lock().unwrap();
        match answer {
            Ok(_) => {
                told.acknowledged += 1;
                told.done.insert(writer, sent);
            }
            Err(ClientError::Unreachable(_)) => told.unanswered += 1,
            Err(ClientError::Server(text)) => told.refusals.push(Refusal {
                at: Instant::now(),
                text: text.clone(),
            }),
            // A decision, made on facts.
            Err(ClientError::Refused { .. }) => {}
            Err(error) => panic!("writer {writer}: {error}"),
        }
    }

    pub fn asks(&self, setting: Uuid, value: u64) {
        let mut settings = self.settings.lock().unwrap();
        settings.entry(setting).or_default().unknown.insert(value);
    }

    pub fn promised(&self, setting: Uuid, value: u64) {
        let mut settings = self.settings.lock().unwrap();
        let setting = settings.entry(setting).or_default();
        setting.unknown.remove(&value);
        setting.acknowledged = Some(value);
    }

    pub fn arrived(&self, host: Uuid) {
        self.arrived.lock().unwrap().insert(host);
    }

    /// Requests that were done, and requests without an answer.
    pub fn counts(&self) -> (usize, usize) {
        let told = self.told.lock().unwrap();
        (told.acknowledged, told.unanswered)
    }

    /// The writers that got nothing done of what they asked for since then.
    pub fn left_behind(&self, writers: usize, since: Instant) -> Vec<usize> {
        let told = self.told.lock().unwrap();
        let worked = |writer: &usize| told.done.get(writer).is_some_and(|at| *at >= since);
        (0..writers).filter(|writer| !worked(writer)).collect()
    }

    pub fn refusals(&self, from: Instant, to: Instant) -> Vec<Refusal> {
        let told = self.told.lock().unwrap();
        let within = told.refusals.iter().filter(|one| one.at >= from && one.at <= to);
        within.cloned().collect()
    }

    /// What a setting says that it must not say.
    pub fn settings_differ(&self, found: &HashMap<Uuid, Option<u64>>) -> Vec<String> {
        let settings = self.settings.lock().unwrap();
        let wrong = settings.iter().filter(|(id, setting)| {
            let now = found.get(*id).copied().flatten();
            now != setting.acknowledged && !now.is_some_and(|value| setting.unknown.contains(&value))
        });
        wrong
            .map(|(id, setting)| format!("setting {id} is {:?}, but {setting:?}", found.get(id)))
            .collect()
    }

    /// Machines that were told that they are registered, and are not there.
    pub fn hosts_lost(&self, there: &BTreeSet<Uuid>) -> Vec<Uuid> {
        let arrived = self.arrived.lock().unwrap();
        arrived.difference(there).copied().collect()
    }
}
