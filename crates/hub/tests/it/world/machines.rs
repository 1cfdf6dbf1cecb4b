//! The machines' side: they act when it is time, and messages between them and the hub may be lost or doubled.

use super::World;
use axum::body::Body;
use muster_simfleet::{Next, Outcome};
use rand::RngExt;

/// An answer of the hub to a machine.
#[derive(Debug, Clone)]
pub struct Heard {
    pub machine: usize,
    pub method: String,
    pub path: String,
    pub status: u16,
    pub body: Vec<u8>,
}

impl World {
    pub fn is_powered(&self, machine: usize) -> bool {
        self.powered[machine]
    }

    pub fn power_off(&mut self, machine: usize) {
        self.powered[machine] = false;
    }

    pub fn power_on(&mut self, machine: usize) {
        self.powered[machine] = true;
        let now = self.now_ms();
        self.machines[machine].reboot(now);
    }

    /// Somebody boots the discovery image there.
    pub fn boot_discovery(&mut self, machine: usize) {
        self.powered[machine] = true;
        let now = self.now_ms();
        self.machines[machine].boot_discovery(now);
    }

    /// Somebody corrects the boot order and reboots.
    pub fn boot_disk(&mut self, machine: usize) {
        self.powered[machine] = true;
        let now = self.now_ms();
        self.machines[machine].boot_disk(now);
    }

    /// What reclaims an installed system is started there.
    pub fn start_reclaim(&mut self, machine: usize) {
        let now = self.now_ms();
        self.machines[machine].start_reclaim(now);
    }

    /// When the first machine wants to do something; asked when nobody is due at once.
    pub(super) fn next_wake_ms(&mut self) -> Option<u64> {
        let now = self.now_ms();
        let powered = self.machines.iter_mut().zip(&self.powered);
        let wakes = powered
            .filter(|(_, powered)| **powered)
            .filter_map(|(machine, _)| match machine.poll(now) {
                Next::WaitUntil(ms) => Some(ms),
                Next::Idle => None,
                Next::Send(request) => panic!("{} was due already", request.path),
            });
        wakes.min()
    }

    /// Lets every machine do what it wants to do at this moment.
    pub async fn machines_act(&mut self) {
        for index in 0..self.machines.len() {
            if !self.powered[index] {
                continue;
            }
            // A machine that asks more often than this in one moment is in a hot loop.
            let mut budget = 60;
            let now = self.now_ms();
            while let Next::Send(request) = self.machines[index].poll(now) {
                budget -= 1;
                assert!(budget > 0, "machine {index} asks without end");
                self.deliver(index, request).await;
            }
        }
    }

    async fn deliver(&mut self, index: usize, request: muster_simfleet::Request) {
        let (request, tag) = request.into_http("").expect("a valid request");
        let fate = if self.faults {
            self.rng.random_range(0..20)
        } else {
            9
        };
        let (parts, bytes) = request.into_parts();
        let copy = || {
            let mut again = axum::http::Request::builder()
                .method(parts.method.clone())
                .uri(parts.uri.clone());
            for (name, value) in &parts.headers {
                again = again.header(name, value);
            }
            again.body(Body::from(bytes.clone())).expect("a valid request")
        };
        let outcome = if fate == 0 || self.hub_is_away || self.is_lost(index, parts.uri.path()) {
            // Lost on the way.
            Outcome::Lost
        } else {
            let (status, body) = self.send(copy()).await;
            if fate == 2 {
                self.send(copy()).await;
            }
            self.listen(index, &parts, status, &body);
            // Fate 1: the hub did it, and the answer was lost.
            if fate == 1 {
                Outcome::Lost
            } else {
                Outcome::Response { status, body }
            }
        };
        let now = self.now_ms();
        self.machines[index].receive(now, tag, outcome);
    }

    fn is_lost(&self, machine: usize, path: &str) -> bool {
        let mut lost = self.lost.iter();
        lost.any(|(of, part)| of.is_none_or(|one| one == machine) && path.contains(part))
    }

    fn listen(&mut self, machine: usize, parts: &axum::http::request::Parts, status: u16, body: &[u8]) {
        if let Some(heard) = &mut self.heard {
            heard.push(Heard {
                machine,
                method: parts.method.to_string(),
                path: parts.uri.to_string(),
                status,
                body: body.to_vec(),
            });
        }
    }
}
