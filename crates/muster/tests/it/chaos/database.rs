//! PostgreSQL is frozen, crashes and comes back, or is down for a minute.

use super::claims::lasts;
use super::crew::Size;
use super::postgres::Server;
use super::processes::place;
use super::trial::Trial;
use crate::served::{Place, Served};
use std::time::Duration;

const AWAY: &[&str] = &["cannot be reached", "does not answer in time"];
const SILENT: &[&str] = &["does not answer in time", "cannot be reached"];

fn hub_on(place: &Place, server: &Server) -> Served {
    Served::start_with(place, &["--database", &server.url("hub")])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_frozen_postgresql_is_told_and_used_again_when_it_wakes() {
    let (server, place) = (Server::start().await, place());
    let served = hub_on(&place, &server);
    let mut trial = Trial::begin(&[&served], Size::SOME).await;
    let trouble = trial.trouble("PostgreSQL is frozen", SILENT);
    let frozen = server.freeze();
    trial.is_told(&trouble).await;
    lasts(Duration::from_secs(10)).await;
    drop(frozen);
    trial.recovers(&served, &trouble).await;
    trial.ends(served, || hub_on(&place, &server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_postgresql_that_crashes_and_starts_again_is_used_again() {
    let (mut server, place) = (Server::start().await, place());
    let served = hub_on(&place, &server);
    let mut trial = Trial::begin(&[&served], Size::SOME).await;
    let trouble = trial.trouble("PostgreSQL crashes", AWAY);
    server.crash();
    server.come_back().await;
    trial.recovers(&served, &trouble).await;
    trial.ends(served, || hub_on(&place, &server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "cargo xtask test --only chaos"]
async fn a_postgresql_that_is_away_for_a_minute_is_told_and_used_again() {
    let (mut server, place) = (Server::start().await, place());
    let served = hub_on(&place, &server);
    let mut trial = Trial::begin(&[&served], Size::SOME).await;
    let trouble = trial.trouble("PostgreSQL goes away", AWAY);
    server.leave();
    trial.is_told(&trouble).await;
    lasts(Duration::from_secs(60).saturating_sub(trouble.since.elapsed())).await;
    server.come_back().await;
    trial.recovers(&served, &trouble).await;
    trial.ends(served, || hub_on(&place, &server)).await;
}
