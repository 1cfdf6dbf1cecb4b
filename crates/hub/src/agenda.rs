//! When to evaluate whom again: a heap of due times, so that idle hosts and clusters cost nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

#[derive(Debug)]
pub struct Agenda<K> {
    heap: Mutex<BinaryHeap<Reverse<(i64, K)>>>,
    /// Rings when something becomes due earlier than what the worker waits for.
    pub bell: Notify,
}

impl<K: Ord> Default for Agenda<K> {
    fn default() -> Self {
        Self {
            heap: Mutex::default(),
            bell: Notify::new(),
        }
    }
}

impl<K: Ord> Agenda<K> {
    pub fn add(&self, at_micros: i64, key: K) {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        let sooner = heap.peek().is_none_or(|Reverse((first, _))| at_micros < *first);
        heap.push(Reverse((at_micros, key)));
        drop(heap);
        if sooner {
            self.bell.notify_one();
        }
    }

    /// The next that is due by now, if any.
    pub fn pop_due(&self, now_micros: i64) -> Option<(i64, K)> {
        let mut heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        match heap.peek() {
            Some(Reverse((at, _))) if *at <= now_micros => heap.pop().map(|Reverse(item)| item),
            _ => None,
        }
    }

    pub fn next_micros(&self) -> Option<i64> {
        let heap = self.heap.lock().unwrap_or_else(PoisonError::into_inner);
        heap.peek().map(|Reverse((at, _))| *at)
    }
}
