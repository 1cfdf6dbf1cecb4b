//! What is written can be read again, unchanged.

use crate::place::Place;
use crate::sample::*;
use muster_domain::cluster::Cluster;
use muster_domain::host::{Phase, Report};
use muster_domain::id::ClusterId;
use muster_domain::infra_env::InfraEnv;
use std::collections::BTreeMap;
use uuid::Uuid;

crate::on_both!(
    a_host_comes_back_as_it_was_written,
    a_cluster_comes_back_as_it_was_written,
    an_infra_env_comes_back_as_it_was_written,
    reports_are_put_replaced_and_deleted_one_by_one,
    a_machine_seen_through_two_images_is_two_hosts,
    counts_follow_the_rows,
    text_that_no_database_takes_does_not_hurt_anybody,
);

async fn a_host_comes_back_as_it_was_written(place: &Place) {
    let store = place.open().await;
    let mut host = host();
    host.tenant.ignition_token = "geheim".into();
    host.status_info = "naïve 'text' with \\ and \u{0000} and 🙂".into();
    assert_eq!(store.find(host.key()).await.unwrap(), None);

    host = saved(&store, host).await;
    assert_eq!(host.revision, 1);
    assert_eq!(store.find(host.key()).await.unwrap().as_ref(), Some(&host));

    host.phase = Phase::Binding;
    host.cluster = Some(ClusterId(Uuid::new_v4()));
    host = saved(&store, host).await;
    assert_eq!(host.revision, 2);
    assert_eq!(store.find(host.key()).await.unwrap().as_ref(), Some(&host));

    let delete = delete(host.key(), 2);
    assert_eq!(store.commit(of([delete])).await.unwrap().revisions, [3]);
    assert_eq!(store.find(host.key()).await.unwrap(), None);
}

async fn a_cluster_comes_back_as_it_was_written(place: &Place) {
    let store = place.open().await;
    let mut cluster = cluster();
    let done = store.commit(of([put(cluster.clone())])).await.unwrap();
    cluster.revision = done.revisions[0];
    assert_eq!(store.find(cluster.id).await.unwrap().as_ref(), Some(&cluster));

    cluster.name = "renamed".into();
    let done = store.commit(of([put(cluster.clone())])).await.unwrap();
    cluster.revision = done.revisions[0];
    assert_eq!(cluster.revision, 2);
    assert_eq!(store.list::<Cluster>().await.unwrap(), [cluster.clone()]);

    store.commit(of([delete(cluster.id, 2)])).await.unwrap();
    assert_eq!(store.find(cluster.id).await.unwrap(), None);
}

async fn an_infra_env_comes_back_as_it_was_written(place: &Place) {
    let store = place.open().await;
    let (mut one, mut two) = (infra_env(), infra_env());
    two.cluster = Some(ClusterId(Uuid::new_v4()));
    two.created_at = at(60);
    let writes = [&one, &two].map(|infra_env| put(infra_env.clone()));
    let done = store.commit(of(writes)).await.unwrap();
    (one.revision, two.revision) = (done.revisions[0], done.revisions[1]);

    assert_eq!(store.find(one.id).await.unwrap().as_ref(), Some(&one));
    assert_eq!(
        store.list::<InfraEnv>().await.unwrap(),
        [one.clone(), two.clone()]
    );
    assert_eq!(
        store.infra_envs_of(two.cluster.unwrap()).await.unwrap(),
        [two.clone()]
    );

    two.cluster = None;
    store.commit(of([put(two.clone())])).await.unwrap();
    assert_eq!(store.infra_envs_of(ClusterId(Uuid::new_v4())).await.unwrap(), []);
    store.commit(of([delete(one.id, 1)])).await.unwrap();
    assert_eq!(store.find(one.id).await.unwrap(), None);
}

async fn reports_are_put_replaced_and_deleted_one_by_one(place: &Place) {
    use Report::{Inventory, NtpSources, Validations};
    let store = place.open().await;
    let mut host = host();
    let first = put_with(
        host.clone(),
        &[(Inventory, Some("{\"a\":1}")), (NtpSources, Some("[]"))],
    );
    host.revision = store.commit(of([first])).await.unwrap().revisions[0];
    let second = put_with(
        host.clone(),
        &[
            (NtpSources, None),
            (Validations, Some("{}")),
            (Inventory, Some("{}")),
        ],
    );
    host.revision = store.commit(of([second])).await.unwrap().revisions[0];

    let wanted = BTreeMap::from([(Inventory, "{}".to_owned()), (Validations, "{}".to_owned())]);
    assert_eq!(store.host_reports(host.key()).await.unwrap(), wanted);
    assert_eq!(
        store.host_report(host.key(), Inventory).await.unwrap().as_deref(),
        Some("{}")
    );
    assert_eq!(store.host_report(host.key(), NtpSources).await.unwrap(), None);

    host = saved(&store, host).await;
    assert_eq!(
        store.host_reports(host.key()).await.unwrap(),
        wanted,
        "reports not named stay"
    );

    let delete = delete(host.key(), host.revision);
    store.commit(of([delete])).await.unwrap();
    assert_eq!(store.host_reports(host.key()).await.unwrap(), BTreeMap::new());
}

async fn a_machine_seen_through_two_images_is_two_hosts(place: &Place) {
    let store = place.open().await;
    let one = saved(&store, host()).await;
    let mut two = host();
    two.id = one.id;
    two = saved(&store, two).await;
    assert_ne!(one.key(), two.key());
    assert_eq!(store.find(one.key()).await.unwrap().as_ref(), Some(&one));
    let mut both = vec![one, two];
    both.sort_by_key(|host| host.key());
    assert_eq!(store.hosts_by_id(both[0].id).await.unwrap(), both);
}

async fn counts_follow_the_rows(place: &Place) {
    let store = place.open().await;
    let mut host = saved(&store, host()).await;
    saved(&store, crate::sample::host()).await;
    host.phase = Phase::Unbinding;
    let mut change = of([put(host)]);
    change.puts.push(cluster().into());
    change.journal.push(entry("one"));
    store.commit(change).await.unwrap();

    let counts = store.counts().await.unwrap();
    assert_eq!(
        (counts.hosts, counts.clusters, counts.infra_envs, counts.events),
        (2, 1, 0, 1)
    );
    assert_eq!(counts.hosts_by_status.values().sum::<i64>(), 2);
    assert_eq!(counts.hosts_by_status.get("unbinding"), Some(&1));
}

async fn text_that_no_database_takes_does_not_hurt_anybody(place: &Place) {
    let store = place.open().await;
    let (bad, good) = (host(), host());
    let mut odd = of([put_with(bad.clone(), &[(Report::Inventory, Some("a\0b"))])]);
    odd.journal.push(entry("a\0b"));
    let (odd, plain) = tokio::join!(store.commit(odd), store.commit(of([put(good)])));
    odd.unwrap();
    plain.unwrap();
    let report = store.host_report(bad.key(), Report::Inventory).await.unwrap();
    assert_eq!(report.as_deref(), Some("a\u{fffd}b"));
}
