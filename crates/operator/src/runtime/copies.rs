//! Copies of the hub's rows: each is asked for once after it changed, however often what depends on it is reconciled.
//!
//! The feed reports a change here before it wakes anybody, so a copy is never older than the change that woke its
//! reader. An answer is kept only if the feed reported no change of its row while it was on its way. Without the feed
//! nothing is kept.

pub mod clusters;
pub mod hosts;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Copies are of use in the moment after a change: of large fleets only the newest are kept.
const MOST_BYTES: usize = 64 << 20;

/// What is kept of a row: cheap to clone.
pub trait Kept: Clone {
    /// About how much room it takes.
    fn bytes(&self) -> usize;
}

/// Copies of one kind of row.
#[derive(Debug)]
pub struct Copies<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    /// The feed is read: every change arrives here.
    is_fed: bool,
    copies: HashMap<Uuid, Copy<T>>,
    /// By the number of their question, the oldest first.
    ages: BTreeMap<u64, Uuid>,
    bytes: usize,
    /// The newest question about each row whose answer may be kept.
    asked: HashMap<Uuid, u64>,
    questions: u64,
}

#[derive(Debug)]
struct Copy<T> {
    row: T,
    question: u64,
    bytes: usize,
}

impl<T> Default for Copies<T> {
    fn default() -> Self {
        Self(Mutex::new(State::new(false, 0)))
    }
}

impl<T: Kept> Copies<T> {
    /// From here if that is as new as the feed, else from the hub.
    async fn get<E>(&self, id: Uuid, fetch: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let question = match self.begin(id) {
            Ok(row) => return Ok(row),
            Err(question) => question,
        };
        let row = fetch.await?;
        self.keep(id, question, &row);
        Ok(row)
    }

    fn begin(&self, id: Uuid) -> Result<T, u64> {
        let mut state = self.state();
        if let Some(copy) = state.copies.get(&id) {
            return Ok(copy.row.clone());
        }
        state.questions += 1;
        let question = state.questions;
        if state.is_fed {
            state.asked.insert(id, question);
        }
        Err(question)
    }

    fn keep(&self, id: Uuid, question: u64, row: &T) {
        let mut state = self.state();
        if state.asked.get(&id) != Some(&question) {
            return;
        }
        let bytes = row.bytes();
        state.forget(id);
        state.bytes += bytes;
        state.ages.insert(question, id);
        let row = row.clone();
        state.copies.insert(id, Copy { row, question, bytes });
        while state.bytes > MOST_BYTES
            && let Some((_, oldest)) = state.ages.pop_first()
        {
            state.forget(oldest);
        }
    }

    /// Something changed at the hub; a copy that has it already is kept.
    fn changed(&self, id: Uuid, is_news: impl Fn(&T) -> bool) {
        let mut state = self.state();
        let copy = state.copies.get(&id);
        if copy.is_none_or(|copy| is_news(&copy.row)) {
            state.forget(id);
        }
    }

    /// The operator changed the row, and the feed has not reported it yet.
    pub fn forget(&self, id: Uuid) {
        self.state().forget(id);
    }

    fn forget_those(&self, concerned: impl Fn(&T) -> bool) {
        let mut state = self.state();
        let copies = state.copies.iter();
        let those = copies.filter(|(_, copy)| concerned(&copy.row));
        let those: Vec<Uuid> = those.map(|(id, _)| *id).collect();
        those.into_iter().for_each(|id| state.forget(id));
        // Which of the answers on their way are concerned is not known.
        state.asked.clear();
    }

    /// The feed begins or ends; what was copied before is not good any more.
    pub fn start_over(&self, is_fed: bool) {
        let mut state = self.state();
        *state = State::new(is_fed, state.questions);
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn new(is_fed: bool, questions: u64) -> Self {
        Self {
            is_fed,
            copies: HashMap::new(),
            ages: BTreeMap::new(),
            bytes: 0,
            asked: HashMap::new(),
            questions,
        }
    }

    fn forget(&mut self, id: Uuid) {
        self.asked.remove(&id);
        if let Some(copy) = self.copies.remove(&id) {
            self.ages.remove(&copy.question);
            self.bytes -= copy.bytes;
        }
    }
}
