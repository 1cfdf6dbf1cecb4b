//! Drives many simulated hosts over HTTP.
//!
//! The hosts are dealt out to as many tasks as there are connections. Each task owns its hosts, a heap of wake-up
//! times and one connection, so nothing is shared but the counters.

use crate::fault::Fault;
use crate::host::SimHost;
use crate::machine::MAX_HOSTS;
use crate::profile::Profile;
use crate::request::{Call, Next, Outcome, Request};
use crate::seed::mix;
use crate::setup::{REPLY_CACHE_MS, Setup, USUAL_POLL_MS};
use crate::stats::{Kind, Stats};
use crate::wire::{HubAddress, Wire};
use muster_contract::{Secret, Trust};
use rustls::ClientConfig;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Without a ramp, fleets start at no more than so many hosts per second.
const STARTS_PER_S: u64 = 500;

/// Someone with a power controller looks after each installed machine this often.
const RETURN_BOOTS: Duration = Duration::from_secs(60);

/// A fleet to be. Hosts, seed, hub and infra-env are what most callers set.
#[derive(Debug, Clone)]
pub struct FleetConfig {
    /// `http://host:port` or `https://host:port`
    pub hub_url: String,
    /// Whose certificates are believed; for https.
    pub trust: Trust,
    pub infra_env_id: Uuid,
    pub hosts: u32,
    pub seed: u64,
    /// The number of the first host; fleets beside each other use ranges that do not overlap.
    pub first_index: u32,
    /// What a pause of 60 s becomes; other pauses and the duration of steps shrink in proportion.
    pub poll: Option<Duration>,
    pub faults: Vec<Fault>,
    /// How many requests are in flight at most.
    pub connections: usize,
    /// The hosts start spread over this time; unset means one poll interval, less for small fleets.
    pub ramp: Option<Duration>,
    /// A request without an answer is given up after this.
    pub request_timeout: Duration,
    /// Agents that gave up are rebooted after this.
    pub revive: Option<Duration>,
    /// What a whole installation takes; unset means nine minutes, less when polls are faster.
    pub install_time: Option<Duration>,
    /// How often someone looks after installed machines and boots the discovery image on those that the hub waits for;
    /// unset means that nobody does. Shrinks with `poll`.
    pub return_boots: Option<Duration>,
    /// How long unchanged answers are not repeated; zero makes every step answer, the worst case for a hub.
    pub reply_cache: Duration,
    /// All machines alike, instead of a mix.
    pub profile: Option<Profile>,
    pub agent_version: String,
    /// Sent as `X-Secret-Key`.
    pub token: Secret,
}

impl Default for FleetConfig {
    fn default() -> Self {
        Self {
            hub_url: "http://localhost:8090".into(),
            trust: Trust::default(),
            infra_env_id: Uuid::nil(),
            hosts: 10,
            seed: 1,
            first_index: 0,
            poll: None,
            faults: Vec::new(),
            connections: 32,
            ramp: None,
            request_timeout: Duration::from_secs(30),
            revive: None,
            install_time: None,
            return_boots: Some(RETURN_BOOTS),
            reply_cache: Duration::from_millis(REPLY_CACHE_MS),
            profile: None,
            agent_version: Setup::default().agent_version.to_string(),
            token: Secret::default(),
        }
    }
}

/// Why a fleet cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    #[error("cannot use the address of the hub: {0}")]
    HubUrl(String),
    #[error("hosts {first} to {last} are too many; the last possible number is {}", MAX_HOSTS - 1)]
    TooMany { first: u32, last: u64 },
}

/// What someone does to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    BootDiscovery,
    BootDisk,
    /// Power-cycles it, or switches it on.
    Reboot,
    Off,
}

/// Reaches into a fleet while it runs.
#[derive(Debug, Clone)]
pub struct Remote {
    first_index: u32,
    /// One per task; hosts are dealt out in turn.
    tasks: Arc<[mpsc::UnboundedSender<(u32, Power)>]>,
}

impl Remote {
    /// False when there is no such host, or the fleet has ended.
    pub fn power(&self, index: u32, power: Power) -> bool {
        let Some(place) = index.checked_sub(self.first_index) else {
            return false;
        };
        let tasks = self.tasks.len() as u32;
        let task = &self.tasks[(place % tasks) as usize];
        task.send((place / tasks, power)).is_ok()
    }

    pub fn boot_discovery(&self, index: u32) -> bool {
        self.power(index, Power::BootDiscovery)
    }
}

/// A fleet that is ready to run.
#[derive(Debug)]
pub struct Fleet {
    config: FleetConfig,
    hub: HubAddress,
    tls: Arc<ClientConfig>,
    setup: Arc<Setup>,
    stats: Arc<Stats>,
    remote: Remote,
    commands: Vec<mpsc::UnboundedReceiver<(u32, Power)>>,
}

impl Fleet {
    pub fn new(config: FleetConfig) -> Result<Self, FleetError> {
        let hub = HubAddress::parse(&config.hub_url).map_err(FleetError::HubUrl)?;
        let end = u64::from(config.first_index) + u64::from(config.hosts);
        if end > u64::from(MAX_HOSTS) {
            return Err(FleetError::TooMany {
                first: config.first_index,
                last: end - 1,
            });
        }
        let setup = Arc::new(setup(&config));
        let tls = Arc::new(config.trust.config());
        let tasks = config.connections.clamp(1, config.hosts.max(1) as usize);
        let (senders, commands): (Vec<_>, Vec<_>) = (0..tasks).map(|_| mpsc::unbounded_channel()).unzip();
        let remote = Remote {
            first_index: config.first_index,
            tasks: senders.into(),
        };
        Ok(Self {
            config,
            hub,
            tls,
            setup,
            stats: Arc::default(),
            remote,
            commands,
        })
    }

    /// What all its hosts have in common.
    pub fn setup(&self) -> &Arc<Setup> {
        &self.setup
    }

    /// The counters; they go on while the fleet runs.
    pub fn stats(&self) -> Arc<Stats> {
        self.stats.clone()
    }

    /// Switches machines on, off and over while the fleet runs.
    pub fn remote(&self) -> Remote {
        self.remote.clone()
    }

    /// Runs until `stop` becomes true or its sender is gone. Requests in flight are finished first.
    pub async fn run(mut self, stop: watch::Receiver<bool>) {
        let clock = Clock::start();
        let commands = std::mem::take(&mut self.commands);
        let tasks = commands.len();
        let mut running = JoinSet::new();
        for (task, commands) in commands.into_iter().enumerate() {
            let shard = self.shard(task, tasks, clock);
            running.spawn(shard.run(stop.clone(), commands));
        }
        while let Some(ended) = running.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a part of the fleet failed");
            }
        }
    }

    fn shard(&self, task: usize, tasks: usize, clock: Clock) -> Shard {
        let ramp_ms = self.ramp_ms();
        let places = (0..self.config.hosts).skip(task).step_by(tasks);
        let hosts: Vec<SimHost> = places
            .map(|place| {
                let index = self.config.first_index + place;
                let start =
                    clock.start_ms + start_offset(self.config.seed, place, self.config.hosts, ramp_ms);
                SimHost::new(self.setup.clone(), index, start)
            })
            .collect();
        Shard::new(hosts, self, clock)
    }

    fn ramp_ms(&self) -> u64 {
        let given = self.config.ramp.map(millis);
        let interval = self.setup.poll_ms.unwrap_or(USUAL_POLL_MS);
        given.unwrap_or_else(|| interval.min(u64::from(self.config.hosts) * 1000 / STARTS_PER_S))
    }
}

fn setup(config: &FleetConfig) -> Setup {
    Setup {
        infra_env_id: config.infra_env_id,
        seed: config.seed,
        first_index: config.first_index,
        agent_version: config.agent_version.as_str().into(),
        token: config.token.clone(),
        poll_ms: config.poll.map(millis),
        reply_cache_ms: millis(config.reply_cache),
        revive_ms: config.revive.map(millis),
        install_ms: config.install_time.map(millis),
        return_boots_ms: config.return_boots.map(millis),
        profile: config.profile,
        faults: config.faults.clone(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Evenly spread over the ramp, each a little early or late.
fn start_offset(seed: u64, place: u32, hosts: u32, ramp_ms: u64) -> u64 {
    let slot = ramp_ms / u64::from(hosts.max(1)) + 1;
    u64::from(place) * ramp_ms / u64::from(hosts.max(1)) + mix(&[seed, u64::from(place), 7]) % slot
}

/// Wall-clock time that never jumps.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start_ms: u64,
    started: Instant,
}

impl Clock {
    fn start() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            start_ms: millis(since_1970),
            started: Instant::now(),
        }
    }

    fn now_ms(&self) -> u64 {
        self.start_ms + millis(self.started.elapsed())
    }
}

/// Some of the hosts, and the connection they share.
struct Shard {
    hosts: Vec<SimHost>,
    /// When to look at which host; the second number keeps those of one millisecond in turn.
    wakes: BinaryHeap<Reverse<(u64, u64, u32)>>,
    turn: u64,
    /// The turn of each host's last wake-up; those before it are void.
    turns: Vec<u64>,
    wire: Wire,
    stats: Arc<Stats>,
    clock: Clock,
    timeout: Duration,
}

impl Shard {
    fn new(hosts: Vec<SimHost>, fleet: &Fleet, clock: Clock) -> Self {
        let mut shard = Self {
            wakes: BinaryHeap::with_capacity(hosts.len()),
            turn: 0,
            turns: vec![0; hosts.len()],
            wire: Wire::new(fleet.hub.clone(), fleet.tls.clone(), fleet.config.token.0.clone()),
            stats: fleet.stats.clone(),
            clock,
            timeout: fleet.config.request_timeout,
            hosts: Vec::new(),
        };
        for (at, mut host) in hosts.into_iter().enumerate() {
            shard.stats.enter(host.condition());
            // A fresh host wants nothing before its start, so this only asks for the time.
            let wake = match host.poll(0) {
                Next::WaitUntil(ms) => ms,
                Next::Send(_) | Next::Idle => clock.start_ms,
            };
            shard.wake_at(wake, at as u32);
            shard.hosts.push(host);
        }
        shard
    }

    fn wake_at(&mut self, ms: u64, host: u32) {
        self.turn += 1;
        self.turns[host as usize] = self.turn;
        self.wakes.push(Reverse((ms, self.turn, host)));
    }

    async fn run(
        mut self,
        mut stop: watch::Receiver<bool>,
        mut commands: mpsc::UnboundedReceiver<(u32, Power)>,
    ) {
        while !*stop.borrow() && stop.has_changed().is_ok() {
            while let Ok((host, power)) = commands.try_recv() {
                self.switch(host, power);
            }
            let now = self.clock.now_ms();
            let due = self.wakes.peek().map(|Reverse((at, _, _))| *at);
            if due.is_some_and(|at| at <= now) {
                self.serve_next().await;
                continue;
            }
            let pause = async {
                match due {
                    Some(at) => tokio::time::sleep(Duration::from_millis(at - now)).await,
                    // All hosts are blocked, silent or installed.
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = pause => {}
                _ = stop.changed() => {}
                Some((host, power)) = commands.recv() => self.switch(host, power),
            }
        }
    }

    fn switch(&mut self, at: u32, power: Power) {
        let now = self.clock.now_ms();
        let Some(host) = self.hosts.get_mut(at as usize) else {
            return;
        };
        let before = host.condition();
        match power {
            Power::BootDiscovery => host.boot_discovery(now),
            Power::BootDisk => host.boot_disk(now),
            Power::Reboot => host.reboot(now),
            Power::Off => host.power_off(),
        }
        self.stats.change(before, host.condition());
        self.wake_at(now, at);
    }

    /// Does all that the host at the head of the heap wants now.
    async fn serve_next(&mut self) {
        let Some(Reverse((_, turn, at))) = self.wakes.pop() else {
            return;
        };
        if self.turns[at as usize] != turn {
            return;
        }
        let host = &self.hosts[at as usize];
        let (condition, installs) = (host.condition(), host.installs());
        // A host that never stops asking must not keep the others waiting.
        const MOST_REQUESTS: usize = 8;
        let mut wake = Some(0);
        for _ in 0..MOST_REQUESTS {
            match self.hosts[at as usize].poll(self.clock.now_ms()) {
                Next::Send(request) => self.perform(at, request).await,
                Next::WaitUntil(ms) => {
                    wake = Some(ms);
                    break;
                }
                Next::Idle => {
                    wake = None;
                    break;
                }
            }
        }
        let host = &self.hosts[at as usize];
        self.stats.change(condition, host.condition());
        self.stats.installs(installs, host.installs());
        if let Some(wake) = wake {
            self.wake_at(wake.max(self.clock.now_ms()), at);
        }
    }

    async fn perform(&mut self, at: u32, request: Request) {
        let kind = match request.tag.call {
            Call::Register => Kind::Register,
            Call::Poll => Kind::Poll,
            Call::Reply(_) => Kind::Reply,
            Call::Progress => Kind::Progress,
            Call::Install => Kind::Install,
            Call::Logs => Kind::Logs,
            Call::Watch => Kind::Watch,
        };
        let started = Instant::now();
        let (status, outcome) = match tokio::time::timeout(self.timeout, self.wire.send(&request)).await {
            Ok(Ok((status, body))) => (Some(status), Outcome::Response { status, body }),
            Ok(Err(error)) => {
                tracing::debug!(%error, path = request.path, "no answer");
                (None, Outcome::Lost)
            }
            Err(_) => {
                tracing::debug!(path = request.path, "no answer in time");
                self.wire.close();
                (None, Outcome::Lost)
            }
        };
        let elapsed_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.stats.count(kind, status, elapsed_us);
        if let Some(status) = status.filter(|status| *status >= 400) {
            tracing::debug!(status, path = request.path, "refused");
        }
        self.hosts[at as usize].receive(self.clock.now_ms(), request.tag, outcome);
    }
}

#[cfg(test)]
mod tests;
