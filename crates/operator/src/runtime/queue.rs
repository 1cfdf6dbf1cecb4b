//! A queue of keys: each waits at most once, and is handed to one worker at a time.

use crate::key::Key;
use kube::Resource;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    news: Notify,
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they are due.
    due: BTreeSet<(Instant, Key)>,
    when: HashMap<Key, Instant>,
    /// With a worker. Woken meanwhile, they also wait in `when`, but are not handed out before the worker is done.
    busy: HashSet<Key>,
    /// How often in a row somebody else wrote first.
    conflicts: HashMap<Key, u32>,
}

impl Queue {
    /// Nothing will ever be reconciled: its controller is switched off.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Asks for the object to be reconciled; many wakes before that are one.
    pub fn wake(&self, key: Key) {
        self.wake_at(key, Instant::now());
    }

    pub fn wake_all<K: Resource>(&self, objects: impl IntoIterator<Item = Arc<K>>) {
        for object in objects {
            self.wake(Key::of(&*object));
        }
    }

    pub fn wake_after(&self, key: Key, delay: Duration) {
        self.wake_at(key, Instant::now() + delay);
    }

    /// The earliest of several times counts.
    fn wake_at(&self, key: Key, at: Instant) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.state();
        match state.when.get(&key).copied() {
            Some(earlier) if earlier <= at => return,
            Some(later) => {
                state.due.remove(&(later, key.clone()));
            }
            None => {}
        }
        state.when.insert(key.clone(), at);
        if !state.busy.contains(&key) {
            state.due.insert((at, key));
            self.news.notify_one();
        }
    }

    /// The next key that is due; it is the caller's until `done`.
    pub async fn next(&self) -> Key {
        loop {
            // Made before the queue is read, so that no wake falls between the two.
            let news = self.news.notified();
            let first = {
                let mut state = self.state();
                match state.due.first().cloned() {
                    Some((at, key)) if at <= Instant::now() => {
                        state.due.remove(&(at, key.clone()));
                        state.when.remove(&key);
                        state.busy.insert(key.clone());
                        if !state.due.is_empty() {
                            self.news.notify_one();
                        }
                        return key;
                    }
                    first => first.map(|(at, _)| at),
                }
            };
            match first {
                Some(at) => tokio::select! {
                    () = news => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => news.await,
            }
        }
    }

    /// The worker is done with it.
    pub fn done(&self, key: &Key) {
        let mut state = self.state();
        state.busy.remove(key);
        if let Some(at) = state.when.get(key).copied() {
            state.due.insert((at, key.clone()));
            self.news.notify_one();
        }
    }

    /// Somebody else wrote first; how often in a row before this.
    pub fn conflicted(&self, key: &Key) -> u32 {
        let mut state = self.state();
        let times = state.conflicts.entry(key.clone()).or_default();
        *times += 1;
        *times - 1
    }

    pub fn went_through(&self, key: &Key) {
        self.state().conflicts.remove(key);
    }

    /// All workers were stopped in the middle: what they had is reconciled again.
    pub fn abandon(&self) {
        let mut state = self.state();
        for key in std::mem::take(&mut state.busy) {
            let at = *state.when.entry(key.clone()).or_insert_with(Instant::now);
            state.due.insert((at, key));
        }
        self.news.notify_one();
    }

    /// How many keys wait, now or later, or are with a worker.
    pub fn len(&self) -> usize {
        let state = self.state();
        state.when.len()
            + state
                .busy
                .iter()
                .filter(|key| !state.when.contains_key(*key))
                .count()
    }

    /// What is with workers and what waits, a line for each key, for people.
    pub fn lines(&self) -> Vec<String> {
        let (state, now) = (self.state(), Instant::now());
        let busy = state.busy.iter().map(|key| match state.when.get(key) {
            Some(_) => format!("{key} is being reconciled, and will be once more"),
            None => format!("{key} is being reconciled"),
        });
        let waits = state
            .due
            .iter()
            .map(|(at, key)| match at.checked_duration_since(now) {
                Some(left) => format!("{key} is due in {left:.1?}"),
                None => format!("{key} is due since {:.1?}", now.duration_since(*at)),
            });
        busy.chain(waits).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held; and if it did, the sets would still be good.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn key(name: &str) -> Key {
        Key::new("n", name)
    }

    #[tokio::test]
    async fn many_wakes_are_one_reconcile() {
        let queue = Queue::default();
        for _ in 0..3 {
            queue.wake(key("a"));
        }
        assert_eq!(queue.next().await, key("a"));
        queue.done(&key("a"));
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn a_key_woken_while_it_is_reconciled_is_reconciled_once_more_and_not_twice_at_a_time() {
        let queue = Queue::default();
        queue.wake(key("a"));
        let first = queue.next().await;
        queue.wake(key("a"));
        let mut second = std::pin::pin!(queue.next());
        tokio::select! {
            biased;
            key = &mut second => panic!("{key} is handed out twice"),
            () = std::future::ready(()) => {}
        }
        queue.done(&first);
        assert_eq!(second.await, key("a"));
    }

    #[tokio::test]
    async fn the_earliest_time_counts_and_keys_come_in_order() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.wake_after(key("late"), Duration::from_secs(2000));
        queue.wake_after(key("soon"), Duration::from_millis(20));
        queue.wake_after(key("late"), Duration::from_millis(10));
        queue.wake_after(key("late"), Duration::from_secs(1000));
        assert_eq!(queue.next().await, key("late"));
        assert!(start.elapsed() >= Duration::from_millis(10));
        assert_eq!(queue.next().await, key("soon"));
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert!(queue.len() == 2, "both are with a worker, neither waits");
    }

    #[tokio::test]
    async fn what_a_stopped_worker_had_is_reconciled_again() {
        let queue = Queue::default();
        queue.wake(key("a"));
        assert_eq!(queue.next().await, key("a"));
        queue.abandon();
        assert_eq!(queue.next().await, key("a"));
    }

    #[tokio::test]
    async fn people_see_what_is_being_reconciled_and_what_waits() {
        let queue = Queue::default();
        queue.wake(key("a"));
        queue.next().await;
        queue.wake(key("a"));
        queue.wake_after(key("b"), Duration::from_secs(1000));
        let lines = queue.lines();
        assert_eq!(lines[0], "n/a is being reconciled, and will be once more");
        assert!(lines[1].starts_with("n/b is due in "), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }

    /// However wakes and reconciliations fall together, the last one of a key begins after the last change of it.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_change_stays_without_a_reconcile_that_began_after_it() {
        const KEYS: usize = 5;
        const CHANGES: u64 = 2_000;
        let queue = Arc::new(Queue::default());
        let snapshot: Arc<[AtomicU64; KEYS]> = Arc::default();
        let handled: Arc<[AtomicU64; KEYS]> = Arc::default();
        let number = |key: &Key| key.name.parse::<usize>().unwrap();
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (queue, snapshot, handled) = (queue.clone(), snapshot.clone(), handled.clone());
                tokio::spawn(async move {
                    for round in 0u64.. {
                        let key = queue.next().await;
                        let now = snapshot[number(&key)].load(Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        // One worker at a time has the key: nobody brings this back.
                        handled[number(&key)].store(now, Ordering::SeqCst);
                        queue.done(&key);
                        if round % 7 == 0 {
                            queue.wake_after(key, Duration::from_millis(round % 3));
                        }
                    }
                })
            })
            .collect();
        let changers = (0..4).map(|_| {
            let (queue, snapshot) = (queue.clone(), snapshot.clone());
            tokio::spawn(async move {
                for change in 0..CHANGES {
                    let at = usize::try_from(change).unwrap() % KEYS;
                    snapshot[at].fetch_add(1, Ordering::SeqCst);
                    queue.wake(key(&at.to_string()));
                    if change % 11 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        });
        for changer in changers.collect::<Vec<_>>() {
            changer.await.unwrap();
        }
        let all = |of: &[AtomicU64; KEYS]| of.each_ref().map(|one| one.load(Ordering::SeqCst));
        let caught_up = async {
            while all(&snapshot) != all(&handled) {
                tokio::task::yield_now().await;
            }
        };
        let caught_up = tokio::time::timeout(Duration::from_secs(20), caught_up).await;
        assert!(
            caught_up.is_ok(),
            "{:?} was handled as {:?}: {:?}",
            all(&snapshot),
            all(&handled),
            queue.lines()
        );
        workers.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[test]
    fn a_queue_whose_controller_is_off_takes_nothing() {
        let queue = Queue::default();
        queue.close();
        queue.wake(key("a"));
        queue.wake_after(key("b"), Duration::ZERO);
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn several_workers_share_what_is_there() {
        let queue = std::sync::Arc::new(Queue::default());
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.wake(key("a"));
        queue.wake(key("b"));
        let mut found = Vec::new();
        for worker in workers {
            found.push(worker.await.unwrap());
        }
        found.sort();
        assert_eq!(found, [key("a"), key("b")]);
    }
}
