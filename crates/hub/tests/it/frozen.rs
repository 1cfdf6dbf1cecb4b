//! A server that stops in the middle of everything and goes on later, as one that is frozen does.

use crate::door::Door;
use crate::place::{Place, is_postgres};
use axum::http::StatusCode;
use muster_hub::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Stands between the hub and its server, and keeps to itself what either says while it is shut.
struct Gate {
    address: String,
    is_open: watch::Sender<bool>,
}

impl Gate {
    async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let is_open = watch::Sender::new(true);
        let passing = is_open.subscribe();
        tokio::spawn(async move {
            while let Ok((here, _)) = listener.accept().await {
                let (here_in, here_out) = here.into_split();
                let (there_in, there_out) = TcpStream::connect(&server).await.unwrap().into_split();
                tokio::spawn(pass(here_in, there_out, passing.clone()));
                tokio::spawn(pass(there_in, here_out, passing.clone()));
            }
        });
        Self { address, is_open }
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut is_open: watch::Receiver<bool>) {
    let mut bytes = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if is_open.wait_for(|open| *open).await.is_err() || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_its_server_is_frozen_a_hub_lives_says_what_is_wrong_and_then_works_again() {
    if !is_postgres() {
        return;
    }
    let mut place = Place::new().await;
    let gate = Gate::before(place.address()).await;
    place.reach_by(&gate.address);
    let door = Door::at(place, Clock::System).await;
    assert_eq!(door.get("/ready").await.status, StatusCode::OK);

    gate.is_open.send_replace(false);
    // A write that worked a moment ago still counts.
    door.until("/ready", |answer| answer.status != StatusCode::OK)
        .await;
    assert_eq!(door.get("/livez").await.status, StatusCode::OK);
    for (path, status) in [
        ("/ready", StatusCode::SERVICE_UNAVAILABLE),
        ("/health", StatusCode::INTERNAL_SERVER_ERROR),
    ] {
        let answer = door.get(path).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text);
        assert!(answer.text.contains("does not answer in time"), "{}", answer.text);
    }

    gate.is_open.send_replace(true);
    door.until("/ready", |answer| answer.status == StatusCode::OK)
        .await;
    door.infra_env("pool").await;
    assert_eq!(door.get("/health").await.status, StatusCode::OK);
}
