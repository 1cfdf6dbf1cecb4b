//! A trial: a crew at work, trouble that comes and goes, and the questions that are asked each time.

use super::book::Book;
use super::claims::{Claims, came_true};
use super::crew::{Crew, Ground, SILENCE, Size, change, read};
use super::watch::{ALIVE, HEALTH, READY, Watch};
use crate::ledger::agree;
use crate::machines::{Machines, cluster};
use crate::served::{Served, until};
use muster_contract::v2::infra_env::CreateInfraEnv;
use muster_contract::{ClientError, HubClient};
use muster_simfleet::seed::mix;
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Writes work again this long after the cause has ended.
pub const AGAIN: Duration = Duration::from_secs(5);
/// Whoever asked before that gives up first.
const EVERYBODY: Duration = Duration::from_secs(5 + SILENCE.as_secs());
/// A hub that cannot write says so by then.
const NOTICED: Duration = Duration::from_secs(15);
/// A turn that hangs is given up, then a connection is tried: half a minute. Clients wait for a whole one.
const WAITS: Duration = Duration::from_secs(40);
/// Plenty for a move whose host is there.
const MOVED: Duration = Duration::from_secs(30);
const CLUSTERS: usize = 3;
const PULL_SECRET: &str = r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;
const SEED: &str = "MUSTER_CHAOS_SEED";

pub struct Trial {
    pub claims: Claims,
    pub seed: u64,
    size: Size,
    url: String,
    pub ground: Arc<Ground>,
    crew: Option<Crew>,
    /// Changed by the trial itself, and by nobody else.
    probe: Uuid,
    probes: u64,
    watch: Option<Watch>,
}

/// Since when something is wrong, and what is said about it: each refusal one of the words, readiness the first.
pub struct Trouble {
    pub since: Instant,
    pub words: &'static [&'static str],
}

impl Trial {
    /// Returns when everybody has got something done.
    pub async fn begin(hubs: &[&Served], size: Size) -> Self {
        let seed = match std::env::var(SEED) {
            Ok(text) => text.parse().unwrap(),
            Err(_) => mix(&[Uuid::new_v4().as_u64_pair().0]),
        };
        let hub = &hubs[0].hub;
        let machines = Machines::new(hub).await;
        machines.arrive(hub, 0..size.hosts()).await;
        let (mut clusters, mut settings) = (Vec::new(), Vec::new());
        for number in 0..CLUSTERS {
            clusters.push(cluster(hub, &format!("c{number}")).await);
        }
        for number in 0..=size.setters {
            settings.push(pool(hub, &format!("setting-{number}")).await);
        }
        let probe = settings.pop().unwrap();
        let urls: Vec<String> = hubs.iter().map(|hub| hub.url.clone()).collect();
        let book = Book::default();
        let ground = Arc::new(Ground {
            seed,
            book,
            machines,
            clusters,
            settings,
        });
        let mut trial = Self {
            claims: Claims::new(seed),
            seed,
            size,
            url: hubs[0].url.clone(),
            crew: Some(Crew::begin(&ground, &urls, size)),
            ground,
            probe,
            probes: 0,
            watch: None,
        };
        trial.watches(hubs[0]);
        let begun = Instant::now();
        until("everybody is at work", async || {
            trial
                .ground
                .book
                .left_behind(size.writers(), begun)
                .is_empty()
                .then_some(())
        })
        .await;
        trial.claims.tell("everybody is at work");
        trial
    }

    /// From now on this hub's answers about itself are kept.
    pub fn watches(&mut self, hub: &Served) {
        self.watch = None;
        self.watch = Some(Watch::over(hub.address()));
    }

    pub fn looks_away(&mut self) {
        self.watch = None;
    }

    pub fn book(&self) -> &Book {
        &self.ground.book
    }

    /// Called just before the cause begins.
    pub fn trouble(&mut self, what: &str, words: &'static [&'static str]) -> Trouble {
        self.claims.tell(what);
        let since = Instant::now();
        let early = self.book().refusals(since - Duration::from_secs(60), since);
        self.claims.hold(
            early.is_empty(),
            format_args!("before anything was wrong: {early:?}"),
        );
        Trouble { since, words }
    }

    /// The hub notices: it says that it is not ready, and so it does to a caller who waits.
    pub async fn is_told(&mut self, trouble: &Trouble) {
        let caller = self.caller_who_waits();
        let watch = self.watch.as_ref().unwrap();
        let not_ready = async || {
            let seen = watch.since(READY, trouble.since);
            seen.iter()
                .any(|sight| sight.status.is_some_and(|status| status != 200))
        };
        self.claims
            .soon(trouble.since, NOTICED, "readiness says no", not_ready)
            .await;
        let (answer, took) = caller.await.unwrap();
        let heard = format!(
            "a caller who waits hears {answer:?} after {:.1} s",
            took.as_secs_f64()
        );
        self.claims.tell(&heard);
        let told = matches!(&answer, Err(ClientError::Server(text)) if names(text, trouble.words));
        self.claims.hold(told && took < WAITS, heard);
        let said = watch.since(READY, trouble.since).into_iter();
        let said: BTreeSet<String> = said
            .filter(|one| one.status != Some(200))
            .map(|one| one.text)
            .collect();
        let fits = said.iter().any(|text| names(text, &trouble.words[..1]));
        self.claims.hold(
            fits,
            format_args!("readiness says {:?}: {said:?}", trouble.words[0]),
        );
    }

    /// Nobody has to find out by giving up.
    fn caller_who_waits(&mut self) -> JoinHandle<(Result<(), ClientError>, Duration)> {
        self.probes += 1;
        let (ground, setting, value) = (Arc::clone(&self.ground), self.probe, self.probes);
        ground.book.asks(setting, value);
        let client = HubClient::new(&self.url).unwrap();
        tokio::spawn(async move {
            let asked = Instant::now();
            let answer = change(&client, setting, value).await;
            (answer, asked.elapsed())
        })
    }

    /// The cause has just ended: new writes work in time, nobody is left behind, and what was said meanwhile was true.
    pub async fn recovers(&mut self, hub: &Served, trouble: &Trouble) {
        let ended = Instant::now();
        self.claims.tell("the cause has ended");
        self.writes_work(hub, ended).await;
        let (book, writers) = (&self.ground.book, self.size.writers());
        let all = async || book.left_behind(writers, ended).is_empty();
        self.claims
            .soon(ended, EVERYBODY, "everybody works again", all)
            .await;
        let left = book.left_behind(writers, ended);
        self.claims
            .hold(left.is_empty(), format_args!("left behind: {left:?}"));
        self.is_ready(ended).await;
        self.refusals_fit(trouble, ended);
    }

    /// A request that is sent now is done in time.
    pub async fn writes_work(&mut self, hub: &Served, since: Instant) {
        // Who asks just before a hub answers again shall ask again soon after.
        let client = HubClient::with_silence(&hub.url, Duration::from_secs(2)).unwrap();
        let (book, setting) = (&self.ground.book, self.probe);
        let mut value = self.probes;
        let probe = async || {
            value += 1;
            book.asks(setting, value);
            let done = change(&client, setting, value).await.is_ok();
            if done {
                book.promised(setting, value);
            }
            done
        };
        self.claims.soon(since, AGAIN, "a write works", probe).await;
        self.probes = value;
    }

    async fn is_ready(&mut self, ended: Instant) {
        let watch = self.watch.as_ref().unwrap();
        let ready = async || {
            let seen = watch.since(READY, ended);
            seen.last().is_some_and(|sight| sight.status == Some(200))
        };
        self.claims.soon(ended, AGAIN, "readiness says yes", ready).await;
        let alive = watch.since(ALIVE, ended - Duration::from_secs(600));
        let dead: Vec<_> = alive.iter().filter(|sight| sight.status != Some(200)).collect();
        let first: Vec<String> = dead
            .iter()
            .take(3)
            .map(|sight| {
                format!(
                    "{:?} {} at {:.1}",
                    sight.status,
                    sight.text,
                    self.claims.at(sight.at)
                )
            })
            .collect();
        let text = format!(
            "liveness never fails: {} of {}, {first:?}",
            dead.len(),
            alive.len()
        );
        self.claims.hold(dead.is_empty() && !alive.is_empty(), text);
    }

    /// Nothing that matters has changed since then.
    pub fn all_is_well(&mut self, since: Instant) {
        for path in [READY, HEALTH] {
            let seen = self.watch.as_ref().unwrap().since(path, since);
            let no = seen.into_iter().find(|sight| sight.status != Some(200));
            self.claims
                .hold(no.is_none(), format_args!("all is well: {no:?}"));
        }
    }

    /// Each refusal names the cause, and they end with it.
    fn refusals_fit(&mut self, trouble: &Trouble, ended: Instant) {
        let told = self.book().refusals(trouble.since, ended + AGAIN);
        let others: BTreeSet<&str> = told
            .iter()
            .map(|one| one.text.as_str())
            .filter(|text| !names(text, trouble.words))
            .collect();
        self.claims.tell(format_args!(
            "{} refusals, such as {:?}",
            told.len(),
            told.first().map(|one| &one.text)
        ));
        self.claims.hold(
            others.is_empty(),
            format_args!(
                "refusals that do not name the cause {:?}: {others:?}",
                trouble.words
            ),
        );
        let late = self.book().refusals(ended + AGAIN, Instant::now());
        self.claims.hold(
            late.is_empty(),
            format_args!("refusals after the cause has ended: {:?}", late.first()),
        );
    }

    /// Everybody rests, every move ends, and the hub's rows, feed and history say what was promised: as it runs, and
    /// as `again` finds it on the disk.
    pub async fn ends(mut self, mut hub: Served, again: impl FnOnce() -> Served) {
        if let Some(crew) = self.crew.take() {
            crew.rests().await;
        }
        self.looks_away();
        let (done, unknown) = self.book().counts();
        self.claims.tell(format_args!(
            "{done} requests were done, {unknown} have no answer"
        ));
        self.claims.hold(hub.is_alive(), "the hub still runs");
        if hub.is_alive() {
            self.moves_end(&hub.hub).await;
            self.everything_is_there(&hub, "as it runs").await;
            hub.kill();
        }
        drop(hub);
        let hub = again();
        self.everything_is_there(&hub, "started again").await;
        self.claims.end();
    }

    /// Agents do what they are told until all of their hosts are where they were promised to.
    pub async fn moves_end(&mut self, hub: &HubClient) {
        let (ground, begun) = (&self.ground, Instant::now());
        let open = async || {
            let mut open = Vec::new();
            for index in 0..self.size.hosts() {
                let host = hub
                    .host(ground.machines.infra_env, ground.machines.id(index))
                    .await
                    .unwrap();
                if !ground.book.hosts.allows(host.id, host.cluster_id) {
                    open.push((index, host));
                }
            }
            open
        };
        let arrive = async || {
            let open = open().await;
            for (index, host) in &open {
                ground.machines.obey(hub, *index, host.status.as_str()).await;
            }
            open.is_empty()
        };
        let took = came_true(begun, MOVED, arrive).await;
        self.claims.tell(format_args!("moves ended after {took:?}"));
        for (_, host) in open().await.into_iter().take(3) {
            let to = ground.book.hosts.destination(host.id);
            let now = format!("{} is {} of {:?}", host.id, host.status, host.cluster_id);
            self.claims.hold(
                false,
                format_args!("a move did not end: {now}, promised to {to:?}"),
            );
        }
    }

    pub async fn everything_is_there(&mut self, hub: &Served, when: &str) {
        let ground = &self.ground;
        let mut found = HashMap::new();
        for id in ground.settings.iter().chain([&self.probe]) {
            let text = hub.hub.infra_env(*id).await.unwrap().additional_ntp_sources;
            found.insert(*id, read(&text));
        }
        let differ = ground.book.settings_differ(&found);
        self.claims
            .hold(differ.is_empty(), format_args!("{when}: {differ:?}"));
        let there = hub.hub.hosts(ground.machines.infra_env).await.unwrap();
        let lost = ground
            .book
            .hosts_lost(&there.iter().map(|host| host.id).collect());
        self.claims.hold(
            lost.is_empty(),
            format_args!("{when}: machines are lost: {lost:?}"),
        );
        agree(
            hub,
            ground.machines.infra_env,
            &ground.clusters,
            &ground.book.hosts,
        )
        .await;
        self.claims.tell(format_args!("{when}: everything was looked at"));
    }
}

/// Any of the words, in capitals or not.
fn names(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}

async fn pool(hub: &HubClient, name: &str) -> Uuid {
    let wish: CreateInfraEnv =
        serde_json::from_value(json!({ "name": name, "pull_secret": PULL_SECRET })).unwrap();
    hub.create_infra_env(&wish).await.unwrap().id
}
