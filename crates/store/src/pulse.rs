//! Whether writes work, as the last one has shown.

use crate::writer::Job;
use crate::{Store, StoreError};
use sqlx::AnyConnection;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// A write that worked says nothing about what is later than this.
const FRESH: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Pulse(Mutex<Option<Beat>>);

struct Beat {
    at: Instant,
    kind: Kind,
    error: Option<StoreError>,
}

/// What was written. A full disk often has room for the little that a probe takes, and for nothing else.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Change,
    Probe,
}

impl Pulse {
    /// How a transaction ended. What is wrong with a value is not wrong with the database.
    pub fn note<T>(&self, kind: Kind, ended: &Result<T, StoreError>) {
        let error = match ended {
            Err(error @ (StoreError::Unavailable(_) | StoreError::NotOurs(_))) => Some(error.clone()),
            Err(_) => return,
            Ok(_) => None,
        };
        if kind == Kind::Probe && error.is_none() && self.refused().is_some() {
            return;
        }
        let beat = Beat {
            at: Instant::now(),
            kind,
            error,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(beat);
    }

    /// Why a change has just been refused; then a probe that works proves nothing.
    fn refused(&self) -> Option<StoreError> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let beat = last.as_ref()?;
        let counts = beat.kind == Kind::Change && beat.at.elapsed() < FRESH;
        beat.error.clone().filter(|_| counts)
    }

    fn is_fresh(&self) -> bool {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .is_some_and(|beat| beat.error.is_none() && beat.at.elapsed() < FRESH)
    }
}

impl Store {
    /// Whether a change can be written now. Writes one that changes nothing, unless one has just been written.
    pub async fn writable(&self, limit: Duration) -> Result<(), StoreError> {
        if self.inner.pulse.is_fresh() {
            return Ok(());
        }
        if let Some(error) = self.inner.pulse.refused() {
            return Err(error);
        }
        let written = tokio::time::timeout(limit, self.ask(Job::Probe));
        written.await.unwrap_or_else(|_| Err(StoreError::slow(limit)))
    }
}

/// Takes room in the log and waits for the disk, as every change does: SQLite writes nothing where nothing differs.
pub(crate) async fn probe(connection: &mut AnyConnection) -> Result<(), StoreError> {
    sqlx::query("update counters set change_seq = change_seq where id = 1")
        .execute(&mut *connection)
        .await?;
    let text = "insert into meta (key, value) values ('probe', $1)
                on conflict (key) do update set value = excluded.value";
    sqlx::query(text)
        .bind(Uuid::new_v4().to_string())
        .execute(connection)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_works_does_not_outvote_a_change_that_was_just_refused() {
        let pulse = Pulse::default();
        let refused: Result<(), _> = Err(StoreError::slow(FRESH));
        pulse.note(Kind::Probe, &refused);
        pulse.note(Kind::Probe, &Ok(()));
        assert!(pulse.is_fresh());
        pulse.note(Kind::Change, &refused);
        pulse.note(Kind::Probe, &Ok(()));
        assert!(!pulse.is_fresh() && pulse.refused().is_some());
        pulse.note(Kind::Change, &Ok(()));
        assert!(pulse.is_fresh() && pulse.refused().is_none());
    }
}
