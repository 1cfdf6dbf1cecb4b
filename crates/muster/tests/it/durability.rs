//! `kill -9` in the middle of work: what was acknowledged is there afterwards, and nothing is there by half.

use crate::ledger::{Ledger, agree};
use crate::machines::{IN_FLIGHT, Machines, cluster};
use crate::served::{Place, Served, on_both, until};
use futures_util::StreamExt;
use futures_util::stream;
use muster_contract::v2::host::ClusterHostsQuery;
use muster_contract::{ClientError, HubClient};
use muster_simfleet::seed::mix;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use uuid::Uuid;

on_both! {
    acknowledged_binds_and_moves_survive_a_kill,
    acknowledged_registrations_survive_a_kill,
    a_killed_cluster_delete_frees_all_of_its_hosts_or_none,
}

const HOSTS: u32 = 1_000;
/// These are in a cluster and measured before the first round, so that moving them hands them over at once.
const LENT_BEFORE: u32 = 150;
const CLUSTERS: u32 = 10;
const SEEDS: [u64; 3] = [11, 42, 1_000_003];

async fn acknowledged_binds_and_moves_survive_a_kill(place: &Place) {
    let mut served = Served::start(place);
    let machines = Machines::new(&served.hub).await;
    machines.arrive(&served.hub, 0..HOSTS + SEEDS.len() as u32).await;
    let mut clusters = Vec::new();
    for number in 0..CLUSTERS {
        clusters.push(cluster(&served.hub, &format!("c{number}")).await);
    }
    let ledger = Ledger::default();
    lend_first(&served.hub, &machines, &clusters, &ledger).await;

    for (round, seed) in SEEDS.into_iter().enumerate() {
        served = killed_in_the_middle(served, place, &machines, &clusters, &ledger, seed).await;
        let hosts = agree(&served, machines.infra_env, &clusters, &ledger).await;
        assert!(hosts.len() > HOSTS as usize, "seed {seed}: no host is lost");
        work_goes_on(&served.hub, &machines, &clusters, &ledger, HOSTS + round as u32).await;
        a_pending_move_ends(&served.hub, &machines, &ledger).await;
    }
}

/// Some hosts are lent, registered again and measured: they change hands without going back first.
async fn lend_first(hub: &HubClient, machines: &Machines, clusters: &[Uuid], ledger: &Ledger) {
    for index in 0..LENT_BEFORE {
        let (host, to) = (machines.id(index), clusters[index as usize % clusters.len()]);
        hub.bind_host(machines.infra_env, host, to).await.unwrap();
        ledger.acknowledged(host, to);
    }
    machines.arrive(hub, 0..LENT_BEFORE).await;
}

/// One bind or move for each of the thousand hosts, 64 at a time, until the hub is shot.
async fn killed_in_the_middle(
    served: Served,
    place: &Place,
    machines: &Machines,
    clusters: &[Uuid],
    ledger: &Ledger,
    seed: u64,
) -> Served {
    let hub = served.hub.clone();
    let victim = Mutex::new(Some(served));
    let shot_at = 100 + (mix(&[seed]) % 800) as usize;
    let answered = AtomicUsize::new(0);
    let (asked, unanswered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let requests = (0..HOSTS).map(async |index| {
        // The same hosts in another order each round.
        let index = (index + (mix(&[seed, 1]) % u64::from(HOSTS)) as u32) % HOSTS;
        let host = machines.id(index);
        let to = clusters[mix(&[seed, 2, index.into()]) as usize % clusters.len()];
        if victim.lock().unwrap().is_none() || ledger.destination(host) == Some(to) {
            return;
        }
        ledger.asked(host, to);
        asked.fetch_add(1, Ordering::SeqCst);
        match lend(&hub, machines.infra_env, host, to, ledger).await {
            Ok(()) => {
                ledger.acknowledged(host, to);
                if answered.fetch_add(1, Ordering::SeqCst) + 1 == shot_at {
                    unanswered.store(asked.load(Ordering::SeqCst) - shot_at, Ordering::SeqCst);
                    victim.lock().unwrap().take().unwrap().kill();
                }
            }
            // Whether the hub did it is open; the ledger allows both.
            Err(ClientError::Unreachable(_)) => {}
            Err(error) => panic!("seed {seed}: {host} to {to}: {error}"),
        }
    });
    stream::iter(requests)
        .buffer_unordered(IN_FLIGHT)
        .collect::<Vec<()>>()
        .await;
    assert!(
        victim.lock().unwrap().is_none(),
        "seed {seed}: the hub was killed"
    );
    assert!(
        unanswered.load(Ordering::SeqCst) > 0,
        "seed {seed}: it was killed with requests under way"
    );
    Served::start(place)
}

async fn lend(
    hub: &HubClient,
    infra_env: Uuid,
    host: Uuid,
    to: Uuid,
    ledger: &Ledger,
) -> Result<(), ClientError> {
    match ledger.destination(host) {
        None => hub.bind_host(infra_env, host, to).await.map(drop),
        Some(_) => hub.move_host(infra_env, host, to).await.map(drop),
    }
}

async fn work_goes_on(hub: &HubClient, machines: &Machines, clusters: &[Uuid], ledger: &Ledger, spare: u32) {
    let host = machines.id(spare);
    let bound = hub
        .bind_host(machines.infra_env, host, clusters[0])
        .await
        .unwrap();
    assert_eq!(bound.cluster_id, Some(clusters[0]));
    ledger.acknowledged(host, clusters[0]);
}

/// A move that waits for its host was acknowledged before the kill and is finished after it.
async fn a_pending_move_ends(hub: &HubClient, machines: &Machines, ledger: &Ledger) {
    let all = hub.hosts(machines.infra_env).await.unwrap();
    let waiting = all
        .iter()
        .find(|host| host.cluster_id.is_none() && ledger.destination(host.id).is_some());
    let Some(host) = waiting.map(|host| host.id) else {
        return;
    };
    let index = (0..HOSTS).find(|index| machines.id(*index) == host).unwrap();
    machines.arrive(hub, [index]).await;
    let bound = until("a move is finished", async || {
        hub.host(machines.infra_env, host).await.unwrap().cluster_id
    });
    assert_eq!(Some(bound.await), ledger.destination(host));
}

async fn acknowledged_registrations_survive_a_kill(place: &Place) {
    const ARRIVING: u32 = 300;
    let mut served = Served::start(place);
    let machines = Machines::new(&served.hub).await;
    for seed in SEEDS {
        let hub = served.hub.clone();
        let victim = Mutex::new(Some(served));
        let shot_at = 20 + (mix(&[seed]) % 200) as usize;
        let known = Mutex::new(Vec::new());
        let first = (mix(&[seed, 3]) % 1_000) as u32 * 1_000;
        let arrivals = (first..first + ARRIVING).map(async |index| {
            if victim.lock().unwrap().is_none() || machines.register(&hub, index).await.is_err() {
                return;
            }
            let count = {
                let mut known = known.lock().unwrap();
                known.push(index);
                known.len()
            };
            if count == shot_at {
                victim.lock().unwrap().take().unwrap().kill();
            }
        });
        stream::iter(arrivals)
            .buffer_unordered(IN_FLIGHT)
            .collect::<Vec<()>>()
            .await;
        served = Served::start(place);
        let known = known.into_inner().unwrap();
        assert!(
            known.len() >= shot_at && known.len() < ARRIVING as usize,
            "seed {seed}: {}",
            known.len()
        );
        agree(&served, machines.infra_env, &[], &Ledger::default()).await;
        let there = served.hub.hosts(machines.infra_env).await.unwrap();
        for index in known {
            assert!(
                there.iter().any(|host| host.id == machines.id(index)),
                "seed {seed}: host {index} is lost"
            );
        }
        machines.arrive(&served.hub, first..first + ARRIVING).await;
        let there = served.hub.hosts(machines.infra_env).await.unwrap();
        let arrived =
            (first..first + ARRIVING).filter(|index| there.iter().any(|host| host.id == machines.id(*index)));
        assert_eq!(arrived.count(), ARRIVING as usize);
    }
}

async fn a_killed_cluster_delete_frees_all_of_its_hosts_or_none(place: &Place) {
    const MEMBERS: u32 = 100;
    let mut served = Served::start(place);
    let machines = Machines::new(&served.hub).await;
    machines.arrive(&served.hub, 0..MEMBERS).await;
    let mut doomed = None;
    // The more is asked in between, the later the shot: from before the commit to after it.
    for (round, questions) in [0, 1, 2, 4, 8, 32].into_iter().enumerate() {
        let hub = served.hub.clone();
        let id = match doomed {
            Some(id) => id,
            None => full_cluster(&hub, &machines, round, MEMBERS).await,
        };
        let shot = async {
            for _ in 0..questions {
                hub.hub_status().await.unwrap();
            }
            served.kill();
        };
        let (answer, ()) = futures_util::future::join(hub.delete_cluster(id), shot).await;
        served = Served::start(place);
        let exists = served.hub.cluster(id).await.is_ok();
        assert!(answer.is_err() || !exists, "an acknowledged delete is done");
        let query = ClusterHostsQuery::default();
        let listed = served.hub.cluster_hosts(id, &query).await.unwrap().len();
        let hosts = served.hub.hosts(machines.infra_env).await.unwrap();
        let bound = hosts.iter().filter(|host| host.cluster_id == Some(id)).count();
        let expected = if exists { MEMBERS as usize } else { 0 };
        assert_eq!(
            (bound, listed),
            (expected, expected),
            "after {questions} questions"
        );
        assert_eq!(hosts.len(), MEMBERS as usize);
        agree(&served, machines.infra_env, &[id], &Ledger::default()).await;
        doomed = exists.then_some(id);
    }
    if let Some(id) = doomed {
        served.hub.delete_cluster(id).await.unwrap();
    }
    machines.arrive(&served.hub, 0..MEMBERS).await;
}

async fn full_cluster(hub: &HubClient, machines: &Machines, round: usize, members: u32) -> Uuid {
    let id = cluster(hub, &format!("doomed-{round}")).await;
    // Hosts that came back from the last one register first.
    machines.arrive(hub, 0..members).await;
    let binds = (0..members).map(|index| hub.bind_host(machines.infra_env, machines.id(index), id));
    let bound: Vec<_> = stream::iter(binds).buffer_unordered(IN_FLIGHT).collect().await;
    bound.into_iter().for_each(|one| drop(one.unwrap()));
    id
}
