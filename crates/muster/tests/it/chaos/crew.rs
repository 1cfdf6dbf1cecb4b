//! People who change settings, people who lend and move hosts, and machines that register: all of them go on, whatever
//! happens, and ask for the same again until it is done.

use super::book::Book;
use crate::machines::Machines;
use muster_contract::v2::infra_env::UpdateInfraEnv;
use muster_contract::{ClientError, HubClient};
use muster_simfleet::seed::mix;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::Interval;
use uuid::Uuid;

/// Whoever has no answer by then does not know what came of it.
pub const SILENCE: Duration = Duration::from_secs(3);
/// Hosts of one mover.
pub const HOSTS_EACH: u32 = 3;
/// Machines that come later are numbered from here, so many for each registrar.
const LATER: u32 = 100_000;

/// How many of each there are, and how long each rests between two requests.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub setters: usize,
    pub movers: usize,
    pub registrars: usize,
    pub pace: Duration,
}

impl Size {
    /// Enough that something is always under way, and few enough for several trials at a time.
    pub const SOME: Self = Self {
        setters: 5,
        movers: 4,
        registrars: 1,
        pace: Duration::from_millis(40),
    };

    pub fn writers(self) -> usize {
        self.setters + self.movers + self.registrars
    }

    /// These hosts must be there before the crew begins.
    pub fn hosts(self) -> u32 {
        self.movers as u32 * HOSTS_EACH
    }
}

/// What all of the crew know.
pub struct Ground {
    pub seed: u64,
    pub book: Book,
    pub machines: Machines,
    pub clusters: Vec<Uuid>,
    /// One for each setter.
    pub settings: Vec<Uuid>,
}

pub struct Crew {
    rest: Arc<AtomicBool>,
    tasks: JoinSet<()>,
}

struct Member {
    number: usize,
    ground: Arc<Ground>,
    hub: HubClient,
    rest: Arc<AtomicBool>,
    pace: Interval,
}

impl Crew {
    /// Everybody works with one of the hubs.
    pub fn begin(ground: &Arc<Ground>, urls: &[String], size: Size) -> Self {
        let rest: Arc<AtomicBool> = Arc::default();
        let mut tasks = JoinSet::new();
        for number in 0..size.writers() {
            let mut pace = tokio::time::interval(size.pace.max(Duration::from_millis(1)));
            pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let member = Member {
                number,
                ground: Arc::clone(ground),
                hub: HubClient::with_silence(&urls[number % urls.len()], SILENCE).unwrap(),
                rest: Arc::clone(&rest),
                pace,
            };
            match number {
                number if number < size.setters => tasks.spawn(member.changes_settings()),
                number if number < size.setters + size.movers => {
                    let first = (number - size.setters) as u32 * HOSTS_EACH;
                    tasks.spawn(member.moves_hosts(first))
                }
                number => {
                    let index = (number - size.setters - size.movers) as u32;
                    tasks.spawn(member.registers(LATER + index * LATER))
                }
            };
        }
        Self { rest, tasks }
    }

    /// Everybody ends what they are about, answered or not.
    pub async fn rests(mut self) {
        self.rest.store(true, Ordering::SeqCst);
        while let Some(done) = self.tasks.join_next().await {
            done.unwrap();
        }
    }
}

impl Member {
    async fn goes_on(&mut self) -> bool {
        self.pace.tick().await;
        !self.rest.load(Ordering::SeqCst)
    }

    async fn ask<T>(&self, request: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
        let sent = Instant::now();
        let answer = request.await;
        self.ground.book.note(self.number, sent, &answer);
        answer
    }

    async fn changes_settings(mut self) {
        let setting = self.ground.settings[self.number];
        let mut value = 0;
        while self.goes_on().await {
            value += 1;
            self.ground.book.asks(setting, value);
            let wish = UpdateInfraEnv {
                additional_ntp_sources: Some(written(value)),
                ..UpdateInfraEnv::default()
            };
            if self.ask(self.hub.update_infra_env(setting, &wish)).await.is_ok() {
                self.ground.book.promised(setting, value);
            }
        }
    }

    async fn moves_hosts(mut self, first: u32) {
        for turn in 0.. {
            let dice = mix(&[self.ground.seed, self.number as u64, turn]);
            let index = first + (dice % u64::from(HOSTS_EACH)) as u32;
            let to = self.ground.clusters[(dice >> 8) as usize % self.ground.clusters.len()];
            if !self.goes_on().await || !self.lends(index, to).await {
                return;
            }
            // Sometimes the agent is slower than the people.
            if !(dice >> 16).is_multiple_of(4) && self.goes_on().await {
                self.arrives(index).await;
            }
        }
    }

    /// `false` when the crew rests before it is done.
    async fn lends(&mut self, index: u32, to: Uuid) -> bool {
        let (ground, host) = (Arc::clone(&self.ground), self.ground.machines.id(index));
        let pool = ground.machines.infra_env;
        if ground.book.hosts.destination(host) == Some(to) {
            return true;
        }
        loop {
            ground.book.hosts.asked(host, to);
            let answer = match ground.book.hosts.destination(host) {
                None => self.ask(self.hub.bind_host(pool, host, to)).await.map(drop),
                Some(_) => self.ask(self.hub.move_host(pool, host, to)).await.map(drop),
            };
            let refused = matches!(answer, Err(ClientError::Refused { .. }));
            if answer.is_ok() || (refused && self.goes_to(host).await == Some(to)) {
                ground.book.hosts.acknowledged(host, to);
                return true;
            }
            if !self.goes_on().await {
                return false;
            }
            // It may have to be discovered first.
            if refused {
                self.arrives(index).await;
            }
        }
    }

    /// Where the hub says that it goes; an earlier request may have been done without our hearing of it.
    async fn goes_to(&self, host: Uuid) -> Option<Uuid> {
        let pool = self.ground.machines.infra_env;
        match self.hub.host(pool, host).await.ok()?.cluster_id {
            Some(cluster) => Some(cluster),
            None => self.hub.host_move(pool, host).await.ok().map(|view| view.to),
        }
    }

    async fn arrives(&self, index: u32) -> bool {
        let machines = &self.ground.machines;
        self.ask(machines.register(&self.hub, index)).await.is_ok()
            && self.ask(machines.report(&self.hub, index)).await.is_ok()
    }

    async fn registers(mut self, first: u32) {
        for index in first.. {
            loop {
                if !self.goes_on().await {
                    return;
                }
                if self
                    .ask(self.ground.machines.register(&self.hub, index))
                    .await
                    .is_ok()
                {
                    break;
                }
            }
            self.ground.book.arrived(self.ground.machines.id(index));
        }
    }
}

/// A setting's value is changed, and nothing else.
pub async fn change(hub: &HubClient, setting: Uuid, value: u64) -> Result<(), ClientError> {
    let wish = UpdateInfraEnv {
        additional_ntp_sources: Some(written(value)),
        ..UpdateInfraEnv::default()
    };
    hub.update_infra_env(setting, &wish).await.map(drop)
}

/// How a setting's value is written, and read.
fn written(value: u64) -> String {
    format!("n{value}.example.com")
}

pub fn read(text: &str) -> Option<u64> {
    text.strip_prefix('n')?.strip_suffix(".example.com")?.parse().ok()
}
