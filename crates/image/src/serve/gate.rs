//! Lets a bounded number of streams run. Who waits is let in by turns among clients, so that one client with a hundred
//! connections does not keep the others out.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

#[derive(Clone, Debug)]
pub struct Gate {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Whose turn is next; a client is in it once.
    turns: VecDeque<IpAddr>,
    waiting: HashMap<IpAddr, VecDeque<oneshot::Sender<Pass>>>,
}

/// One stream's right to run; giving it back lets the next one in.
#[derive(Debug)]
pub struct Pass {
    gate: Option<Gate>,
}

impl Gate {
    pub fn new(streams: usize) -> Gate {
        let state = State {
            free: streams.max(1),
            turns: VecDeque::new(),
            waiting: HashMap::new(),
        };
        Gate {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits its turn. Dropping the future leaves the queue.
    pub async fn enter(&self, client: IpAddr) -> Pass {
        let turn = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                return self.pass();
            }
            let (give, turn) = oneshot::channel();
            let queue = state.waiting.entry(client).or_default();
            queue.push_back(give);
            if queue.len() == 1 {
                state.turns.push_back(client);
            }
            turn
        };
        turn.await
            .expect("a queue lives as long as its gate, and a waiting client holds the gate")
    }

    pub fn waiting(&self) -> usize {
        self.lock().waiting.values().map(VecDeque::len).sum()
    }

    fn pass(&self) -> Pass {
        Pass {
            gate: Some(self.clone()),
        }
    }

    /// A pass given to someone who has left comes back here when it is dropped, so the loop needs no retry.
    fn leave(&self) {
        loop {
            let next = {
                let mut state = self.lock();
                let Some(next) = state.next() else {
                    state.free += 1;
                    return;
                };
                next
            };
            match next.send(self.pass()) {
                Ok(()) => return,
                // Gone meanwhile: its pass must not be returned by its own drop as well.
                Err(mut pass) => pass.gate = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl State {
    fn next(&mut self) -> Option<oneshot::Sender<Pass>> {
        let client = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&client)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&client);
        } else {
            self.turns.push_back(client);
        }
        next
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            gate.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn client(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[tokio::test]
    async fn clients_take_turns_and_those_who_left_do_not_block_the_rest() {
        let gate = Gate::new(1);
        let first = gate.enter(client(1)).await;
        let mut greedy: Vec<_> = (0..3).map(|_| Box::pin(gate.enter(client(1)))).collect();
        for one in &mut greedy {
            assert!(one.as_mut().now_or_never().is_none());
        }
        let mut modest = Box::pin(gate.enter(client(2)));
        assert!(modest.as_mut().now_or_never().is_none());
        assert_eq!(gate.waiting(), 4);
        drop(first);
        let second = greedy[0].as_mut().now_or_never().unwrap();
        drop(second);
        let third = modest
            .as_mut()
            .now_or_never()
            .expect("the other client is next, though it came last");
        drop(greedy);
        drop(third);
        assert_eq!(gate.waiting(), 0);
        assert!(Box::pin(gate.enter(client(3))).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_pass_given_to_a_client_that_never_takes_it_comes_back() {
        let gate = Gate::new(1);
        let first = gate.enter(client(1)).await;
        let mut waiting = Box::pin(gate.enter(client(2)));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        drop(waiting);
        assert!(Box::pin(gate.enter(client(3))).now_or_never().is_some());
    }
}
