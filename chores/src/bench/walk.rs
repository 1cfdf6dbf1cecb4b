//! One fleet on one hub, walked through everything that is measured.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};

use super::HubBench;
use super::fleet::{Fleet, Get, POOL};
use super::image::percentiles;
use super::judged::{Binds, Feed};
use super::load::{self, Amount, Outcome, Work};
use super::meter::{Meter, Used};
use super::peers::Peers;
use super::reference::Reference;
use super::table::{Goal, Sheet, at_least, at_most, plain};
use crate::hub::{self, Hub};
use crate::wait;

/// Connections that poll, as in the measurements of others.
const POLLERS: usize = 16;
/// Requests in flight that each wait for the disk.
const WRITERS: usize = 64;
/// Hosts that are bound and unbound.
const BOUND: u32 = 5_000;
const SMALL_CLUSTER: u32 = 10;
/// Hosts that register again, as after a power cut: enough to last for seconds.
const AGAIN: u32 = 10_000;
/// Hosts bound in a second when it is measured how soon each is judged: so few that none waits for another.
const BINDS_PER_SECOND: f64 = 20.0;
/// A hub that still works after so long does not settle.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);

/// What is walked through: one fleet on one database.
pub struct Walk<'a> {
    pub args: &'a HubBench,
    /// Which build it is.
    pub name: &'static str,
    pub binary: &'a Path,
    pub home: &'a Path,
    /// The database's URL and first process; SQLite when absent.
    pub database: Option<(&'a str, u32)>,
    pub hosts: u32,
}

/// One build on its way.
struct Course<'a> {
    walk: &'a Walk<'a>,
    sheet: &'a mut Sheet,
    stand: Stand,
    reference: Reference,
    one: Vec<String>,
    many: Vec<String>,
}

/// One stretch of the way.
type Stage = fn(&mut Course<'_>) -> Result<()>;

/// In this order: each begins with what the one before has left.
const STAGES: [Stage; 11] = [
    |course| course.arrive(),
    |course| course.again(),
    |course| course.polls(),
    |course| course.paced(),
    |course| course.lend_to_one(),
    |course| course.take_back_from_one(),
    |course| course.lend_to_many(),
    |course| course.talk(),
    |course| course.take_back_from_many(),
    |course| course.lists(),
    |course| course.cold_start(),
];

/// Walks all of them side by side: each does a stage, and then all do the next one. Whatever the machine does in a minute
/// meets every build. Who goes first changes from stage to stage, and with `turn`. Gives the sheets as far as they came.
pub fn side_by_side(walks: Vec<Walk<'_>>, turn: usize) -> (Vec<Sheet>, Result<()>) {
    let mut sheets: Vec<Sheet> = walks.iter().map(Walk::sheet).collect();
    let done = walked(&walks, &mut sheets, turn);
    (sheets, done)
}

fn walked(walks: &[Walk<'_>], sheets: &mut [Sheet], turn: usize) -> Result<()> {
    let mut courses = Vec::with_capacity(walks.len());
    for (walk, sheet) in walks.iter().zip(sheets) {
        courses.push(Course::begin(walk, sheet)?);
    }
    for (at, stage) in STAGES.iter().enumerate() {
        let is_reversed = !(at + turn).is_multiple_of(2);
        let mut places: Vec<usize> = (0..courses.len()).collect();
        if is_reversed {
            places.reverse();
        }
        for place in places {
            if courses.len() > 1 {
                eprintln!(" {}", courses[place].walk.name);
            }
            stage(&mut courses[place])?;
        }
    }
    courses.into_iter().try_for_each(|course| course.stand.hub.stop())
}

/// What each host does in a run.
#[derive(Clone, Copy)]
enum Deed<'a> {
    Register,
    Ask,
    Poll,
    /// An agent that starts: register, ask, report.
    Arrive,
    Bind(&'a [String], u32),
    Unbind,
    /// What a bound host says at its polls: its inventory, and whether it reaches the others.
    Talk(&'a Peers),
}

struct Deeds<'a> {
    fleet: &'a Fleet,
    hosts: u32,
    deed: Deed<'a>,
}

impl Work for Deeds<'_> {
    fn request(&self, item: u64, step: usize, out: &mut Vec<u8>) -> bool {
        let host = (item % u64::from(self.hosts)) as u32;
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        match (self.deed, step) {
            (Deed::Register | Deed::Arrive, 0) => self.fleet.register(host, out),
            (Deed::Ask | Deed::Poll | Deed::Talk(_), 0) | (Deed::Arrive, 1) => self.fleet.ask(host, now, out),
            (Deed::Poll | Deed::Talk(_), 1) | (Deed::Arrive, 2) => self.fleet.reply(host, out),
            (Deed::Talk(peers), 2) => match peers.of(host) {
                Some(reply) => self.fleet.say(host, reply, out),
                None => return false,
            },
            (Deed::Bind(clusters, size), 0) => self.fleet.bind(host, &clusters[(host / size) as usize], out),
            (Deed::Unbind, 0) => self.fleet.unbind(host, out),
            (
                Deed::Register
                | Deed::Ask
                | Deed::Poll
                | Deed::Arrive
                | Deed::Bind(..)
                | Deed::Unbind
                | Deed::Talk(_),
                _,
            ) => return false,
        }
        true
    }
}

/// A hub that is being measured.
struct Stand {
    hub: Hub,
    address: SocketAddr,
    meter: Meter,
    fleet: Fleet,
    seconds: Duration,
}

impl Stand {
    fn new(hub: Hub, fleet: Fleet, database: Option<u32>, seconds: u64) -> Result<Self> {
        let address = address(&hub.url)?;
        let meter = Meter {
            hub: hub.pid(),
            database,
        };
        Ok(Self {
            hub,
            address,
            meter,
            fleet,
            seconds: Duration::from_secs(seconds),
        })
    }

    fn run(
        &self,
        what: &str,
        connections: usize,
        hosts: u32,
        amount: Amount,
        deed: Deed<'_>,
    ) -> Result<(Outcome, Used)> {
        eprintln!("  {what} …");
        let work = Deeds {
            fleet: &self.fleet,
            hosts,
            deed,
        };
        let before = self.meter.read()?;
        let outcome = load::run(self.address, connections, amount, &work).context(what.to_owned())?;
        let used = self.meter.since(before)?;
        Ok((outcome.clean(what)?, used))
    }

    /// Every host once, durably.
    fn all(&self, what: &str, hosts: u32, deed: Deed<'_>) -> Result<(Outcome, Used)> {
        self.run(what, WRITERS, hosts, Amount::Items(hosts.into()), deed)
    }

    /// Every host asks once, so that none counts as silent in what follows.
    fn stay_alive(&self) -> Result<()> {
        self.all("all hosts ask", self.fleet.hosts, Deed::Ask).map(drop)
    }

    fn idle(&self) -> Result<Used> {
        eprintln!("  nothing at all …");
        let before = self.meter.read()?;
        self.rest(self.seconds)?;
        self.meter.since(before)
    }

    fn rest(&self, time: Duration) -> Result<()> {
        let started = Instant::now();
        wait::until("some time to pass", time * 2, || {
            wait::pause(Duration::from_millis(200));
            Ok((started.elapsed() >= time).then_some(()))
        })
    }

    /// Until the hub has done what was left to do after the last run; says how long it took.
    fn settle(&self) -> Result<f64> {
        let started = Instant::now();
        wait::until("the hub to settle", SETTLE_LIMIT, || {
            let before = self.meter.read()?;
            wait::pause(Duration::from_millis(500));
            Ok((self.meter.since(before)?.percent() < 10.0).then_some(()))
        })?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// The median of a few lists, in milliseconds, and the bytes of one.
    fn list(&self, path: String) -> Result<(f64, f64)> {
        eprintln!("  GET {} …", path.split('?').next().unwrap_or_default());
        let outcome = load::run(self.address, 1, Amount::Items(9), &Get(path))?.clean("list")?;
        Ok((outcome.percentile(0.5), outcome.bytes as f64 / 9.0))
    }
}

pub fn address(url: &str) -> Result<SocketAddr> {
    url.trim_start_matches("http://")
        .parse()
        .with_context(|| format!("{url} is no address"))
}

impl Walk<'_> {
    fn sheet(&self) -> Sheet {
        Sheet::of_fleet(
            self.hosts,
            if self.database.is_some() {
                "PostgreSQL"
            } else {
                "SQLite"
            },
        )
    }

    fn start(&self) -> Result<Hub> {
        Hub::start(&hub::Options {
            binary: self.binary,
            listen: "127.0.0.1:0",
            data_dir: self.home,
            database: self.database.map(|(url, _)| url),
            ends_with_us: true,
        })
    }
}

impl<'a> Course<'a> {
    fn begin(walk: &'a Walk<'a>, sheet: &'a mut Sheet) -> Result<Self> {
        let hub = walk.start()?;
        let fleet = Fleet::create(&hub.url, walk.hosts)?;
        let reference = Reference::measure(walk.home, &fleet, walk.args.seconds)?;
        sheet.reference(&reference);
        let url = &hub.url;
        let one = vec![Fleet::cluster(url, "bench-one")?];
        let many = (0..walk.hosts.min(BOUND).div_ceil(SMALL_CLUSTER))
            .map(|number| Fleet::cluster(url, &format!("bench-small-{number}")))
            .collect::<Result<Vec<_>>>()?;
        let stand = Stand::new(hub, fleet, walk.database.map(|(_, pid)| pid), walk.args.seconds)?;
        Ok(Self {
            walk,
            sheet,
            stand,
            reference,
            one,
            many,
        })
    }

    fn arrive(&mut self) -> Result<()> {
        let (stand, sheet) = (&self.stand, &mut *self.sheet);
        let hosts = self.walk.hosts;
        let (registered, used) = stand.all("register", hosts, Deed::Register)?;
        sheet.add("register /s", registered.per_second(), at_least(3_000.0));
        sheet.against(
            "inserts",
            registered.per_second() / self.reference.inserts_per_second,
        );
        sheet.add("CPU ms per registration", used.cpu_ms(&registered), plain());
        let (reported, used) = stand.all("first poll", hosts, Deed::Poll)?;
        sheet.add("first poll and inventory /s", reported.per_second(), plain());
        sheet.add(
            "CPU ms per first poll and inventory",
            used.cpu_ms(&reported),
            plain(),
        );
        stand.settle().map(drop)
    }

    /// Hosts that the hub knows start anew, as after a power cut.
    fn again(&mut self) -> Result<()> {
        let (stand, sheet) = (&self.stand, &mut *self.sheet);
        let hosts = self.walk.hosts.min(AGAIN);
        let (registered, used) = stand.all("register again", hosts, Deed::Register)?;
        sheet.add("register again /s", registered.per_second(), plain());
        sheet.add("register again p99 ms", registered.percentile(0.99), plain());
        sheet.add("CPU ms per registration again", used.cpu_ms(&registered), plain());
        stand.all("report again", hosts, Deed::Poll)?;
        stand.settle().map(drop)
    }

    fn polls(&mut self) -> Result<()> {
        let (stand, sheet, reference) = (&self.stand, &mut *self.sheet, &self.reference);
        let hosts = self.walk.hosts;
        let amount = Amount::For(stand.seconds);
        let (asked, _) = stand.run("GET instructions", POLLERS, hosts, amount, Deed::Ask)?;
        sheet.add("GET instructions /s", asked.per_second(), plain());
        sheet.against("bare GET", asked.per_second() / reference.gets_per_second);
        let (polled, used) = stand.run("poll", POLLERS, hosts, amount, Deed::Poll)?;
        let cpu_ms = used.cpu_ms(&polled);
        sheet.add("poll /s", polled.per_second(), at_least(8_000.0));
        sheet.against("bare poll", polled.per_second() / reference.polls_per_second);
        sheet.add("poll p50 ms", polled.percentile(0.5), plain());
        sheet.add("poll p99 ms", polled.percentile(0.99), at_most(20.0));
        sheet.add("CPU ms per poll", cpu_ms, at_most(0.15));
        sheet.against("bare poll", cpu_ms / reference.cpu_ms_per_poll);
        sheet.add(
            "  of it the hub",
            1000.0 * used.hub / polled.items as f64,
            plain(),
        );
        sheet.add("CPU s per 1,000 polls", cpu_ms, plain());
        sheet.add(
            "RSS MB",
            stand.meter.rss_mb()?,
            at_most(60.0 + 0.006 * f64::from(hosts)),
        );
        Ok(())
    }

    fn paced(&mut self) -> Result<()> {
        let (stand, sheet) = (&self.stand, &mut *self.sheet);
        let (hosts, poll) = (self.walk.hosts, self.walk.args.poll);
        stand.stay_alive()?;
        // The hub writes down who is alive every 30 s; once that is done there is nothing left to do.
        stand.rest(Duration::from_secs(32))?;
        let idle = stand.idle()?;
        sheet.add("CPU % without a request", idle.percent(), at_most(2.0));
        let rate = f64::from(hosts) / f64::from(poll);
        let amount = Amount::Paced(rate, stand.seconds);
        let name = format!("1 poll per {poll} s");
        let (paced, used) = stand.run(&name, POLLERS, hosts, amount, Deed::Poll)?;
        // The goal is stated for 100,000 hosts; a few hosts are mostly the meter's own grain.
        let goal = 60.0 * f64::from(hosts) / 100_000.0;
        let goal = if hosts >= 10_000 { at_most(goal) } else { plain() };
        sheet.add(&format!("CPU % at {name}"), used.percent(), goal);
        sheet.add(
            &format!("p99 ms at {name}"),
            paced.percentile(0.99),
            at_most(50.0),
        );
        Ok(())
    }

    fn to_one(&self) -> Lending<'_> {
        Lending {
            shape: "1 cluster of 1,000",
            clusters: &self.one,
            size: POOL,
            hosts: self.walk.hosts.min(POOL),
        }
    }

    fn to_many(&self) -> Lending<'_> {
        Lending {
            shape: "clusters of 10",
            clusters: &self.many,
            size: SMALL_CLUSTER,
            hosts: self.walk.hosts.min(BOUND),
        }
    }

    fn lend_to_one(&mut self) -> Result<()> {
        let mut figures = self.to_one().lend(&self.stand)?;
        let path = format!("/api/muster/v1/hosts?cluster_id={}&limit=1000", self.one[0]);
        let (ms, bytes) = self.stand.list(path)?;
        figures.push(("v1 list of a cluster, ms".to_owned(), ms, at_most(50.0)));
        figures.push(("v1 list of a cluster, KB".to_owned(), bytes / 1000.0, plain()));
        self.note(figures)
    }

    fn take_back_from_one(&mut self) -> Result<()> {
        let figures = self.to_one().take_back(&self.stand)?;
        self.note(figures)
    }

    fn lend_to_many(&mut self) -> Result<()> {
        let figures = self.to_many().lend(&self.stand)?;
        self.note(figures)
    }

    fn talk(&mut self) -> Result<()> {
        let figures = self.to_many().talk(&self.stand)?;
        self.note(figures)
    }

    fn take_back_from_many(&mut self) -> Result<()> {
        let figures = self.to_many().take_back(&self.stand)?;
        self.note(figures)
    }

    fn note(&mut self, figures: Figures) -> Result<()> {
        for (name, value, goal) in figures {
            self.sheet.add(&name, value, goal);
        }
        Ok(())
    }

    fn lists(&mut self) -> Result<()> {
        let (stand, sheet) = (&self.stand, &mut *self.sheet);
        let pool = &stand.fleet.pools[0];
        let (ms, bytes) = stand.list(format!("/api/muster/v1/hosts?infra_env_id={pool}&limit=1000"))?;
        sheet.add("v1 list of 1,000, ms", ms, at_most(50.0));
        sheet.add("v1 list of 1,000, KB", bytes / 1000.0, plain());
        let (ms, bytes) = stand.list(format!("/api/assisted-install/v2/infra-envs/{pool}/hosts"))?;
        sheet.add("v2 list of 1,000, ms", ms, at_most(50.0));
        sheet.add("v2 list of 1,000, KB", bytes / 1000.0, plain());
        sheet.add(
            "RSS MB after it all",
            stand.meter.rss_mb()?,
            at_most(60.0 + 0.006 * f64::from(self.walk.hosts)),
        );
        Ok(())
    }

    /// As after a power cut: killed without a word, then started until it says it is ready.
    fn cold_start(&mut self) -> Result<()> {
        eprintln!("  kill and start again …");
        self.stand.hub.kill()?;
        let started = Instant::now();
        self.stand.hub = self.walk.start()?;
        let took = started.elapsed().as_secs_f64();
        self.sheet.add("cold start s", took, at_most(3.0));
        let meter = Meter {
            hub: self.stand.hub.pid(),
            database: None,
        };
        self.sheet
            .add("RSS MB after cold start", meter.rss_mb()?, plain());
        Ok(())
    }
}

type Figures = Vec<(String, f64, Goal)>;

/// Hosts that are lent to clusters of one size, and taken back.
struct Lending<'a> {
    shape: &'a str,
    clusters: &'a [String],
    size: u32,
    hosts: u32,
}

impl Lending<'_> {
    fn name(&self, what: &str) -> String {
        format!("{what}, {}", self.shape)
    }

    fn lend(&self, stand: &Stand) -> Result<Figures> {
        let mut figures = Vec::new();
        stand.stay_alive()?;
        let deed = Deed::Bind(self.clusters, self.size);
        let (bound, used) = stand.all(&self.name("bind"), self.hosts, deed)?;
        figures.push((self.name("bind /s"), bound.per_second(), at_least(3_000.0)));
        figures.push((self.name("CPU ms per bind"), used.cpu_ms(&bound), plain()));
        let what = self.name("re-register and report");
        let (arrived, _) = stand.all(&what, self.hosts, Deed::Arrive)?;
        figures.push((
            self.name("re-register and report /s"),
            arrived.per_second(),
            plain(),
        ));
        figures.push((self.name("settled after s"), stand.settle()?, plain()));
        let amount = Amount::For(stand.seconds);
        let polling = self.hosts.min(POOL);
        let (polled, used) = stand.run(&self.name("poll"), POLLERS, polling, amount, Deed::Poll)?;
        figures.push((self.name("poll /s"), polled.per_second(), plain()));
        figures.push((self.name("poll p99 ms"), polled.percentile(0.99), plain()));
        figures.push((self.name("CPU ms per poll"), used.cpu_ms(&polled), at_most(0.25)));
        stand.settle()?;
        Ok(figures)
    }

    /// Bound hosts that say at each poll which others they reach, too. In a large cluster the hub asks for that only now
    /// and then, so this is of small ones.
    fn talk(&self, stand: &Stand) -> Result<Figures> {
        let name = |what: &str| format!("{what}, {}, with connectivity", self.shape);
        let hosts = self.hosts.min(POOL);
        let peers = Peers::ask(&stand.fleet, &stand.hub.url, hosts)?;
        // What is new is written down; what follows is what hosts say most of the time.
        stand.all(&name("first poll"), hosts, Deed::Talk(&peers))?;
        stand.settle()?;
        let amount = Amount::For(stand.seconds);
        let (polled, used) = stand.run(&name("poll"), POLLERS, hosts, amount, Deed::Talk(&peers))?;
        stand.settle()?;
        Ok(vec![
            (name("poll /s"), polled.per_second(), plain()),
            (name("poll p50 ms"), polled.percentile(0.5), plain()),
            (name("poll p99 ms"), polled.percentile(0.99), plain()),
            (name("CPU ms per poll"), used.cpu_ms(&polled), plain()),
        ])
    }

    fn take_back(&self, stand: &Stand) -> Result<Figures> {
        let (freed, used) = stand.all(&self.name("unbind"), self.hosts, Deed::Unbind)?;
        let mut figures = vec![
            (self.name("unbind /s"), freed.per_second(), at_least(3_000.0)),
            (self.name("CPU ms per unbind"), used.cpu_ms(&freed), plain()),
        ];
        stand.all(&self.name("return"), self.hosts, Deed::Arrive)?;
        stand.settle()?;
        figures.extend(self.judged(stand)?);
        Ok(figures)
    }

    /// How long after the answer to its bind a host has been judged under its cluster, when its agent loses no time.
    fn judged(&self, stand: &Stand) -> Result<Figures> {
        let seconds = stand.seconds.as_secs_f64();
        let seconds = seconds.min(f64::from(self.hosts) / BINDS_PER_SECOND);
        let amount = Amount::Paced(BINDS_PER_SECOND, Duration::from_secs_f64(seconds));
        let binds = Binds {
            fleet: &stand.fleet,
            clusters: self.clusters,
            size: self.size,
            answered: Default::default(),
        };
        let feed = Feed::follow(&stand.hub.url)?;
        eprintln!("  {} …", self.name("bind one by one"));
        let bound = load::run(stand.address, POLLERS, amount, &binds)?.clean("bind one by one")?;
        let mut after = feed.after(&binds)?;
        let (p50, p99) = percentiles(&mut after);
        let hosts = bound.items as u32;
        stand.all(&self.name("unbind again"), hosts, Deed::Unbind)?;
        stand.all(&self.name("return again"), hosts, Deed::Arrive)?;
        stand.settle()?;
        Ok(vec![
            (self.name("settle time after a bind, p50 ms"), p50, plain()),
            (self.name("settle time after a bind, p99 ms"), p99, plain()),
        ])
    }
}
