//! Lists come in pages without gaps or doubles.

use crate::place::Place;
use crate::sample::*;
use muster_domain::host::{Host, Phase, Report};
use muster_domain::id::{ClusterId, HostKey, InfraEnvId};
use muster_store::{HostFilter, Store};
use std::collections::BTreeMap;
use uuid::Uuid;

crate::on_both!(
    pages_join_up_under_every_filter,
    a_page_carries_the_wanted_reports_of_its_hosts,
    loading_reads_every_host,
);

struct Fleet {
    infra_envs: [InfraEnvId; 3],
    clusters: [ClusterId; 2],
    filters: Vec<HostFilter>,
}

async fn fleet(store: &Store) -> Fleet {
    let infra_envs = [(); 3].map(|()| InfraEnvId(Uuid::new_v4()));
    let clusters = [(); 2].map(|()| ClusterId(Uuid::new_v4()));
    let mut writes = Vec::new();
    for number in 0..120 {
        let mut host = host_in(infra_envs[number % 3]);
        host.cluster = [None, Some(clusters[0]), Some(clusters[1]), None][number % 4];
        host.phase = if number % 5 == 0 {
            Phase::Unbinding
        } else {
            Phase::Discovery
        };
        writes.push(put(host));
    }
    store.commit(of(writes)).await.unwrap();
    let mut filters = Vec::new();
    for infra_env in [None, Some(infra_envs[0])] {
        for cluster in [None, Some(clusters[0])] {
            for status in [None, Some(muster_domain::host::Status::Unbinding)] {
                for free in [None, Some(true), Some(false)] {
                    filters.push(HostFilter {
                        infra_env,
                        cluster,
                        status,
                        free,
                    });
                }
            }
        }
    }
    Fleet {
        infra_envs,
        clusters,
        filters,
    }
}

async fn all(store: &Store, filter: &HostFilter, limit: u32) -> Vec<HostKey> {
    let mut keys: Vec<HostKey> = Vec::new();
    loop {
        let page = store
            .hosts_page(filter, keys.last().copied(), limit, &[], |_, _| None)
            .await
            .unwrap();
        assert!(page.len() <= usize::try_from(limit).unwrap());
        if page.is_empty() {
            return keys;
        }
        keys.extend(page.iter().map(|(host, _)| host.key()));
    }
}

async fn pages_join_up_under_every_filter(place: &Place) {
    let store = place.open().await;
    let fleet = fleet(&store).await;
    let everyone = store
        .hosts_page(&HostFilter::default(), None, 1000, &[], |_, _| None)
        .await
        .unwrap();
    assert_eq!(everyone.len(), 120);
    for filter in &fleet.filters {
        let mut wanted: Vec<HostKey> = everyone
            .iter()
            .map(|(host, _)| host)
            .filter(|host| filter.infra_env.is_none_or(|id| host.infra_env == id))
            .filter(|host| filter.cluster.is_none_or(|id| host.cluster == Some(id)))
            .filter(|host| filter.status.is_none_or(|status| host.status() == status))
            .filter(|host| filter.free.is_none_or(|free| host.is_free() == free))
            .map(|host| host.key())
            .collect();
        wanted.sort();
        assert_eq!(all(&store, filter, 7).await, wanted, "{filter:?}");
    }
    assert!(fleet.infra_envs.len() > fleet.clusters.len());
}

/// Longer in bytes than in characters, and with what separates reports.
fn inventory(number: usize) -> String {
    format!("{{\"n\":{number}, \"name\": \"Gerät 3 ü\"}}")
}

async fn a_page_carries_the_wanted_reports_of_its_hosts(place: &Place) {
    use Report::{Connectivity, Inventory, Validations};
    let store = place.open().await;
    let infra_env = InfraEnvId(Uuid::new_v4());
    let mut hosts: Vec<_> = (0..10).map(|_| host_in(infra_env)).collect();
    hosts.sort_by_key(|host| host.key());
    for (number, host) in hosts.iter().enumerate() {
        let inventory = inventory(number);
        let with = [(Inventory, Some(inventory.as_str())), (Connectivity, Some("{}"))];
        let with = if number == 4 { &[][..] } else { &with[..] };
        store.commit(of([put_with(host.clone(), with)])).await.unwrap();
    }
    let filter = HostFilter::default();
    let wanted = [Inventory, Validations];
    // One is known, and taken as it is known.
    let mut known = hosts[5].clone();
    known.revision = 1;
    known.clock = 77;
    let page = store
        .hosts_page(&filter, Some(hosts[2].key()), 4, &wanted, |key, revision| {
            (key == known.key() && revision == 1).then(|| known.clone())
        })
        .await
        .unwrap();
    let clocks: Vec<_> = page.iter().map(|(host, _)| host.clock).collect();
    assert_eq!(clocks, [0, 0, 77, 0]);
    let told: Vec<(HostKey, BTreeMap<Report, String>)> = page
        .into_iter()
        .map(|(host, reports)| (host.key(), reports))
        .collect();
    let wanted: Vec<_> = (3..7)
        .map(|number| {
            let inventory = (number != 4).then(|| (Inventory, inventory(number)));
            (hosts[number].key(), inventory.into_iter().collect())
        })
        .collect();
    assert_eq!(told, wanted);
}

async fn loading_reads_every_host(place: &Place) {
    let store = place.open().await;
    let mut wanted = Vec::new();
    for _ in 0..25 {
        let host = host();
        wanted.push(host.key());
        store.commit(of([put(host)])).await.unwrap();
    }
    wanted.sort();
    let mut loaded: Vec<HostKey> = Vec::new();
    loop {
        let piece = store.load::<Host>(loaded.last().copied(), 10).await.unwrap();
        if piece.is_empty() {
            break;
        }
        loaded.extend(piece.iter().map(muster_domain::host::Host::key));
    }
    assert_eq!(loaded, wanted);
}
