//! `kill -9` under two hundred writers, with moves under way, three times in a row.

use super::crew::Size;
use super::postgres::{Server, free_port};
use super::processes::place;
use super::trial::Trial;
use crate::served::{Place, Served};
use muster_simfleet::seed::mix;
use std::time::{Duration, Instant};

const CROWD: Size = Size {
    setters: 80,
    movers: 100,
    registrars: 20,
    pace: Duration::from_millis(5),
};
const ROUNDS: u64 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn killed_under_two_hundred_writers_it_keeps_what_it_acknowledged_on_sqlite() {
    let place = place();
    killed(&place, &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn killed_under_two_hundred_writers_it_keeps_what_it_acknowledged_on_postgresql() {
    let (server, place) = (Server::start().await, place());
    killed(&place, &["--database", &server.url("hub")]).await;
}

/// The one trial after which somebody has to start the hub again.
async fn killed(place: &Place, flags: &[&str]) {
    // Callers ask at the same address all the time; a port that the system gives to anybody might be taken meanwhile.
    let listen = format!("127.0.0.1:{}", free_port());
    let mut served = Served::start_on(place, &listen, flags);
    let mut trial = Trial::begin(&[&served], CROWD).await;
    trial.looks_away();
    for round in 0..ROUNDS {
        let wanted = 300 + (mix(&[trial.seed, round]) % 900) as usize;
        let before = trial.book().counts().0;
        let ground = std::sync::Arc::clone(&trial.ground);
        crate::served::until("work is done", async || {
            (ground.book.counts().0 > before + wanted).then_some(())
        })
        .await;
        served.kill();
        trial
            .claims
            .tell(format_args!("round {round}: killed after {wanted} more requests"));
        served = Served::start_on(place, &listen, flags);
        let started = Instant::now();
        trial.writes_work(&served, started).await;
    }
    trial.ends(served, || Served::start_with(place, flags)).await;
}
