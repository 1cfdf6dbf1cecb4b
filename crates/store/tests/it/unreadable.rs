//! Rows that cannot be read are left as they are and named; everybody else is there.

use crate::place::Place;
use crate::sample::*;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Effect, Host, Report};
use muster_domain::id::HostKey;
use muster_domain::infra_env::InfraEnv;
use muster_store::{ChangeKind, Commit, Delete, HostFilter, RowKind, Store, StoreError};
use std::collections::BTreeSet;

crate::on_both!(
    a_host_that_cannot_be_read_is_left_out_of_every_list_and_named_without_its_content,
    pages_are_full_in_spite_of_rows_that_are_left_out,
    a_document_of_a_newer_version_is_not_read_half,
    clusters_and_infra_envs_that_cannot_be_read_are_left_out_and_named,
    an_order_that_cannot_be_read_keeps_no_other_waiting,
    a_host_with_a_report_of_a_newer_version_is_set_aside_with_it,
    a_row_that_cannot_be_read_is_not_written_over,
    a_cluster_whose_host_cannot_be_read_is_not_deleted,
    rows_beside_a_host_that_are_damaged_keep_no_other_from_being_loaded,
    a_row_that_was_mended_is_read_again,
    what_is_written_carries_its_version,
);

async fn several(store: &Store, count: usize) -> Vec<Host> {
    let mut hosts = Vec::new();
    for _ in 0..count {
        hosts.push(saved(store, host()).await);
    }
    hosts.sort_by_key(Host::key);
    hosts
}

async fn spoil(place: &Place, key: HostKey, change: &str) {
    let text = format!(
        "update hosts set {change} where infra_env_id = '{}' and host_id = '{}'",
        key.infra_env, key.host
    );
    place.tamper(&text).await;
}

async fn document(place: &Place, key: HostKey) -> String {
    let text = format!(
        "select doc from hosts where infra_env_id = '{}' and host_id = '{}'",
        key.infra_env, key.host
    );
    place.text(&text).await
}

fn keys<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> Vec<HostKey> {
    hosts.into_iter().map(Host::key).collect()
}

async fn loaded(store: &Store, piece: u32) -> Vec<HostKey> {
    let mut all = Vec::new();
    loop {
        let hosts = store.load::<Host>(all.last().copied(), piece).await.unwrap();
        if hosts.is_empty() {
            return all;
        }
        all.extend(keys(&hosts));
    }
}

async fn paged(store: &Store, piece: u32, wanted: &[Report]) -> Vec<HostKey> {
    let (mut all, filter) = (Vec::new(), HostFilter::default());
    loop {
        let last = all.last().copied();
        let page = store
            .hosts_page(&filter, last, piece, wanted, |_, _| None)
            .await
            .unwrap();
        all.extend(keys(page.iter().map(|(host, _)| host)));
        if page.len() < piece as usize {
            return all;
        }
        assert_eq!(page.len(), piece as usize);
    }
}

fn named(store: &Store, kind: RowKind) -> BTreeSet<String> {
    let rows = store.unreadable().into_iter().filter(|row| row.kind == kind);
    rows.map(|row| row.id.clone()).collect()
}

async fn a_host_that_cannot_be_read_is_left_out_of_every_list_and_named_without_its_content(place: &Place) {
    let store = place.open().await;
    let hosts = several(&store, 8).await;
    let secret = r#"'{"secret": "correct-horse"}'"#;
    let other = serde_json::to_string(&hosts[7]).unwrap().replace('\'', "''");
    let mut spoilt = vec![
        (0, "doc = 'rubbish'".to_owned()),
        (1, format!("doc = {secret}")),
        (2, "version = 99".to_owned()),
        (3, format!("doc = '{other}'")),
    ];
    if !place.is_postgres() {
        // Types that only this database lets in, and bytes that are no text.
        spoilt.push((4, "doc = cast(x'7bff' as text)".to_owned()));
        spoilt.push((5, "revision = 'many'".to_owned()));
    }
    for (at, change) in &spoilt {
        spoil(place, hosts[*at].key(), change).await;
    }
    let good = keys(&hosts[spoilt.len()..]);
    for piece in [1, 2, 3, 100] {
        assert_eq!(loaded(&store, piece).await, good, "{piece} at a time");
        assert_eq!(paged(&store, piece, &[]).await, good, "{piece} at a time");
    }
    let bad = hosts[..spoilt.len()].iter().map(|host| host.key().to_string());
    assert_eq!(named(&store, RowKind::Noun(ChangeKind::Host)), bad.collect());
    for row in store.unreadable() {
        assert!(
            !row.reason.is_empty() && !row.to_string().contains("horse"),
            "{row}"
        );
    }
    for host in &hosts[..spoilt.len()] {
        let error = store.find(host.key()).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Unreadable(row) if row.host == Some(host.key())),
            "{error:?}"
        );
        let error = store.hosts_by_id(host.id).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreadable(_)), "{error:?}");
    }
    assert_eq!(
        store.find(hosts[7].key()).await.unwrap().as_ref(),
        Some(&hosts[7])
    );
    store.close().await;
    let store = place.open().await;
    assert_eq!(loaded(&store, 5).await, good, "and after a restart");
}

async fn pages_are_full_in_spite_of_rows_that_are_left_out(place: &Place) {
    let store = place.open().await;
    let hosts = several(&store, 12).await;
    let mut good = Vec::new();
    for (at, host) in hosts.iter().enumerate() {
        match at % 3 {
            0 => good.push(host.key()),
            _ => spoil(place, host.key(), "doc = '{}'").await,
        }
    }
    let filter = HostFilter::default();
    let first = store
        .hosts_page(&filter, None, 3, &Report::ALL, |_, _| None)
        .await
        .unwrap();
    assert_eq!(keys(first.iter().map(|(host, _)| host)), good[..3]);
    assert_eq!(paged(&store, 2, &Report::ALL).await, good);
}

async fn a_document_of_a_newer_version_is_not_read_half(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    spoil(place, host.key(), "version = version + 1").await;
    let error = store.find(host.key()).await.unwrap_err().to_string();
    assert!(error.contains("a newer program wrote it"), "{error}");
}

async fn clusters_and_infra_envs_that_cannot_be_read_are_left_out_and_named(place: &Place) {
    let store = place.open().await;
    let (clusters, pools) = (
        [cluster(), cluster(), cluster()],
        [infra_env(), infra_env(), infra_env()],
    );
    for cluster in clusters.clone() {
        store.commit(of([put(cluster)])).await.unwrap();
    }
    for infra_env in pools.clone() {
        store.commit(of([put(infra_env)])).await.unwrap();
    }
    let spoil = async |table: &str, id: String, change: &str| {
        place
            .tamper(&format!("update {table} set {change} where id = '{id}'"))
            .await;
    };
    spoil("clusters", clusters[0].id.to_string(), "version = 2").await;
    spoil("infra_envs", pools[0].id.to_string(), "doc = '[]'").await;
    if !place.is_postgres() {
        spoil(
            "clusters",
            clusters[1].id.to_string(),
            "doc = cast(x'ff' as text)",
        )
        .await;
        spoil("infra_envs", pools[1].id.to_string(), "doc = x'00'").await;
    }
    let listed: BTreeSet<_> = store
        .list::<Cluster>()
        .await
        .unwrap()
        .iter()
        .map(|row| row.id)
        .collect();
    let pool_ids: BTreeSet<_> = store
        .list::<InfraEnv>()
        .await
        .unwrap()
        .iter()
        .map(|row| row.id)
        .collect();
    let bad = if place.is_postgres() { 1 } else { 2 };
    assert_eq!(listed, clusters[bad..].iter().map(|row| row.id).collect());
    assert_eq!(pool_ids, pools[bad..].iter().map(|row| row.id).collect());
    assert_eq!(
        named(&store, RowKind::Noun(ChangeKind::Cluster)),
        clusters[..bad].iter().map(|row| row.id.to_string()).collect()
    );
    assert_eq!(
        named(&store, RowKind::Noun(ChangeKind::InfraEnv)),
        pools[..bad].iter().map(|row| row.id.to_string()).collect()
    );
    for cluster in &clusters[..bad] {
        let error = store.find(cluster.id).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreadable(_)), "{error:?}");
        assert!(store.unreadable_row(cluster.id.into()).is_some());
    }
    assert!(store.unreadable_row(clusters[2].id.into()).is_none());
}

async fn an_order_that_cannot_be_read_keeps_no_other_waiting(place: &Place) {
    let store = place.open().await;
    let effects: Vec<_> = (0..5)
        .map(|_| Effect::DropFiles {
            cluster: cluster().id,
        })
        .collect();
    for effect in &effects {
        let change = Commit {
            effects: vec![effect.clone()],
            ..commit()
        };
        store.commit(change).await.unwrap();
    }
    place
        .tamper("update outbox set effect = '{\"do\":\"stand-on-your-head\"}' where id = 1")
        .await;
    place.tamper("update outbox set version = 7 where id = 2").await;
    let mut bad = 2;
    if !place.is_postgres() {
        place
            .tamper("update outbox set effect = cast(x'ff' as text) where id = 3")
            .await;
        bad = 3;
    }
    for limit in [1, 2, 100] {
        let due = store.outbox_due(at(60), limit).await.unwrap();
        let due: Vec<_> = due.into_iter().map(|item| item.effect).collect();
        let expected: Vec<_> = effects[bad..].iter().take(limit as usize).cloned().collect();
        assert_eq!(due, expected, "{limit}");
    }
    assert_eq!(
        named(&store, RowKind::Order),
        (1..=bad).map(|id| id.to_string()).collect()
    );
    assert_eq!(place.count("outbox").await, 5, "they are still there");
}

async fn a_host_with_a_report_of_a_newer_version_is_set_aside_with_it(place: &Place) {
    let store = place.open().await;
    let (one, two) = (host(), host());
    for host in [&one, &two] {
        let reports = [(Report::Inventory, Some("{}")), (Report::NtpSources, Some("[]"))];
        store
            .commit(of([put_with(host.clone(), &reports)]))
            .await
            .unwrap();
    }
    place
        .tamper(&format!(
            "update host_reports set version = 2 where host_id = '{}' and kind = 'inventory'",
            one.id
        ))
        .await;
    let error = store.host_reports(one.key()).await.unwrap_err().to_string();
    assert!(
        error.contains("inventory") && error.contains("newer program"),
        "{error}"
    );
    assert_eq!(
        store.host_reports(two.key()).await.unwrap().len(),
        2,
        "asked together or not"
    );
    assert_eq!(paged(&store, 10, &Report::ALL).await, [two.key()]);
    assert!(store.unreadable_host(one.key()).is_some());
    assert!(store.unreadable_host(two.key()).is_none());
    if !place.is_postgres() {
        place
            .tamper(&format!(
                "update host_reports set body = cast(x'ff' as text), version = 1 where host_id = '{}'",
                one.id
            ))
            .await;
        let (bad, good) = tokio::join!(store.host_reports(one.key()), store.host_reports(two.key()));
        assert!(matches!(bad, Err(StoreError::Unreadable(_))), "{bad:?}");
        assert_eq!(good.unwrap().len(), 2);
        assert_eq!(paged(&store, 10, &Report::ALL).await, [two.key()]);
    }
    place
        .tamper(&format!(
            "update host_reports set body = '{{}}', version = 1 where host_id = '{}'",
            one.id
        ))
        .await;
    assert_eq!(store.host_reports(one.key()).await.unwrap().len(), 2);
    assert!(store.unreadable_host(one.key()).is_none(), "it was mended");
}

async fn a_row_that_cannot_be_read_is_not_written_over(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    spoil(place, host.key(), "doc = 'rubbish', revision = 7").await;
    // The same machine arrives, for whoever does not know it.
    assert_stale(
        store
            .commit(of([put(Host::arriving(host.key(), None, noon()))]))
            .await,
        "host",
    );
    assert_stale(store.commit(of([put(host.clone())])).await, "host");
    assert_eq!(document(place, host.key()).await, "rubbish");
}

async fn a_cluster_whose_host_cannot_be_read_is_not_deleted(place: &Place) {
    let store = place.open().await;
    let (cluster, infra_env) = (cluster(), infra_env());
    let mut host = host_in(infra_env.id);
    host.cluster = Some(cluster.id);
    let change = Commit {
        puts: vec![
            host.clone().into(),
            cluster.clone().into(),
            infra_env.clone().into(),
        ],
        ..Commit::new(noon())
    };
    store.commit(change).await.unwrap();
    spoil(place, host.key(), "doc = 'rubbish'").await;
    assert_eq!(loaded(&store, 10).await, []);
    let row = store.unreadable_host(host.key()).unwrap();
    assert_eq!(
        (row.host, row.cluster),
        (Some(host.key()), Some(cluster.id)),
        "known without its document"
    );
    let without_cluster = Commit {
        deletes: vec![Delete {
            key: cluster.id.into(),
            revision: 1,
        }],
        ..Commit::new(noon())
    };
    assert_stale(store.commit(without_cluster).await, "cluster");
    let without_pool = Commit {
        deletes: vec![Delete {
            key: infra_env.id.into(),
            revision: 1,
        }],
        ..Commit::new(noon())
    };
    assert_stale(store.commit(without_pool).await, "infra-env");
    assert_eq!(place.count("hosts").await, 1);
}

async fn rows_beside_a_host_that_are_damaged_keep_no_other_from_being_loaded(place: &Place) {
    let store = place.open().await;
    let hosts = several(&store, 2).await;
    let checkins: Vec<_> = hosts.iter().map(|host| (host.key(), at(1), 2)).collect();
    store.checkins_flush(&checkins).await.unwrap();
    place
        .tamper(&format!(
            "update host_checkins set at = 9223372036854775807 where host_id = '{}'",
            hosts[0].id
        ))
        .await;
    place
        .tamper("insert into tombstones (infra_env_id, host_id, revision, deleted_at) values ('nowhere', 'nobody', 1, 1)")
        .await;
    assert_eq!(store.checkins_load().await.unwrap(), [checkins[1]]);
    assert_eq!(store.tombstones_load().await.unwrap(), []);
    assert_eq!(
        named(&store, RowKind::Checkin),
        [hosts[0].key().to_string()].into()
    );
    assert_eq!(
        named(&store, RowKind::Tombstone),
        ["nowhere/nobody".to_owned()].into()
    );
}

async fn a_row_that_was_mended_is_read_again(place: &Place) {
    let store = place.open().await;
    let host = saved(&store, host()).await;
    let good = document(place, host.key()).await.replace('\'', "''");
    spoil(place, host.key(), "doc = 'rubbish'").await;
    assert_eq!(loaded(&store, 10).await, []);
    assert_eq!(store.unreadable().len(), 1);
    spoil(place, host.key(), &format!("doc = '{good}'")).await;
    assert_eq!(loaded(&store, 10).await, [host.key()]);
    assert_eq!(store.unreadable(), []);
}

async fn what_is_written_carries_its_version(place: &Place) {
    let store = place.open().await;
    let (mut host, mut cluster, mut infra_env) = (host(), cluster(), infra_env());
    let effect = Effect::DropFiles { cluster: cluster.id };
    for revision in 0..2 {
        (host.revision, cluster.revision, infra_env.revision) = (revision, revision, revision);
        let report = put_with(host.clone(), &[(Report::Inventory, Some("{}"))]);
        let mut change = of([report, put(cluster.clone()), put(infra_env.clone())]);
        change.effects.push(effect.clone());
        store.commit(change).await.unwrap();
        for table in ["hosts", "clusters", "infra_envs", "host_reports", "outbox"] {
            let version = format!("select cast(version as text) from {table}");
            assert_eq!(place.text(&version).await, "1", "{table}");
            // The number belongs to the document, and is written with it.
            place.tamper(&format!("update {table} set version = 99")).await;
        }
    }
}
