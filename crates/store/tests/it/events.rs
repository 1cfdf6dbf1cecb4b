//! Which lines of history a question finds.

use crate::place::Place;
use crate::sample::*;
use muster_domain::host::Host;
use muster_domain::id::ClusterId;
use muster_domain::journal::Category;
use muster_domain::journal::{Entry, Severity};
use muster_store::{Commit, EventQuery, SeverityCounts, Store};
use uuid::Uuid;

crate::on_both!(
    a_cluster_scope_widens_by_hosts_deleted_hosts_and_cluster_level,
    hosts_alone_show_all_lines_of_living_hosts_once,
    an_infra_env_shows_its_lines_also_while_hosts_are_lent,
    lines_are_counted_by_severity_before_that_filter,
    a_message_is_found_in_any_case_and_literally,
    history_is_paged_in_both_directions,
    only_lines_for_people_are_shown_unasked,
);

struct Scene {
    cluster: ClusterId,
    living: Host,
    deleted: Host,
}

/// Two hosts in a cluster, one of them deleted later, and lines about each, the cluster and a stranger.
async fn scene(store: &Store) -> Scene {
    let cluster = ClusterId(Uuid::new_v4());
    let mut hosts = [host(), host(), host()];
    hosts[0].cluster = Some(cluster);
    hosts[1].cluster = Some(cluster);
    let [living, deleted, stranger] = hosts;
    let lines = [
        living.entry("test", Severity::Info, "living"),
        deleted.entry("test", Severity::Warning, "deleted"),
        Entry::new("test", Severity::Error, "cluster").of_cluster(cluster),
        stranger.entry("test", Severity::Info, "stranger"),
    ];
    store
        .commit(of([&living, &deleted, &stranger].map(|host| put(host.clone()))))
        .await
        .unwrap();
    for (seconds, line) in (0..).zip(lines) {
        store
            .commit(Commit {
                journal: vec![line],
                ..Commit::new(at(seconds))
            })
            .await
            .unwrap();
    }
    store.commit(of([delete(deleted.key(), 1)])).await.unwrap();
    Scene {
        cluster,
        living,
        deleted,
    }
}

async fn told(store: &Store, query: &EventQuery) -> Vec<String> {
    let page = store.events_list(query).await.unwrap();
    page.events.into_iter().map(|event| event.entry.message).collect()
}

async fn a_cluster_scope_widens_by_hosts_deleted_hosts_and_cluster_level(place: &Place) {
    let store = place.open().await;
    let Scene {
        cluster,
        living,
        deleted,
    } = scene(&store).await;
    let all = EventQuery {
        cluster: Some(cluster),
        ..EventQuery::default()
    };
    assert_eq!(told(&store, &all).await, ["living", "deleted", "cluster"]);
    let hosts = EventQuery {
        hosts: vec![living.id],
        ..all.clone()
    };
    assert_eq!(told(&store, &hosts).await, ["living"]);
    let gone = EventQuery {
        deleted_hosts: true,
        ..all.clone()
    };
    assert_eq!(told(&store, &gone).await, ["deleted"]);
    let level = EventQuery {
        cluster_level: true,
        ..all.clone()
    };
    assert_eq!(told(&store, &level).await, ["cluster"]);
    let two = EventQuery {
        hosts: vec![living.id],
        cluster_level: true,
        ..all.clone()
    };
    assert_eq!(told(&store, &two).await, ["living", "cluster"]);
    // The pool of a question about a cluster does not matter.
    let pool = EventQuery {
        infra_env: Some(deleted.infra_env),
        ..all
    };
    assert_eq!(told(&store, &pool).await.len(), 3);
}

async fn hosts_alone_show_all_lines_of_living_hosts_once(place: &Place) {
    let store = place.open().await;
    let Scene { living, deleted, .. } = scene(&store).await;
    let mut twin = host();
    twin.id = living.id;
    saved(&store, twin).await;
    let query = EventQuery {
        hosts: vec![living.id, deleted.id],
        ..EventQuery::default()
    };
    assert_eq!(told(&store, &query).await, ["living"]);
    let query = EventQuery {
        infra_env: Some(deleted.infra_env),
        ..query
    };
    assert_eq!(told(&store, &query).await, ["living"], "hosts go before the pool");
}

async fn an_infra_env_shows_its_lines_also_while_hosts_are_lent(place: &Place) {
    let store = place.open().await;
    let Scene { living, deleted, .. } = scene(&store).await;
    for (host, line) in [(living, "living"), (deleted, "deleted")] {
        let query = EventQuery {
            infra_env: Some(host.infra_env),
            ..EventQuery::default()
        };
        assert_eq!(told(&store, &query).await, [line]);
    }
    assert_eq!(told(&store, &EventQuery::default()).await.len(), 4);
}

async fn lines_are_counted_by_severity_before_that_filter(place: &Place) {
    let store = place.open().await;
    let Scene { cluster, living, .. } = scene(&store).await;
    let query = EventQuery {
        cluster: Some(cluster),
        severities: vec![Severity::Info, Severity::Error],
        limit: Some(1),
        ..EventQuery::default()
    };
    let page = store.events_list(&query).await.unwrap();
    assert_eq!((page.events.len(), page.total), (1, 2));
    assert_eq!(
        page.severities,
        SeverityCounts {
            info: 1,
            warning: 1,
            error: 1,
            critical: 0
        }
    );

    let none = store
        .events_list(&EventQuery {
            limit: Some(0),
            ..query
        })
        .await
        .unwrap();
    assert_eq!((none.events.len(), none.total), (0, 2));

    let pool = EventQuery {
        infra_env: Some(living.infra_env),
        ..EventQuery::default()
    };
    let page = store.events_list(&pool).await.unwrap();
    assert_eq!((page.total, page.severities), (1, SeverityCounts::default()));
}

async fn a_message_is_found_in_any_case_and_literally(place: &Place) {
    let store = place.open().await;
    let cluster = ClusterId(Uuid::new_v4());
    let texts = ["Disk 100% full", "disk 1000 full", "a_b", "axb", "back\\slash"];
    let journal = texts.map(|text| entry(text).of_cluster(cluster)).into();
    store.commit(Commit { journal, ..commit() }).await.unwrap();
    let ask = |part: &str| EventQuery {
        cluster: Some(cluster),
        message: Some(part.into()),
        ..EventQuery::default()
    };
    assert_eq!(told(&store, &ask("DISK")).await, &texts[..2]);
    assert_eq!(told(&store, &ask("100%")).await, &texts[..1]);
    assert_eq!(told(&store, &ask("a_b")).await, &texts[2..3]);
    assert_eq!(told(&store, &ask("\\")).await, &texts[4..]);
    let outside = EventQuery {
        cluster: None,
        ..ask("nothing like it")
    };
    assert_eq!(
        told(&store, &outside).await.len(),
        5,
        "only a cluster's history is searched"
    );
}

async fn history_is_paged_in_both_directions(place: &Place) {
    let store = place.open().await;
    let journal = (0..10).map(|number| entry(&number.to_string())).collect();
    // All at the same moment: the order of writing decides.
    store.commit(Commit { journal, ..commit() }).await.unwrap();
    let mut query = EventQuery {
        limit: Some(3),
        offset: 4,
        ..EventQuery::default()
    };
    assert_eq!(told(&store, &query).await, ["4", "5", "6"]);
    query.desc = true;
    assert_eq!(told(&store, &query).await, ["5", "4", "3"]);
    query = EventQuery {
        limit: None,
        offset: 8,
        ..EventQuery::default()
    };
    assert_eq!(told(&store, &query).await, ["8", "9"]);
}

async fn only_lines_for_people_are_shown_unasked(place: &Place) {
    let store = place.open().await;
    store
        .commit(Commit {
            journal: vec![entry("hello")],
            ..commit()
        })
        .await
        .unwrap();
    let metrics = EventQuery {
        categories: vec![Category::Metrics],
        ..EventQuery::default()
    };
    assert_eq!(told(&store, &metrics).await.len(), 0);
    let both = EventQuery {
        categories: vec![Category::Metrics, Category::User],
        ..metrics
    };
    assert_eq!(told(&store, &both).await, ["hello"]);
}
